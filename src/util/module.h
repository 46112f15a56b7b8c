// Modules: parts of the library that need other libraries (libcrypto, DPDK, verbs, PMIx), each a
// shared object that is loaded when it is first used. Set-up path.
//
// A module is <name>.so in the directory `lintel` beside libportals.so, or in a directory of
// PTL_MODULE_PATH (separated by colons), which is searched first. Programs with raised privileges
// ignore PTL_MODULE_PATH. A module defines `lintel_module`, a Module, and uses symbols of
// libportals.so.
#pragma once

#include <string>

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

struct Module {
  // LINTEL_MODULE_VERSION (module_version.h, which the build makes): version and internal headers.
  // A module that was built with others is not used.
  const char* version;
  const void* offer;  // interface of the module, such as a DpdkModule; nullptr: not usable here
};

// The offer of the module. nullptr: `reason` says where it was looked for and what was wrong.
// Modules stay loaded. Thread-safe.
[[nodiscard]] const void* load_module(const std::string& name, std::string& reason);

// Whether a file of that name lies where load_module() looks, for ptl_info. Loads nothing.
[[nodiscard]] bool module_is_installed(const std::string& name);

}  // namespace lintel
#pragma GCC visibility pop

// Symbol that each module exports.
extern "C" [[gnu::visibility("default")]] const lintel::Module lintel_module;
