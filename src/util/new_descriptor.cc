// System calls that take a descriptor: all of them.
#include "util/new_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>

namespace lintel {

namespace {

constexpr mode_t owner_mode = S_IRWXU;

// The umask belongs to the process: it cannot be changed while other threads make files.
void give_to_owner(int descriptor, mode_t wanted) noexcept {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || status.st_uid != geteuid()) return;
  const mode_t lacking = wanted & owner_mode & ~status.st_mode;
  if (lacking != 0) static_cast<void>(fchmod(descriptor, (status.st_mode & 07777) | lacking));
}

DirectoryStream directory_of(Descriptor descriptor) noexcept {
  DirectoryStream stream(descriptor.is_open() ? fdopendir(descriptor.get()) : nullptr);
  if (stream != nullptr) static_cast<void>(descriptor.release());
  return stream;
}

constexpr unsigned most_descriptors = 64;
std::atomic<int> remembered[most_descriptors];  // descriptor + 1; 0: free

void close_remembered() noexcept {
  for (std::atomic<int>& slot : remembered)
    if (const int descriptor = slot.exchange(0, std::memory_order_relaxed) - 1; descriptor >= 0)
      close(descriptor);
}

}  // namespace

Descriptor above_standard(int descriptor) noexcept {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return Descriptor(descriptor);
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return Descriptor(moved);
}

Descriptor open_file(const char* path, int flags, mode_t mode) noexcept {
  Descriptor file = above_standard(::open(path, flags | O_CLOEXEC, mode));
  if (file.is_open() && ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE))
    give_to_owner(file.get(), mode);
  return file;
}

Descriptor open_file_at(int directory, const char* path, int flags) noexcept {
  return above_standard(::openat(directory, path, flags | O_CLOEXEC));
}

Descriptor open_socket(int family, int type) noexcept {
  return above_standard(::socket(family, type | SOCK_CLOEXEC, 0));
}

Descriptor accept_connection(int listener, int flags) noexcept {
  return above_standard(::accept4(listener, nullptr, nullptr, flags | SOCK_CLOEXEC));
}

Descriptor make_event() noexcept {
  return above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

Descriptor make_epoll() noexcept { return above_standard(::epoll_create1(EPOLL_CLOEXEC)); }

Descriptor make_memory_file(const char* name, unsigned flags) noexcept {
  return above_standard(::memfd_create(name, flags | MFD_CLOEXEC));
}

Stream open_for_reading(const char* path) noexcept {
  Descriptor file = open_file(path, O_RDONLY);
  Stream stream(file.is_open() ? fdopen(file.get(), "r") : nullptr);
  if (stream != nullptr) static_cast<void>(file.release());
  return stream;
}

DirectoryStream open_directory(const char* path) noexcept {
  return directory_of(open_file(path, O_RDONLY | O_DIRECTORY));
}

DirectoryStream open_directory_at(int directory, const char* path) noexcept {
  return directory_of(open_file_at(directory, path, O_RDONLY | O_DIRECTORY));
}

StandardDescriptorsTaken::StandardDescriptorsTaken() noexcept {
  for (;;) {
    const int lowest = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (lowest < 0) return;
    if (lowest > STDERR_FILENO) {
      ::close(lowest);
      return;
    }
    ours_[lowest] = true;
  }
}

StandardDescriptorsTaken::~StandardDescriptorsTaken() {
  for (int number = 0; number <= STDERR_FILENO; ++number)
    if (ours_[number]) ::close(number);
}

bool make_directory(const char* path, mode_t mode) noexcept {
  if (::mkdir(path, mode) != 0) return false;
  mend_private(path, mode);
  return true;
}

// The descriptor makes sure that the path is not exchanged in between. It needs no right to read.
bool mend_private(const char* path, mode_t mode) noexcept {
  const int error = errno;
  const Descriptor found = open_file(path, O_PATH | O_NOFOLLOW);
  struct stat status;
  bool mended = false;
  if (found.is_open() && fstat(found.get(), &status) == 0 && status.st_uid == geteuid() &&
      (status.st_mode & (S_IRWXG | S_IRWXO)) == 0 && (mode & owner_mode & ~status.st_mode) != 0) {
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", found.get());
    mended = chmod(link, (status.st_mode & 07777) | (mode & owner_mode)) == 0;
  }
  errno = error;
  return mended;
}

void close_in_children(int descriptor) noexcept {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, &close_remembered); });
  for (std::atomic<int>& slot : remembered) {
    int unused = 0;
    if (slot.compare_exchange_strong(unused, descriptor + 1, std::memory_order_relaxed)) return;
  }
}

void forget_in_children(int descriptor) noexcept {
  for (std::atomic<int>& slot : remembered) {
    int ours = descriptor + 1;
    if (slot.compare_exchange_strong(ours, 0, std::memory_order_relaxed)) return;
  }
}

}  // namespace lintel
