// Finding, making and removing the file of the secret.
#include "shm/node_secret.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "shm/segment_directory.h"
#include "util/lock.h"
#include "util/new_descriptor.h"
#include "util/random.h"
#include "util/uninterrupted.h"

namespace lintel {

namespace {

constexpr std::string_view prefix = "secret.";
constexpr size_t page_bytes = 4096;

std::string name_of(const std::string& secret) {
  std::string name(prefix);
  for (const char byte : secret)
    for (const int shift : {4, 0}) name += "0123456789abcdef"[byte >> shift & 15];
  return name;
}

std::optional<std::string> secret_of(std::string_view name) {
  if (name.size() != prefix.size() + 2 * node_secret_bytes ||
      name.substr(0, prefix.size()) != prefix)
    return {};
  std::string secret(node_secret_bytes, '\0');
  for (size_t i = 0; i < node_secret_bytes; ++i) {
    const std::string digits(name.substr(prefix.size() + 2 * i, 2));
    secret[i] = static_cast<char>(std::strtoul(digits.c_str(), nullptr, 16));
  }
  return name_of(secret) == name ? std::optional(secret) : std::nullopt;
}

std::optional<std::string> new_secret() {
  std::string secret(node_secret_bytes, '\0');
  if (!fill_random(secret.data(), secret.size())) return {};
  return secret;
}

struct flock lock_of(short type) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool is_denied(int error) noexcept { return error == EPERM || error == ENOSYS; }

class NodeSecret {
 public:
  ~NodeSecret() { release(); }

  // False: errno says why.
  [[nodiscard]] bool open() {
    // The last process to finish removes the directory, perhaps just before its name is used here.
    constexpr unsigned attempts = 1000;
    for (unsigned attempt = 0; attempt < attempts; ++attempt) {
      const auto directory = SegmentDirectory::open(true);
      // A filter of system calls may deny flock.
      const bool locked = directory && directory->lock();
      const bool denied = directory && !locked && is_denied(errno);
      const Descriptor file_lock = denied ? lock_file_of(*directory) : Descriptor();
      if ((locked || denied) && open_in(*directory, locked)) return true;
      if (errno != ENOENT) return false;
    }
    return false;
  }
  // A number of this process alone.
  [[nodiscard]] bool invent() {
    release();
    const auto secret = new_secret();
    if (secret) value_ = *secret;
    return secret.has_value();
  }
  // A forked child does not hold the lock.
  [[nodiscard]] bool is_of_this_process() const noexcept { return owner_ == getpid(); }
  [[nodiscard]] const std::string& value() const noexcept { return value_; }

  void release() noexcept {
    if (held_ == nullptr || !is_of_this_process()) return;
    const auto directory = SegmentDirectory::open(false);
    const bool locked = directory && directory->lock();
    munmap(held_, page_bytes);
    held_ = nullptr;
    if (!locked) return;
    const std::string path = directory->path() + "/" + name_of(value_);
    if (!is_used(path)) unlink(path.c_str());
    rmdir(directory->path().c_str());
  }

 private:
  // Returns a lock file, which replaces the lock of the directory until it is closed. Without a
  // lock, two processes could each find its own file first. The file stays.
  static Descriptor lock_file_of(const SegmentDirectory& directory) {
    const std::string path = directory.path() + "/lock";
    mend_private(path.c_str(), S_IRUSR | S_IWUSR);
    Descriptor file = open_file(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    struct flock lock = lock_of(F_WRLCK);
    if (file.is_open() &&
        uninterrupted([&] { return fcntl(file.get(), F_OFD_SETLKW, &lock); }) != 0)
      file.close();
    return file;
  }

  // Returns the least of the secrets. There are several only without a lock of the directory.
  static std::optional<std::string> find_in(const SegmentDirectory& directory, bool locked) {
    std::optional<std::string> found;
    directory.for_each_name([&](const char* name) {
      if (const auto secret = secret_of(name); secret && (!found || *secret < *found))
        found = secret;
      return !locked || !found.has_value();
    });
    return found;
  }

  // False with ENOENT: another process made one at the same time.
  bool open_in(const SegmentDirectory& directory, bool locked) {
    std::optional<std::string> found = find_in(directory, locked);
    if (!found) found = new_secret();
    if (!found) return false;
    value_ = *found;
    const std::string path = directory.path() + "/" + name_of(value_);
    mend_private(path.c_str(), S_IRUSR | S_IWUSR);
    Descriptor file = open_file(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    struct flock lock = lock_of(F_RDLCK);
    if (!file.is_open() || fcntl(file.get(), F_OFD_SETLK, &lock) != 0) return false;
    // The mapping keeps the lock, so that no descriptor stays open; the page is never touched.
    void* const memory = mmap(nullptr, page_bytes, PROT_NONE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return false;
    held_ = memory;
    // If madvise() is denied, the file stays until forked children have ended, too.
    static_cast<void>(madvise(memory, page_bytes, MADV_DONTFORK));
    if (locked || find_in(directory, false) == value_) return true;
    munmap(std::exchange(held_, nullptr), page_bytes);
    file.close();
    if (!is_used(path)) unlink(path.c_str());
    errno = ENOENT;
    return false;
  }

  // A process that may open no more files cannot find out: it keeps the file.
  static bool is_used(const std::string& path) noexcept {
    const Descriptor file = open_file(path.c_str(), O_RDWR | O_NOFOLLOW);
    struct flock lock = lock_of(F_WRLCK);
    return !file.is_open() ||
           (fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK);
  }

  const pid_t owner_ = getpid();
  std::string value_;
  void* held_ = nullptr;
};

struct Shared {
  Mutex mutex;
  std::weak_ptr<NodeSecret> secret LINTEL_GUARDED_BY(mutex);
};

void release_at_exit();
void lock_before_fork();
void unlock_after_fork();

// Never destroyed: it is used until the last exit handler has run.
Shared& shared() {
  static Shared* const instance = [] {
    std::atexit(release_at_exit);
    std::at_quick_exit(release_at_exit);
    pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
    return new Shared;
  }();
  return *instance;
}

void lock_before_fork() LINTEL_UNCHECKED_LOCKS { shared().mutex.lock(); }
void unlock_after_fork() LINTEL_UNCHECKED_LOCKS { shared().mutex.unlock(); }

void release_at_exit() {
  std::shared_ptr<NodeSecret> secret;
  const LockGuard guard(shared().mutex);
  secret = shared().secret.lock();
  if (secret != nullptr) secret->release();
}

}  // namespace

std::shared_ptr<const std::string> share_node_secret(std::string& reason) {
  const LockGuard guard(shared().mutex);
  std::shared_ptr<NodeSecret> secret = shared().secret.lock();
  if (secret == nullptr || !secret->is_of_this_process()) {
    secret = std::make_shared<NodeSecret>();
    if (!secret->open()) {
      reason = std::string("no secret can be kept in the private directory lintel.") +
               std::to_string(geteuid()) + " of " + segment_root() + ": " + std::strerror(errno);
      if (!secret->invent()) return nullptr;
    }
    shared().secret = secret;
  }
  return {secret, &secret->value()};
}

}  // namespace lintel
