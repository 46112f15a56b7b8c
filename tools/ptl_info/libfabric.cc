// Whether libfabric finds the provider of this library. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "ptl_info/facts.h"

namespace lintel::info {
namespace {

constexpr const char* file_name = "liblintel-fi.so";

// Where the libfabric of a distribution looks.
constexpr const char* usual_directories[] = {
    "/usr/lib/x86_64-linux-gnu/libfabric", "/usr/lib/aarch64-linux-gnu/libfabric",
    "/usr/lib64/libfabric", "/usr/lib/libfabric", "/usr/local/lib/libfabric"};

bool has_provider(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::exists(directory / file_name, error);
}

// The directory of the provider that was installed with the library.
std::string own_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&PtlInit), &info) == 0 || info.dli_fname == nullptr)
    return "";
  std::error_code error;
  const auto library = std::filesystem::canonical(info.dli_fname, error);
  const std::filesystem::path directory = library.parent_path() / "lintel" / "ofi";
  return !error && has_provider(directory) ? directory.string() : "";
}

}  // namespace

LibfabricFacts gather_libfabric() {
  LibfabricFacts facts;
  facts.directory = own_directory();
  const char* const path = std::getenv("FI_PROVIDER_PATH");
  if (path == nullptr) {
    for (const char* const directory : usual_directories)
      if (facts.found_in.empty() && has_provider(directory)) facts.found_in = directory;
    return facts;
  }
  facts.path_is_set = true;
  std::istringstream directories(path[0] == '@' ? path + 1 : path);
  for (std::string directory; std::getline(directories, directory, ':');)
    if (facts.found_in.empty() && has_provider(directory)) facts.found_in = directory;
  return facts;
}

}  // namespace lintel::info
