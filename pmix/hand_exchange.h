// A barrier and stored values for processes that know nothing but each other's nids and pids: over
// Portals, on portal table entries of the physical non-matching interface that programs rarely use.
// Set-up path.
#pragma once

#include <portals4.h>

#include <chrono>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "job_values.h"

namespace lintel {

class HandExchange {
 public:
  // `wait`: how long for a peer that was never seen.
  HandExchange(uint32_t rank, const std::vector<ptl_process_t>& processes,
               std::chrono::seconds wait);
  ~HandExchange();
  HandExchange(const HandExchange&) = delete;
  HandExchange& operator=(const HandExchange&) = delete;

  // Each returns an empty text, or what went wrong.
  [[nodiscard]] std::string open(ptl_interface_t iface);
  [[nodiscard]] std::string barrier();
  [[nodiscard]] std::string store(const std::string& key, std::span<const std::byte> value);
  [[nodiscard]] std::string fetch(uint32_t rank, const std::string& key,
                                  std::vector<std::byte>& value);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Outcome : uint8_t { done, not_there_yet, unreachable, failed };

  [[nodiscard]] int start_signal(uint32_t to, uint64_t data, uintptr_t attempt);
  [[nodiscard]] std::string signal(uint32_t to, uint64_t data);
  [[nodiscard]] std::string signal_all(const std::vector<uint32_t>& targets, uint64_t data);
  [[nodiscard]] std::string await(uint32_t from, uint64_t data);
  [[nodiscard]] std::string read(uint32_t from, size_t offset, std::span<std::byte> into);
  template <typename Start>
  [[nodiscard]] std::string until_reached(uint32_t peer, Start&& start);
  struct Wait;
  [[nodiscard]] Outcome await_end(int code, uintptr_t attempt, Wait& wait);
  void tell_of(Wait& wait) const;
  [[nodiscard]] std::string describe(uint32_t rank) const;
  [[nodiscard]] std::string within_the_wait() const;
  [[nodiscard]] std::string why_unreached(uint32_t rank) const;

  const uint32_t rank_;
  const std::vector<ptl_process_t>& processes_;
  const std::chrono::seconds wait_;
  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t arrivals_ = PTL_EQ_NONE;
  ptl_handle_eq_t ends_ = PTL_EQ_NONE;
  ptl_handle_md_t memory_ = PTL_INVALID_HANDLE;  // all of the process's own memory
  std::vector<ptl_handle_le_t> entries_;
  std::vector<ptl_pt_index_t> portals_;
  StoredValues stored_;         // readable by others
  std::vector<bool> reached_;   // by rank: the process has answered once
  std::set<uint64_t> arrived_;  // signals that came early
  uint64_t generation_ = 0;     // barriers begun
  uintptr_t attempts_ = 0;
};

}  // namespace lintel
