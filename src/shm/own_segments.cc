// The list of owned segments, and their removal at exit.
#include "shm/own_segments.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace lintel {

namespace {

struct OwnSegment {
  std::string path;
  int fd;
  pid_t creator;
};

struct Registry {
  std::mutex creation;
  std::mutex mutex;
  std::vector<OwnSegment> segments;
};

void remove_names_at_exit();
void lock_before_fork();
void unlock_after_fork();

// Never destroyed: it is used until the last exit handler has run.
Registry& registry() {
  static Registry* const instance = [] {
    std::atexit(remove_names_at_exit);
    // A child forked while another thread holds a lock must find it free.
    pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
    return new Registry;
  }();
  return *instance;
}

void lock_before_fork() {
  registry().creation.lock();
  registry().mutex.lock();
}
void unlock_after_fork() {
  registry().mutex.unlock();
  registry().creation.unlock();
}

void remove_names_at_exit() {
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  for (const OwnSegment& segment : r.segments)
    if (segment.creator == getpid()) unlink(segment.path.c_str());
}

}  // namespace

std::unique_lock<std::mutex> lock_segment_creation() {
  return std::unique_lock(registry().creation);
}

void remember_own_segment(const std::string& path, int fd) {
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  r.segments.push_back({path, fd, getpid()});
}

void forget_own_segment(const std::string& path) noexcept {
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  std::erase_if(r.segments,
                [&](const OwnSegment& s) { return s.path == path && s.creator == getpid(); });
}

std::optional<int> own_segment_fd(const std::string& path) {
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  for (const OwnSegment& segment : r.segments)
    if (segment.path == path && segment.creator == getpid()) return segment.fd;
  return std::nullopt;
}

}  // namespace lintel
