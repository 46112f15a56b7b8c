// A portal table entry in the model: its lists, its unexpected headers, and its history. Set-up
// path.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "fuzz/observation.h"
#include "fuzz/program.h"

namespace lintel::fuzz {

enum class Life : uint8_t { absent, linked, unlinked_itself, unlinked_by_call };

struct LiveEntry {
  Life life = Life::absent;
  uint64_t offset = 0;         // locally managed
  uint32_t headers = 0;        // unexpected headers of its messages
  uint64_t pending_until = 0;  // data of long messages may arrive until then
  std::vector<std::byte> cells{};
};

struct Header {
  uint32_t message;
  uint32_t entry;
  uint64_t offset;
  uint64_t mlength;
};

struct Delivery {
  uint32_t message;
  uint32_t entry;
  uint64_t offset;
  uint64_t mlength;
};

struct State {
  bool enabled = true;
  uint32_t disabled_events = 0;  // PTL_EVENT_PT_DISABLED
  std::array<std::vector<uint32_t>, 2> lists;
  std::vector<Header> unexpected;
  std::map<uint32_t, LiveEntry> entries;
  std::array<Count, portal_counters> counts{};
  std::map<uint32_t, Count> descriptor_counts;
  std::vector<Delivery> deliveries;

  [[nodiscard]] uint64_t hash() const;
};

}  // namespace lintel::fuzz
