// The process that the run-time library waits for because it may not have started yet. It is no
// fault if that process is not reached, and the run-time library itself reports that it waits.
// Connection path.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

// nid and pid of the process, as one number; 0: no process is waited for. Any thread.
[[gnu::visibility("default")]] extern std::atomic<uint64_t> awaited_process;

[[nodiscard]] constexpr uint64_t awaited_key(uint32_t nid, uint32_t pid) noexcept {
  return uint64_t{nid} << 32 | pid;
}
[[nodiscard]] inline bool is_awaited(uint32_t nid, uint32_t pid) noexcept {
  return awaited_process.load(std::memory_order_relaxed) == awaited_key(nid, pid);
}

// Processes that refused to connect, or were refused, with the reason, which waiting does not
// change: constant text. The last few are kept. Any thread.
void note_refusal(uint32_t nid, uint32_t pid, const char* why) noexcept;
// Returns the reason of a refusal; nullptr: none is recorded.
[[nodiscard, gnu::visibility("default")]] const char* refusal_of(uint32_t nid,
                                                                 uint32_t pid) noexcept;

}  // namespace lintel
