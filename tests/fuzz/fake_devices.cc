// The library looks for RDMA devices only if the kernel lists some. With the stand-in of
// tests/support/fake_verbs there are always some. Set-up path.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstring>

// std::filesystem opens directories with this function.
extern "C" [[gnu::visibility("default")]] int openat(int directory, const char* name, int flags,
                                                     ...) {
  using Open = int (*)(int, const char*, int, ...);
  static const auto open_file = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "openat"));
  va_list arguments;
  va_start(arguments, flags);
  const auto mode =
      static_cast<mode_t>((flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, int) : 0);
  va_end(arguments);
  return open_file(directory, std::strcmp(name, "/sys/class/infiniband") == 0 ? "/" : name, flags,
                   mode);
}
