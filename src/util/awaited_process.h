// The process that the run-time library waits for because it may not have started yet. That it is
// not reached is no fault, and the run-time library says itself that it waits. Connection path.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

// Its nid and pid, as one number; 0: none is waited for. Any thread.
[[gnu::visibility("default")]] extern std::atomic<uint64_t> awaited_process;

[[nodiscard]] constexpr uint64_t awaited_key(uint32_t nid, uint32_t pid) noexcept {
  return uint64_t{nid} << 32 | pid;
}
[[nodiscard]] inline bool is_awaited(uint32_t nid, uint32_t pid) noexcept {
  return awaited_process.load(std::memory_order_relaxed) == awaited_key(nid, pid);
}

}  // namespace lintel
