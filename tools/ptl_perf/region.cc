// Memory that messages are sent from or land in. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/region.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "common/machine.h"
#include "common/text.h"
#include "ptl_perf/errors.h"

namespace lintel::perf {

Region::Region(std::uint64_t size_bytes, std::uint64_t slots, std::uint64_t guard_bytes,
               bool huge_pages)
    : size_bytes_(size_bytes), slots_(slots) {
  // Slots start on cache lines, as buffers that someone cares about do.
  const std::uint64_t aligned = (std::max<std::uint64_t>(size_bytes, 1) + 63) / 64 * 64;
  stride_bytes_ = aligned + (guard_bytes + 63) / 64 * 64;

  constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;
  mapped_bytes_ = length_bytes() + (huge_pages ? huge_page_bytes : 0);
  const std::uint64_t available = tools::available_memory_bytes();
  mapped_ = MAP_FAILED;
  if (available == 0 || mapped_bytes_ < available) {
    mapped_ =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (mapped_ == MAP_FAILED) {
    throw Failure(ExitCode::failed,
                  "no memory for " + std::to_string(slots) + " buffers of " +
                      tools::format_bytes(size_bytes) + " (" + tools::format_bytes(available) +
                      " available): choose a smaller --max, --window or --buffers");
  }
  start_ = static_cast<std::byte*>(mapped_);
  if (huge_pages) {
    madvise(mapped_, mapped_bytes_, MADV_HUGEPAGE);
    const auto address = reinterpret_cast<std::uintptr_t>(mapped_);
    start_ += (huge_page_bytes - address % huge_page_bytes) % huge_page_bytes;
  }
  std::memset(start_, static_cast<int>(guard), length_bytes());
}

Region::~Region() { munmap(mapped_, mapped_bytes_); }

bool Region::guard_intact(std::uint64_t slot_number) const {
  const std::byte* first = slot(slot_number) + size_bytes_;
  const std::byte* last = slot(slot_number) + stride_bytes_;
  return std::all_of(first, last, [](std::byte byte) { return byte == guard; });
}

}  // namespace lintel::perf
