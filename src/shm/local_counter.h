// A counter that is written by one thread at a time and read by any.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

class LocalCounter {
 public:
  void add(uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace lintel
