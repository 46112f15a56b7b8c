// Everything that takes a new file descriptor. None is 0, 1 or 2, even where the program closed
// those: what is written to standard output or standard error would go into it. All are
// closed by exec. What is made in the file system has the rights of its owner that the caller asks
// for, whatever the umask. Set-up and connection path.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <cstdio>
#include <memory>

#include "util/descriptor.h"

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)

namespace lintel {

// If a returned descriptor is not open, errno says why.

// Returns the descriptor of a system call, moved above 2 if necessary.
[[nodiscard]] Descriptor above_standard(int descriptor) noexcept;

[[nodiscard]] Descriptor open_file(const char* path, int flags, mode_t mode = 0) noexcept;
[[nodiscard]] Descriptor open_file_at(int directory, const char* path, int flags) noexcept;
[[nodiscard]] Descriptor open_socket(int family, int type) noexcept;
[[nodiscard]] Descriptor accept_connection(int listener, int flags) noexcept;
[[nodiscard]] Descriptor make_event() noexcept;  // an eventfd that never blocks
[[nodiscard]] Descriptor make_epoll() noexcept;
[[nodiscard]] Descriptor make_memory_file(const char* name, unsigned flags) noexcept;

struct CloseStream {
  void operator()(FILE* stream) const noexcept { std::fclose(stream); }
  void operator()(DIR* stream) const noexcept { closedir(stream); }
};
using Stream = std::unique_ptr<FILE, CloseStream>;
[[nodiscard]] Stream open_for_reading(const char* path) noexcept;
using DirectoryStream = std::unique_ptr<DIR, CloseStream>;
[[nodiscard]] DirectoryStream open_directory(const char* path) noexcept;
[[nodiscard]] DirectoryStream open_directory_at(int directory, const char* path) noexcept;

// Keeps descriptors 0 to 2 open while it exists, so that other libraries do not get them either.
// Descriptors that the program had closed lead to /dev/null.
class StandardDescriptorsTaken {
 public:
  StandardDescriptorsTaken() noexcept;
  ~StandardDescriptorsTaken();
  StandardDescriptorsTaken(const StandardDescriptorsTaken&) = delete;
  StandardDescriptorsTaken& operator=(const StandardDescriptorsTaken&) = delete;

 private:
  bool ours_[3] = {};
};

// Closes the descriptor in every child that this process forks from now on: a child that kept it
// would hold a port of its parent. Thread-safe. A few dozen descriptors at most; others stay open
// in children.
void close_in_children(int descriptor) noexcept;
// Before it is closed here.
void forget_in_children(int descriptor) noexcept;

// False: errno says why, such as EEXIST.
[[nodiscard]] bool make_directory(const char* path, mode_t mode) noexcept;
// Gives the owner of a private file or directory the rights in `mode` that it lacks. Programs of a
// umask that masks the owner have left such files. Only what belongs to this user and to no group.
// True: it was changed.
bool mend_private(const char* path, mode_t mode) noexcept;

}  // namespace lintel

#pragma GCC visibility pop
