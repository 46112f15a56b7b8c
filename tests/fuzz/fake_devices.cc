// The library looks for RDMA devices only if the kernel lists some. With the stand-in of
// tests/support/fake_verbs there are always some. Set-up path.
#include <dirent.h>
#include <dlfcn.h>

#include <cstring>

extern "C" [[gnu::visibility("default")]] DIR* opendir(const char* name) {
  using Open = DIR* (*)(const char*);
  static const auto open_directory = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "opendir"));
  return open_directory(std::strcmp(name, "/sys/class/infiniband") == 0 ? "/" : name);
}
