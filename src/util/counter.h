// Counters for statistics that any thread may read at any time. Message path.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

// Adds to a value with one writer at a time, as a relaxed load and a store of that order do: an
// ordinary addition. Compilers do not make one instruction of two that are atomic.
template <typename T>
[[gnu::always_inline]] inline void add_unshared(
    std::atomic<T>& value, T n, std::memory_order order = std::memory_order_relaxed) noexcept {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  static_assert(sizeof(T) == sizeof value && (sizeof(T) == 4 || sizeof(T) == 8));
  T& word = reinterpret_cast<T&>(value);
  // The processor releases with each store.
  if (order != std::memory_order_relaxed) std::atomic_signal_fence(order);
  if constexpr (sizeof(T) == 8)
    asm("addq %1, %0" : "+m"(word) : "er"(n) : "cc");
  else
    asm("addl %1, %0" : "+m"(word) : "er"(n) : "cc");
#else
  value.store(value.load(std::memory_order_relaxed) + n, order);
#endif
}

// Counter with one writer at a time.
class Counter {
 public:
  void add(uint64_t n) noexcept { add_unshared(value_, n); }
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
