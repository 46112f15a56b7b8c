// Memory of a device, through the functions of its driver, without the library. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace lintel::tools {

// All functions throw if the driver refuses.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  [[nodiscard]] virtual void* allocate_managed(std::size_t bytes) = 0;
  virtual void release(void* base) = 0;
  // Between a device and the host, or devices; waits for the end.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  // The usual call of the driver, which may return before the end.
  virtual void copy_by_driver(void* to, const void* from, std::size_t bytes) {
    copy(to, from, bytes);
  }

  // A function of the driver.
  [[nodiscard]] void* symbol(const char* name) const;

 protected:
  explicit Accelerator(void* library) : library_(library) {}
  template <typename Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* library_;
};

// The name of the library of "cuda", "hip" or "ze".
[[nodiscard]] std::string driver_library(const std::string& kind);
// Loads it, without any call of it.
[[nodiscard]] void* load_driver(const std::string& path);
// Initializes the driver.
[[nodiscard]] std::unique_ptr<Accelerator> open_accelerator(const std::string& kind, int device,
                                                            void* library);

}  // namespace lintel::tools
