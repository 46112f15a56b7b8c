// Finds the earliest posted entry that matches a message without walking the list. Entries are
// grouped by the shape of their wildcards (ignore_bits and source_mask); each group is a hash table
// from what is significant to the entries that ask for it, in posting order.
// Message path: earliest(), remove(), the walk. insert() allocates when a table grows or a shape
// is seen while no group is to spare; both are kept for reuse.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/keyed_hash.h"
#include "core/matching/keyed_table.h"
#include "core/matching/match_node.h"

namespace lintel {

// Data of a group that a search reads. The probes of all groups lie in one array, two to a cache
// line.
struct MatchProbe {
  uint64_t significant_bits;
  uint64_t source_mask;
  KeyedSlot<MatchNode>* slots;
  uint64_t slot_mask;

  [[nodiscard]] KeyedSlot<MatchNode>* find(uint64_t match_bits, uint64_t source,
                                           uint64_t seed) const noexcept {
    const uint64_t hash = keyed_hash(match_bits & significant_bits, source & source_mask, seed);
    return KeyedTable<MatchNode>::find(slots, slot_mask, hash, [&](const MatchNode& node) {
      return node.criteria.matches(match_bits, source);
    });
  }
};

class alignas(64) MatchIndex {
 public:
  // Null when there is no memory.
  [[nodiscard]] static MatchIndex* create() noexcept;
  // The nodes in it, if any, are left as they are.
  static void destroy(MatchIndex* index) noexcept;

  MatchIndex(const MatchIndex&) = delete;
  MatchIndex& operator=(const MatchIndex&) = delete;

  // `node` must have been posted after every node in the index. False, and nothing changed, when
  // memory cannot be had.
  [[nodiscard]] bool insert(MatchNode& node) noexcept;
  void remove(MatchNode& node) noexcept;

  // The matching node that was posted first.
  [[nodiscard]] MatchNode* earliest(uint64_t match_bits, uint64_t source) const noexcept {
    MatchNode* best = nullptr;
    for (uint32_t i = 0; i < group_count_; ++i) {
      const KeyedSlot<MatchNode>* const slot = probes_[i].find(match_bits, source, seed_);
      if (slot == nullptr) continue;
      if (best == nullptr || slot->node->sequence < best->sequence) best = slot->node;
    }
    return best;
  }

  // All matching nodes in posting order, for callers that reject some: start, then call
  // next_candidate() until null. The index must not change meanwhile.
  void start_walk(uint64_t match_bits, uint64_t source) noexcept;
  [[nodiscard]] MatchNode* next_candidate() noexcept;

  [[nodiscard]] uint32_t group_count() const noexcept { return group_count_; }

 private:
  static constexpr uint32_t inline_groups = 4;

  MatchIndex() noexcept;
  ~MatchIndex();

  [[nodiscard]] MatchGroup* find_group(const MatchCriteria& criteria) const noexcept;
  [[nodiscard]] MatchGroup* add_group(const MatchCriteria& criteria) noexcept;
  void retire_group(MatchGroup& group) noexcept;
  [[nodiscard]] bool grow_groups() noexcept;
  void refresh_probe(MatchGroup& group) noexcept;

  [[nodiscard]] static constexpr size_t bytes_for_groups(size_t capacity) noexcept {
    return capacity * (sizeof(MatchProbe) + 2 * sizeof(void*));
  }

  MatchProbe* probes_;
  uint32_t group_count_ = 0;
  uint32_t group_capacity_ = inline_groups;
  uint64_t seed_;
  MatchGroup* recent_group_ = nullptr;  // group of the last insert: most appends repeat a shape
  MatchGroup* spare_groups_ = nullptr;
  // Parallel to probes_.
  MatchGroup** groups_;
  MatchNode** cursors_;
  alignas(64) MatchProbe inline_probes_[inline_groups];
  MatchGroup* inline_group_pointers_[inline_groups];
  MatchNode* inline_cursors_[inline_groups];
  KeyedTable<MatchGroup> shapes_;  // finds the group of a shape
};

}  // namespace lintel
