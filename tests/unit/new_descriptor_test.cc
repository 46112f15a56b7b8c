// New descriptors are never 0, 1 or 2, also where the program has closed those.
#include "util/new_descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <gtest/gtest.h>

#include "shm_test_support.h"
#include "util/log.h"

namespace lintel {
namespace {

using test::ChildProcess;

void close_standard() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(number);
}

bool none_standard() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) >= 0) return false;
  return true;
}

bool is_fine(const Descriptor& made) {
  return made.get() > STDERR_FILENO && fcntl(made.get(), F_GETFD) == FD_CLOEXEC && none_standard();
}

int run_with_closed_descriptors(int (*body)()) {
  ChildProcess child([&] {
    close_standard();
    return body();
  });
  return child.wait();
}

TEST(NewDescriptor, IsAboveTheStandardOnes) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              if (!is_fine(open_file("/proc/self/maps", O_RDONLY))) return 1;
              const Descriptor directory = open_file("/proc/self", O_RDONLY | O_DIRECTORY);
              if (!is_fine(open_file_at(directory.get(), "maps", O_RDONLY))) return 2;
              if (!is_fine(make_event()) || !is_fine(make_epoll())) return 3;
              if (!is_fine(make_memory_file("test", MFD_ALLOW_SEALING))) return 4;
              if (!is_fine(above_standard(dup(directory.get())))) return 5;
              if (fileno(open_for_reading("/proc/self/maps").get()) <= STDERR_FILENO) return 6;
              if (dirfd(open_directory("/proc").get()) <= STDERR_FILENO) return 7;
              return none_standard() ? 0 : 8;
            }),
            0);
}

TEST(NewDescriptor, OfSocketsIsAboveTheStandardOnes) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              const Descriptor listener = open_socket(AF_UNIX, SOCK_STREAM);
              const Descriptor caller = open_socket(AF_UNIX, SOCK_STREAM);
              const sockaddr_un any{AF_UNIX, {}};
              sockaddr_un address{};
              socklen_t length = sizeof address;
              if (!is_fine(listener) || !is_fine(caller)) return 1;
              if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&any),
                       sizeof any.sun_family) != 0 ||
                  listen(listener.get(), 1) != 0 ||
                  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
                return 2;
              if (connect(caller.get(), reinterpret_cast<sockaddr*>(&address), length) != 0)
                return 3;
              return is_fine(accept_connection(listener.get(), SOCK_NONBLOCK)) ? 0 : 4;
            }),
            0);
}

// As a device that another library opens.
TEST(NewDescriptor, TheStandardOnesAreKeptFromOtherLibraries) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              int device = -1;
              {
                const StandardDescriptorsTaken taken;
                device = memfd_create("of a library", MFD_CLOEXEC);
              }
              return device > STDERR_FILENO && none_standard() ? 0 : 1;
            }),
            0);
  const StandardDescriptorsTaken none;
  EXPECT_GE(fcntl(STDERR_FILENO, F_GETFD), 0);
}

TEST(NewDescriptor, WithoutRoomErrnoSaysSo) {
  EXPECT_FALSE(open_file("/proc/self/nothing", O_RDONLY).is_open());
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(open_directory("/proc/self/maps"), nullptr);
  EXPECT_EQ(errno, ENOTDIR);
}

// A program that closes standard error and opens a file gets number 2 for the file.
TEST(NewDescriptor, LogLinesDoNotGoIntoAFileOfTheProgram) {
  EXPECT_EQ(run_with_closed_descriptors([] {
              find_standard_error();
              for (int i = 0; i < 3; ++i)
                if (memfd_create("of the program", MFD_CLOEXEC) != i) return 1;
              log_message(LogLevel::error, "a line");
              write_to_standard_error("text", 4);
              if (lseek(STDERR_FILENO, 0, SEEK_END) != 0) return 2;
              find_standard_error();  // PtlInit, after the program has opened its own
              log_message(LogLevel::error, "a line");
              return lseek(STDERR_FILENO, 0, SEEK_END) > 0 ? 0 : 3;
            }),
            0);
}

}  // namespace
}  // namespace lintel
