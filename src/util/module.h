// Modules: parts of the library with needs of their own (libcrypto, DPDK, verbs), each a shared object
// that is loaded when it is used for the first time. Set-up path.
#pragma once

#include <string>

namespace lintel {

// A module is called libportals-<name>.so. It is looked for in the directories of PTL_MODULE_PATH
// (separated by colons; ignored in programs with raised privileges), then in the directory of
// libportals.so, or of libraries beside the program that contains it. Its entry point is the C function lintel_<name>_module_<version>, without arguments
// and returning a pointer to what the module offers: the version is part of the name, so that a module
// of another version of the library is not used. nullptr: `reason` tells where it was looked for and
// what was wrong. Modules stay loaded. Thread-safe.
[[nodiscard]] const void* load_module(const std::string& name, unsigned version,
                                      std::string& reason);

}  // namespace lintel
