// The library looks for RDMA devices only if the kernel lists some. With the stand-in of
// tests/support/fake_verbs there are always some. Set-up path.
#include <dlfcn.h>
#include <fcntl.h>

#include <cstdarg>
#include <cstring>

extern "C" [[gnu::visibility("default")]] int open(const char* name, int flags, ...) {
  using Open = int (*)(const char*, int, ...);
  static const auto next_open = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "open"));
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return next_open(std::strcmp(name, "/sys/class/infiniband") == 0 ? "/" : name, flags, mode);
}
