// The shared library of a driver. Set-up path.
#include "memory_kind/driver_library.h"

#include <dlfcn.h>
#include <link.h>

namespace lintel {

DriverLibrary::DriverLibrary(std::span<const char* const> names, bool may_load) {
  for (const char* const name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle_ != nullptr) break;
  }
  if (handle_ == nullptr && !may_load) {
    reason_ = std::string("the process has not loaded ") + names.front();
    return;
  }
  for (const char* const name : names) {
    if (handle_ != nullptr) break;
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr && reason_.empty()) reason_ = dlerror();
  }
  if (handle_ == nullptr) return;
  reason_.clear();
  path_ = names.front();
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0') path_ = map->l_name;
}

void* DriverLibrary::find_symbol(const char* name) const { return dlsym(handle_, name); }

void* DriverLibrary::find_needed(const char* name) {
  void* const symbol = find_symbol(name);
  if (symbol == nullptr && complete_) {
    complete_ = false;
    reason_ = path_ + " has no function " + name + "; a newer driver has it";
  }
  return symbol;
}

}  // namespace lintel
