// The shared library of a driver, found in the process or loaded. Set-up path.
#pragma once

#include <memory>
#include <span>
#include <string>

namespace lintel {

class DeviceDriver;

class DriverLibrary {
 public:
  // The first of `names` that the process has loaded, or, if `may_load`, that can be loaded. It
  // stays loaded.
  DriverLibrary(std::span<const char* const> names, bool may_load);

  [[nodiscard]] bool is_open() const { return handle_ != nullptr; }
  // Why it is not open, or which function it lacks.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Finds a function that must be there. is_complete() tells whether all were.
  template <typename Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(find_needed(name));
  }
  // The same for a function that may be missing: nullptr.
  template <typename Function>
  void find_optional(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(find_symbol(name));
  }
  [[nodiscard]] bool is_complete() const { return handle_ != nullptr && complete_; }

 private:
  void* find_symbol(const char* name) const;
  void* find_needed(const char* name);

  void* handle_ = nullptr;
  std::string path_;
  std::string reason_;
  bool complete_ = true;
};

// The driver behind an open library; nullptr: that lacks a function, its reason() says which.
[[nodiscard]] std::unique_ptr<DeviceDriver> make_cuda_driver(DriverLibrary& library);
[[nodiscard]] std::unique_ptr<DeviceDriver> make_hip_driver(DriverLibrary& library);
[[nodiscard]] std::unique_ptr<DeviceDriver> make_ze_driver(DriverLibrary& library);

}  // namespace lintel
