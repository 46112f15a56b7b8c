// Counters of one physical interface, readable as status registers and printed with PTL_STATS=1.
// Message path: every counter has one writer at a time, so that counting is an ordinary addition.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/message.h"

namespace lintel {

// One writer at a time, any number of readers.
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

// Several writers; for what happens rarely.
class SharedCounter {
 public:
  void add(uint64_t n) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  void increment() noexcept { add(1); }
  [[nodiscard]] uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct TrafficCounters {
  Counter messages[message_kinds];
  Counter bytes[message_kinds];
  void count(MessageKind kind, uint64_t payload_bytes) noexcept {
    messages[static_cast<unsigned>(kind)].increment();
    bytes[static_cast<unsigned>(kind)].add(payload_bytes);
  }
};

struct PollCounters {
  Counter polls;
  Counter polls_with_work;
  SharedCounter sleeps;
  SharedCounter wakeups;
};

}  // namespace lintel
