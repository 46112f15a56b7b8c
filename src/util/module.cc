// Finding and loading modules. Set-up path.
#include "util/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "module_version.h"
#include "util/config_parse.h"
#include "util/text.h"

// A static library contains its modules. The build lists them: MODULE(verbs) and so on, or nothing.
#define MODULE(name) extern "C" const lintel::Module lintel_module_##name;
LINTEL_STATIC_MODULES
#undef MODULE

namespace lintel {

namespace {

struct ContainedModule {
  std::string_view name;
  const Module* module;
};

#define MODULE(name) {#name, &lintel_module_##name},
constexpr ContainedModule contained_modules[] = {LINTEL_STATIC_MODULES{"", nullptr}};
#undef MODULE

// Names this very object to the dynamic linker.
const char anchor = 0;

std::string own_directory() {
  Dl_info info{};
  if (dladdr(&anchor, &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// PTL_MODULE_PATH is read here since a run-time library loads modules before PtlInit.
std::vector<std::string> directories() {
  const char* const path = secure_getenv("PTL_MODULE_PATH");
  std::vector<std::string> found = split_words(path == nullptr ? "" : path, ':');
  found.push_back(own_directory() + "/lintel");
  return found;
}

const void* offer_of(void* object, const std::string& path, std::string& reason) {
  const auto* const module = static_cast<const Module*>(dlsym(object, "lintel_module"));
  if (module == nullptr)
    return explained(nullptr, reason,
                     path + " is not a module of this library: it has no lintel_module");
  if (std::string_view(module->version) != LINTEL_MODULE_VERSION)
    return explained(nullptr, reason,
                     path + " is of version " + module->version +
                         " of this library, which is " LINTEL_MODULE_VERSION);
  if (module->offer == nullptr) reason = path + " cannot be used here";
  return module->offer;
}

}  // namespace

bool module_is_installed(const std::string& name) {
  for (const std::string& directory : directories())
    if (access((directory + "/" + name + ".so").c_str(), R_OK) == 0) return true;
  return false;
}

const void* load_module(const std::string& name, std::string& reason) {
  for (const ContainedModule& contained : contained_modules)
    if (contained.name == name) return contained.module->offer;
  std::string looked;
  for (const std::string& directory : directories()) {
    const std::string path = directory + "/" + name + ".so";
    looked += (looked.empty() ? "" : ", ") + path;
    if (access(path.c_str(), R_OK) != 0) continue;
    void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
      // A module that uses the library needs its private symbols of the same version.
      const std::string why = dlerror();
      reason =
          why.find("LINTEL_PRIVATE") == std::string::npos
              ? "cannot load the module: " + why
              : path +
                    " is not of version " LINTEL_MODULE_VERSION ", which this library is: " + why;
      return nullptr;
    }
    const void* const offer = offer_of(object, path, reason);
    if (offer == nullptr) dlclose(object);
    return offer;
  }
  reason = "the module " + name + " is not installed (looked for " + looked + ")";
  return nullptr;
}

}  // namespace lintel
