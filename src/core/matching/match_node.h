// The part of a list entry that the match list works with.
// Message path: plain data, guarded by the lock of the portal table entry.
#pragma once

#include <cstdint>

#include "core/matching/match_criteria.h"

namespace lintel {

struct MatchGroup;

// Base of what is kept in a MatchList. `criteria` is set before append() and constant while the
// node is on a list; everything else belongs to the list. The first cache line holds what a short
// list needs.
struct MatchNode {
  MatchCriteria criteria;
  uint64_t sequence = 0;  // grows in posting order within one list
  MatchNode* next_in_list = nullptr;
  MatchNode* previous_in_list = nullptr;
  // Entries with the same key, in posting order. The first of them is the leader: only the leader
  // is in its group's table, and its previous_of_key is the last.
  MatchNode* next_of_key = nullptr;
  MatchNode* previous_of_key = nullptr;
  MatchGroup* group = nullptr;  // null while the node is not indexed
};

}  // namespace lintel
