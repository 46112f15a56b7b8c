// Memory that messages are sent from or land in. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/region.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "common/machine.h"
#include "common/text.h"
#include "ptl_perf/errors.h"

namespace lintel::perf {

namespace {

// The devices that this process uses, which keep their drivers.
tools::Accelerator& accelerator_of(const std::string& memory) {
  static std::map<std::string, std::unique_ptr<tools::Accelerator>> opened;
  std::unique_ptr<tools::Accelerator>& accelerator = opened[memory];
  if (accelerator) return *accelerator;
  const std::string kind = memory.substr(0, memory.find(':'));
  try {
    void* const driver = tools::load_driver(tools::driver_library(kind));
    accelerator =
        tools::open_accelerator(kind, std::stoi(memory.substr(memory.find(':') + 1)), driver);
  } catch (const std::exception& error) {
    throw Failure(ExitCode::failed, "no memory of " + memory + ": " + error.what());
  }
  return *accelerator;
}

}  // namespace

Region::Region(std::uint64_t size_bytes, std::uint64_t slots, std::uint64_t guard_bytes,
               bool huge_pages, const std::string& memory)
    : size_bytes_(size_bytes), slots_(slots) {
  // Slots start on cache lines, as buffers that someone cares about do.
  const std::uint64_t aligned = (std::max<std::uint64_t>(size_bytes, 1) + 63) / 64 * 64;
  stride_bytes_ = aligned + (guard_bytes + 63) / 64 * 64;
  if (memory == "host")
    take_host_memory(huge_pages);
  else
    take_device_memory(memory);
}

void Region::take_host_memory(bool huge_pages) {
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
                  "no memory for " + std::to_string(slots_) + " buffers of " +
                      tools::format_bytes(size_bytes_) + " (" + tools::format_bytes(available) +
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

void Region::take_device_memory(const std::string& memory) {
  accelerator_ = &accelerator_of(memory);
  try {
    start_ = static_cast<std::byte*>(accelerator_->allocate(length_bytes()));
    const std::vector<std::byte> guards(stride_bytes_, guard);
    for (std::uint64_t number = 0; number < slots_; ++number)
      accelerator_->copy(slot(number), guards.data(), stride_bytes_);
  } catch (const std::exception& error) {
    throw Failure(ExitCode::failed, "no memory of " + memory + " for " + std::to_string(slots_) +
                                        " buffers of " + tools::format_bytes(size_bytes_) + ": " +
                                        error.what());
  }
  copy_ = std::make_unique<std::byte[]>(stride_bytes_);
}

Region::~Region() {
  if (accelerator_ == nullptr) {
    munmap(mapped_, mapped_bytes_);
    return;
  }
  try {
    accelerator_->release(start_);
  } catch (const std::exception&) {  // the driver gives it back when the process ends
  }
}

std::byte* Region::view(std::uint64_t number) const {
  if (accelerator_ == nullptr) return slot(number);
  accelerator_->copy(copy_.get(), slot(number), stride_bytes_);
  return copy_.get();
}

void Region::write_back(std::uint64_t number) const {
  if (accelerator_ != nullptr && size_bytes_ != 0)
    accelerator_->copy(slot(number), copy_.get(), size_bytes_);
}

bool Region::guard_intact(std::uint64_t slot_number) const {
  const std::byte* const begin = view(slot_number);
  const std::byte* first = begin + size_bytes_;
  const std::byte* last = begin + stride_bytes_;
  return std::all_of(first, last, [](std::byte byte) { return byte == guard; });
}

}  // namespace lintel::perf
