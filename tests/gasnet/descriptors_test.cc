/* descriptors_test.cc: nothing that the library opens gets the number of standard input, output or
 * error, whichever of these are closed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tools/descriptors.h"

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "job/shared_memory.h"

using namespace lintel::gasnet;

namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

/** In a process of its own, with these descriptors closed. @return the line of a failed check. */
int failed_line(unsigned int closed) {
  for (int descriptor = 0; descriptor < 3; ++descriptor)
    if (closed >> descriptor & 1) close(descriptor);
  const auto none_was_taken = [closed] {
    for (int descriptor = 0; descriptor < 3; ++descriptor)
      if ((closed >> descriptor & 1) && is_open(descriptor)) return false;
    return true;
  };
  SharedMemory made;
  if (!made.create("descriptors_test", 4096) || !none_was_taken()) return __LINE__;
  SharedMemory opened;
  const std::string path = "/proc/self/fd/" + std::to_string(made.descriptor());
  if (!opened.open(path.c_str(), 4096) || !none_was_taken()) return __LINE__;
  if (!map_memory_of(getpid(), made.descriptor(), 4096) || !none_was_taken()) return __LINE__;
  std::FILE* const file = open_file("/proc/self/stat", "r");
  if (!file || std::fgetc(file) == EOF || !none_was_taken()) return __LINE__;
  if (open_file("/no/such/file", "r") || errno != ENOENT) return __LINE__;
  open_standard_descriptors();
  for (int descriptor = 0; descriptor < 3; ++descriptor)
    if (!is_open(descriptor)) return __LINE__;
  return 0;
}

}  // namespace

/** Whether its owner may write a file again that was made under a umask that masks the owner. */
bool owner_keeps_file() {
  char directory[] = "/tmp/descriptors_test-XXXXXX";
  if (!mkdtemp(directory)) return false;
  const std::string path = std::string(directory) + "/file";
  umask(0777);
  std::FILE* const file = open_file(path.c_str(), "w");
  struct stat status {};
  const bool keeps =
      file && stat(path.c_str(), &status) == 0 && (status.st_mode & S_IRWXU) == (S_IRUSR | S_IWUSR);
  if (file) std::fclose(file);
  unlink(path.c_str());
  rmdir(directory);
  return keeps;
}

int main() {
  for (unsigned int closed = 0; closed < 8; ++closed) {
    const pid_t child = fork();
    if (child == 0) _exit(failed_line(closed));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      std::fprintf(stderr, "closed: %u, line %d\n", closed, WEXITSTATUS(status));
      return 1;
    }
  }
  if (!owner_keeps_file()) {
    std::fprintf(stderr, "the umask has taken a file from its owner\n");
    return 1;
  }
  return 0;
}
