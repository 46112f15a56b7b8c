// Memory that messages are sent from or land in: slots of one size, page aligned. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel::perf {

class Region {
 public:
  /** `slots` slots for messages of `size_bytes`, `guard_bytes` of guard after each; every page is
   *  touched. Huge pages are a wish. Throws if the machine has not that much memory to spare. */
  Region(std::uint64_t size_bytes, std::uint64_t slots, std::uint64_t guard_bytes,
         bool huge_pages = false);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* start() const { return start_; }
  std::uint64_t length_bytes() const { return stride_bytes_ * slots_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint64_t slots() const { return slots_; }
  std::uint64_t stride_bytes() const { return stride_bytes_; }
  std::byte* slot(std::uint64_t number) const { return start_ + (number % slots_) * stride_bytes_; }

  static constexpr std::byte guard{0xa5};

  /** Whether nothing was written behind the message of this slot. */
  bool guard_intact(std::uint64_t slot_number) const;

 private:
  std::uint64_t size_bytes_;
  std::uint64_t slots_;
  std::uint64_t stride_bytes_;
  std::uint64_t mapped_bytes_ = 0;
  void* mapped_ = nullptr;
  std::byte* start_ = nullptr;
};

}  // namespace lintel::perf
