/* descriptors.h: the library takes no descriptor that a program may use as standard input, output
 * or error. Set-up path.
 *
 * If one of these is closed, the next open gets its number. What the program prints would be
 * written there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_DESCRIPTORS_H
#define LINTEL_GASNET_TOOLS_DESCRIPTORS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace lintel::gasnet {

/** @param descriptor  new, or negative after an error: it is returned then, and errno is kept.
 * @return the same file under a number above 2; -1 if there is none. */
inline int above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(descriptor);
  errno = error;
  return moved;
}

/** Opens a file as fopen does.
 * @param mode  "r" or "w". */
inline std::FILE* open_file(const char* path, const char* mode) {
  const int flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
  const bool is_new = *mode != 'r' && access(path, F_OK) != 0;
  const int descriptor = above_standard(open(path, flags | O_CLOEXEC, 0666));
  // Under any umask its owner can read it and write it again.
  struct stat status;
  if (descriptor >= 0 && is_new && fstat(descriptor, &status) == 0)
    fchmod(descriptor, (status.st_mode & 0777) | S_IRUSR | S_IWUSR);
  return descriptor < 0 ? nullptr : fdopen(descriptor, mode);
}

/** Called by a program before anything else. Its children inherit the descriptors. */
inline void open_standard_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO;) {
    if (fcntl(descriptor, F_GETFD) >= 0)
      ++descriptor;
    else if (open("/dev/null", O_RDWR) != descriptor)
      return;
  }
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_DESCRIPTORS_H
