// Finding and loading modules. Set-up path.
#include "util/module.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <vector>

#include "util/config.h"

namespace lintel {

namespace {

// Names this very object to the dynamic linker.
const char anchor = 0;

std::string own_directory() {
  Dl_info info{};
  if (dladdr(&anchor, &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::vector<std::string> directories() {
  std::vector<std::string> found;
  if (getauxval(AT_SECURE) == 0) {
    const std::string& path = config_string(ConfigKey::module_path);
    for (size_t from = 0; from < path.size();) {
      const size_t colon = std::min(path.find(':', from), path.size());
      if (colon != from) found.push_back(path.substr(from, colon - from));
      from = colon + 1;
    }
  }
  const std::string own = own_directory();
  found.push_back(own);
  // Programs that contain the library (ptl_info) lie beside the directory of libraries.
  found.push_back(own + "/../" LINTEL_LIBRARY_DIRECTORY);
  return found;
}

}  // namespace

const void* load_module(const std::string& name, unsigned version, std::string& reason) {
  const std::string file = "libportals-" + name + ".so";
  const std::string entry = "lintel_" + name + "_module_" + std::to_string(version);
  std::string looked;
  for (const std::string& directory : directories()) {
    const std::string path = directory + "/" + file;
    looked += (looked.empty() ? "" : ", ") + path;
    if (access(path.c_str(), R_OK) != 0) continue;
    void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
      reason = std::string("cannot load the module: ") + dlerror();
      return nullptr;
    }
    using Entry = const void* (*)();
    const auto function = reinterpret_cast<Entry>(dlsym(object, entry.c_str()));
    if (function == nullptr) {
      reason = path + " is of another version of this library: it has no " + entry;
      dlclose(object);
      return nullptr;
    }
    const void* const offer = function();
    if (offer == nullptr) reason = path + " cannot be used here";
    return offer;
  }
  reason = "the module " + file + " is not installed (looked for " + looked + ")";
  return nullptr;
}

}  // namespace lintel
