// Support for tests of look-ups and datagrams: several processes of a node, simulated in one.
// Set-up path.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "transport/message.h"

namespace lintel::test {

inline constexpr uint32_t loopback_nid = 0x7f000001;

// Returns true as soon as `condition` is true, and false after 30 s.
template <typename Condition>
[[nodiscard]] bool wait_until(Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

// Bytes that differ for each number.
[[nodiscard]] inline std::vector<std::byte> numbered_bytes(uint64_t number, size_t length) {
  std::vector<std::byte> bytes(length);
  uint64_t state = number * 0x9e3779b97f4a7c15 + 1;
  for (std::byte& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<std::byte>(state);
  }
  return bytes;
}

// Calls `open(pid)` with one pid after the other until it returns true. It returns false if the pid
// is in use.
template <typename Open>
void with_free_pid(Open&& open) {
  static uint32_t next = 20000 + static_cast<uint32_t>(getpid()) % 10000;
  for (unsigned tries = 0; tries < 1000; ++tries)
    if (open(next++)) return;
}

}  // namespace lintel::test
