// Whether an entry matches a message, and when it is used up (spec 2.5, 3.12.1). Set-up path.
#pragma once

#include "fuzz/state.h"

namespace lintel::fuzz {

[[nodiscard]] inline bool matches(const Program& program, const Entry& e, const Message& m) {
  if (!program.matching) return true;
  return ((m.tag ^ e.tag) & ~e.ignored_tags) == 0 && (e.source < 0 || e.source == m.endpoint);
}

[[nodiscard]] inline bool used_up(const Entry& e, const LiveEntry& live) {
  if (e.has(PTL_ME_USE_ONCE)) return true;
  return e.has(PTL_ME_MANAGE_LOCAL) && e.min_free != 0 &&
         e.memory.length() - live.offset < e.min_free;
}

// Whether the start of a message identifies the entry. An empty message may begin behind its end.
[[nodiscard]] inline bool is_placed(const Entry& e, uint64_t offset) {
  return offset < e.memory.length();
}

// The data of such a message may still be arriving when other calls are made. Messages of a process
// to itself that are longer than this are copied later.
inline constexpr uint64_t longest_at_once = 80;
[[nodiscard]] inline bool is_slow(const Message& m) { return m.length > longest_at_once; }

}  // namespace lintel::fuzz
