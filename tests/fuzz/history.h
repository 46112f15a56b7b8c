// The observations of a portal at the end of a phase: the operations on it with their times, and
// the events of its queue. Set-up path.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "fuzz/observation.h"
#include "fuzz/program.h"

namespace lintel::fuzz {

// One operation on the portal and its time.
struct Element {
  Action action = Action::send;
  uint32_t id = 0;  // message or entry
  const CallSeen* call = nullptr;
  uint64_t begin_ns = 0;
  uint64_t end_ns = never;
  bool may_vanish = false;  // PTL_MD_UNRELIABLE
};

// All observations of a portal.
struct PortalHistory {
  const Program* program = nullptr;
  int endpoint = 0;
  int portal = 0;
  uint32_t pt_index = 0;
  const std::vector<Taken>* log = nullptr;
  std::span<const MessageSeen> messages;
  std::span<const Count> descriptor_counts;
  std::array<Count, portal_counters> counts{};
  std::byte* memory = nullptr;           // memory of the endpoint's entries
  std::vector<ptl_process_t> processes;  // addresses of the endpoints, as used in operations
  uint32_t uid = 0;
  std::vector<std::vector<Element>> sequences;  // each in its own order
};

// The user_ptr of the event of an entry or a search is entry_user_base plus its id. The match bits
// of a message contain its id above tag_bits.
[[nodiscard]] inline uint64_t user_number(const ptl_event_t& event) {
  return reinterpret_cast<uintptr_t>(event.user_ptr);
}
inline constexpr uint64_t entry_user_base = 0x100000;
inline constexpr int tag_bits = 8;

}  // namespace lintel::fuzz
