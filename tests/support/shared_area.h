// Memory that the ranks of one test share: an anonymous mapping made before they are forked. Set-up
// path.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lintel::test {

inline constexpr int max_ranks = 16;
inline constexpr int values_per_rank = 16;
inline constexpr std::size_t value_bytes = 64;
inline constexpr int flags_per_rank = 8;

// Written by one rank, read by the others and by the parent.
struct RankState {
  std::atomic<uint32_t> barriers_entered;
  std::atomic<uint32_t> failed;             // 1 once `message` says why
  std::atomic<uint32_t> killed_on_purpose;  // this rank is meant to end by SIGKILL
  std::atomic<const char*> file;            // where the rank is, for the report of a hang; the
  std::atomic<uint32_t> line;               // literals have the same address in the parent
  std::atomic<const char*> activity;
  std::array<std::atomic<uint64_t>, flags_per_rank> flags;
  alignas(value_bytes) std::byte values[values_per_rank][value_bytes];
  char message[16384];
};

struct SharedArea {
  std::atomic<uint32_t> changes;  // incremented at each change that ranks wait for, and wakes them
  std::atomic<uint32_t> any_failed;  // then the other ranks stop
  std::atomic<int> pids[max_ranks];
  RankState ranks[max_ranks];

  void announce() noexcept;  // increments `changes`, wakes all waiting ranks
  void wait_for_change(uint32_t seen_changes) noexcept;  // returns after a change or 50 ms
};

// Owner of the mapping; the forked ranks inherit it.
class SharedMapping {
 public:
  SharedMapping();
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  [[nodiscard]] SharedArea& area() const noexcept { return *area_; }

 private:
  SharedArea* area_ = nullptr;
};

}  // namespace lintel::test
