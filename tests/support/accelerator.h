// A device in tests: memory that the processor cannot access, through the driver's own functions.
// The driver is the stand-in of fake_devices/, or, with LINTEL_TEST_DRIVER=real, that of the
// machine. Set-up path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lintel::tools {
class Accelerator;
}

namespace lintel::test {

class Accelerator {
 public:
  // Loads the driver "cuda", "hip" or "ze" and initializes it. Once in a process, before PtlInit,
  // or else before memory is named to Portals. Throws if there is no driver or no device.
  [[nodiscard]] static Accelerator& load(const std::string& kind, int device = 0);

  // Loads the library of the driver without any call.
  static void load_library(const std::string& kind);
  // Whether this process has loaded a driver.
  [[nodiscard]] static bool is_loaded();
  // Whether the driver is a stand-in.
  [[nodiscard]] static bool is_fake();

  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  // These throw if the driver refuses.
  [[nodiscard]] void* allocate(size_t bytes);
  [[nodiscard]] void* allocate_managed(size_t bytes);
  void release(void* base);
  // Between a device and the host, or devices; waits for the end.
  void copy(void* to, const void* from, size_t bytes);

  // The memory of a stand-in behind an address of its device, as the processor sees it.
  [[nodiscard]] std::byte* view(const void* address) const;
  // Settings and counts of a stand-in: fake_devices/engine.h.
  void set(const char* name, uint64_t value);
  [[nodiscard]] uint64_t count(const char* name) const;

 private:
  explicit Accelerator(std::unique_ptr<tools::Accelerator> driver);

  std::unique_ptr<tools::Accelerator> driver_;
};

// Memory of a device that is released at the end.
class DeviceBuffer {
 public:
  DeviceBuffer(Accelerator& accelerator, size_t bytes)
      : accelerator_(&accelerator), base_(accelerator.allocate(bytes)), bytes_(bytes) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (base_ != nullptr) accelerator_->release(base_);
  }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(base_); }
  [[nodiscard]] size_t size() const { return bytes_; }
  void release() {
    accelerator_->release(base_);
    base_ = nullptr;
  }

  void write(const void* from, size_t bytes, size_t offset = 0) {
    accelerator_->copy(data() + offset, from, bytes);
  }
  void read(void* to, size_t bytes, size_t offset = 0) const {
    accelerator_->copy(to, data() + offset, bytes);
  }
  void fill(uint8_t value) { write(std::vector<uint8_t>(bytes_, value).data(), bytes_); }
  [[nodiscard]] std::vector<uint8_t> contents() const {
    std::vector<uint8_t> bytes(bytes_);
    read(bytes.data(), bytes_);
    return bytes;
  }

 private:
  Accelerator* accelerator_;
  void* base_;
  size_t bytes_;
};

}  // namespace lintel::test
