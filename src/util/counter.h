// Counters for statistics that any thread may read at any time. Message path.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

// Counter with one writer at a time: counting is an ordinary addition.
class Counter {
 public:
  void add(uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void increment() noexcept { add(1); }
  [[nodiscard]] uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Several writers; for what happens rarely. A copy is what was counted so far.
class SharedCounter {
 public:
  SharedCounter() = default;
  SharedCounter(const SharedCounter& other) noexcept : value_(other.get()) {}
  void add(uint64_t n) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  void increment() noexcept { add(1); }
  [[nodiscard]] uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }
  operator uint64_t() const noexcept { return get(); }  // NOLINT(google-explicit-constructor)

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace lintel
