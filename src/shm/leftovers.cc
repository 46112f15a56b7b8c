// Telling dead segments from live ones by their owner's record lock, and removing the dead.
// Set-up path; nonce_is_alive() also when a half-made claim is found.
#include "shm/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "shm/own_segments.h"
#include "shm/segment_layout.h"
#include "shm/segment_name.h"

namespace lintel {

namespace {

constexpr unsigned sweep_limit = 4096;  // directory entries looked at

struct Descriptor {
  int fd;
  explicit Descriptor(int f) noexcept : fd(f) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

struct flock owner_lock(short type) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0;
  lock.l_len = 1;
  return lock;
}

bool lock_held_by_owner(int fd) noexcept {
  struct flock lock = owner_lock(F_WRLCK);
  if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return false;
  int32_t owner = 0;
  const off_t where = offsetof(SegmentIdentity, os_pid);
  return pread(fd, &owner, sizeof owner, where) == sizeof owner && owner == lock.l_pid;
}

// One attempt; in_use may also mean that somebody else is removing the same leftover right now.
LeftoverStatus try_remove(const std::string& path, bool& owner_seen) {
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd < 0) return errno == ENOENT ? LeftoverStatus::removed : LeftoverStatus::foreign;
  struct stat status;
  if (fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid())
    return LeftoverStatus::foreign;
  struct flock lock = owner_lock(F_WRLCK);
  if (fcntl(file.fd, F_SETLK, &lock) != 0) {
    owner_seen = lock_held_by_owner(file.fd);
    return LeftoverStatus::in_use;
  }
  // Only the holder of a segment's lock removes its name; so, if it still has one, it is this.
  if (fstat(file.fd, &status) == 0 && status.st_nlink > 0) unlink(path.c_str());
  return LeftoverStatus::removed;
}

template <typename Action>
void for_each_segment(Action&& action) {
  DIR* directory = opendir(segment_directory().c_str());
  if (directory == nullptr) return;
  const std::string prefix = segment_name_prefix();
  for (unsigned seen = 0; seen < sweep_limit; ++seen) {
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) != 0) continue;
    const std::string path = segment_directory() + "/" + entry->d_name;
    if (!action(path)) break;
  }
  closedir(directory);
}

}  // namespace

LeftoverStatus remove_leftover(const std::string& path) {
  if (own_segment_fd(path)) return LeftoverStatus::in_use;
  LeftoverStatus status = LeftoverStatus::in_use;
  bool owner_seen = false;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    status = try_remove(path, owner_seen);
    if (status != LeftoverStatus::in_use || owner_seen) break;
    sched_yield();
  }
  return status;
}

unsigned sweep_leftovers() {
  unsigned removed = 0;
  for_each_segment([&](const std::string& path) {
    bool owner_seen = false;
    if (!own_segment_fd(path) && try_remove(path, owner_seen) == LeftoverStatus::removed) ++removed;
    return true;
  });
  return removed;
}

bool nonce_is_alive(uint64_t nonce) {
  bool alive = false;
  for_each_segment([&](const std::string& path) {
    const std::optional<int> own = own_segment_fd(path);
    const Descriptor file(own ? -1
                              : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const int fd = own ? *own : file.fd;
    uint64_t found = 0;
    if (fd < 0 ||
        pread(fd, &found, sizeof found, offsetof(SegmentIdentity, nonce)) != sizeof found ||
        found != nonce) {
      return true;
    }
    struct flock lock = owner_lock(F_WRLCK);
    alive = own || (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
    return false;
  });
  return alive;
}

}  // namespace lintel
