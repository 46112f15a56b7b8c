// Memory that messages are sent from or land in: slots of one size, page aligned, of the host or of
// a device. Set-up path. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/accelerator.h"

namespace lintel::perf {

class Region {
 public:
  /** `slots` slots for messages of `size_bytes`, `guard_bytes` of guard after each; every page is
   *  touched. Uses huge pages where there are any. `memory`: "host", or a device such as "cuda:0".
   *  Throws if there is not that much memory to spare. */
  Region(std::uint64_t size_bytes, std::uint64_t slots, std::uint64_t guard_bytes,
         bool huge_pages = false, const std::string& memory = "host");
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* start() const { return start_; }
  bool is_host() const { return accelerator_ == nullptr; }
  std::uint64_t length_bytes() const { return stride_bytes_ * slots_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint64_t slots() const { return slots_; }
  std::uint64_t stride_bytes() const { return stride_bytes_; }
  std::byte* slot(std::uint64_t number) const { return start_ + (number % slots_) * stride_bytes_; }

  /** The slot for the processor: itself, or a copy of the one in a device that is valid until the
   *  next call. */
  std::byte* view(std::uint64_t number) const;
  /** Writes the message of view(number) to the device. */
  void write_back(std::uint64_t number) const;

  static constexpr std::byte guard{0xa5};

  /** Whether nothing was written behind the message of this slot. */
  bool guard_intact(std::uint64_t slot_number) const;

 private:
  void take_host_memory(bool huge_pages);
  void take_device_memory(const std::string& memory);

  std::uint64_t size_bytes_;
  std::uint64_t slots_;
  std::uint64_t stride_bytes_;
  std::uint64_t mapped_bytes_ = 0;
  void* mapped_ = nullptr;
  std::byte* start_ = nullptr;
  tools::Accelerator* accelerator_ = nullptr;  // of a device
  std::unique_ptr<std::byte[]> copy_;          // of a slot there
};

}  // namespace lintel::perf
