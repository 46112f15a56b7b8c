// The list of names, and their removal at exit.
#include "util/own_names.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "util/lock.h"
#include "util/never_destroyed.h"

namespace lintel {

namespace {

struct OwnName {
  std::string path;
  std::string directory;
  pid_t creator;
};

struct Registry {
  Mutex mutex;
  std::vector<OwnName> names;  // under the mutex, which an OwnNames holds as long as it lives
};

void remove_names_at_exit();
void lock_before_fork();
void unlock_after_fork();

// Never destroyed: it is used until the last exit handler has run.
Registry& registry() {
  static Registry& instance = []() -> Registry& {
    static NeverDestroyed<Registry> made;
    std::atexit(remove_names_at_exit);
    std::at_quick_exit(remove_names_at_exit);
    pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
    return made.get();
  }();
  return instance;
}

void lock_before_fork() LINTEL_UNCHECKED_LOCKS { registry().mutex.lock(); }
void unlock_after_fork() LINTEL_UNCHECKED_LOCKS { registry().mutex.unlock(); }

void remove_name(const OwnName& name) noexcept {
  unlink(name.path.c_str());
  if (!name.directory.empty()) rmdir(name.directory.c_str());
}

void remove_names_at_exit() {
  const LockGuard guard(registry().mutex);
  for (const OwnName& name : registry().names)
    if (name.creator == getpid()) remove_name(name);
}

}  // namespace

OwnNames::OwnNames() { registry().mutex.lock(); }
OwnNames::~OwnNames() { registry().mutex.unlock(); }

void OwnNames::remember(const std::string& path, const std::string& directory) {
  registry().names.push_back({path, directory, getpid()});
}

void OwnNames::forget(const std::string& path) noexcept {
  std::erase_if(registry().names, [&](const OwnName& name) { return name.path == path; });
}

void OwnNames::remove(const std::string& path) noexcept {
  for (const OwnName& name : registry().names)
    if (name.path == path) remove_name(name);
  forget(path);
}

}  // namespace lintel
