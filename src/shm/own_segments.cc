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
  pid_t creator;
};

struct Registry {
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
    pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
    return new Registry;
  }();
  return *instance;
}

void lock_before_fork() { registry().mutex.lock(); }
void unlock_after_fork() { registry().mutex.unlock(); }

void remove_name(const std::string& path) noexcept {
  unlink(path.c_str());
  rmdir(path.substr(0, path.rfind('/')).c_str());
}

void remove_names_at_exit() {
  const std::lock_guard guard(registry().mutex);
  for (const OwnSegment& segment : registry().segments)
    if (segment.creator == getpid()) remove_name(segment.path);
}

}  // namespace

OwnSegments::OwnSegments() { registry().mutex.lock(); }
OwnSegments::~OwnSegments() { registry().mutex.unlock(); }

void OwnSegments::remember(const std::string& path) {
  registry().segments.push_back({path, getpid()});
}

void OwnSegments::remove(const std::string& path) noexcept {
  remove_name(path);
  std::erase_if(registry().segments, [&](const OwnSegment& s) { return s.path == path; });
}

}  // namespace lintel
