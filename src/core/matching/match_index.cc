// Groups of a match index: made, found and retired (see match_index.h).
// Message path: remove() and the walk; insert() allocates only on growth.
#include "core/matching/match_index.h"

#include <algorithm>
#include <new>

#include "util/assert.h"

namespace lintel {

struct MatchGroup {
  uint64_t ignore_bits;
  uint64_t source_mask;
  uint32_t position;       // index of its probe
  MatchGroup* next_spare;  // used while the group has no nodes
  KeyedTable<MatchNode> table;
  uint64_t recent_slot;  // slot of the last insertion or removal: many repeat a key

  [[nodiscard]] bool has_shape_of(const MatchCriteria& criteria) const noexcept {
    return ((criteria.ignore_bits ^ ignore_bits) | (criteria.source_mask ^ source_mask)) == 0;
  }
  [[nodiscard]] uint64_t hash_of(const MatchCriteria& criteria, uint64_t seed) const noexcept {
    return keyed_hash(criteria.match_bits & ~ignore_bits, criteria.source & source_mask, seed);
  }
  // The slot of the nodes with that key if it is the recent one, else null. `criteria` has the
  // shape of the group.
  [[nodiscard]] KeyedSlot<MatchNode>* recent_slot_of(const MatchCriteria& criteria) const noexcept {
    KeyedSlot<MatchNode>& slot = table.slot(recent_slot);
    return slot.node != nullptr && slot.node->criteria.matches(criteria.match_bits, criteria.source)
               ? &slot
               : nullptr;
  }
};

namespace {

// Returns a test whether a node of the table leads the nodes with the key of `criteria`, which has
// the shape of the group.
auto leads(const MatchCriteria& criteria) noexcept {
  return [&criteria](const MatchNode& node) {
    return node.criteria.matches(criteria.match_bits, criteria.source);
  };
}

uint64_t shape_hash(const MatchCriteria& criteria, uint64_t seed) noexcept {
  return keyed_hash(criteria.ignore_bits, criteria.source_mask, seed);
}

}  // namespace

MatchIndex::MatchIndex() noexcept
    : probes_(inline_probes_),
      seed_(keyed_hash_seed()),
      groups_(inline_group_pointers_),
      cursors_(inline_cursors_) {}

MatchIndex::~MatchIndex() {
  while (group_count_ > 0) retire_group(*groups_[0]);
  while (spare_groups_ != nullptr) {
    MatchGroup* const group = spare_groups_;
    spare_groups_ = group->next_spare;
    group->~MatchGroup();
    keyed_memory.release(group, sizeof *group);
  }
  if (probes_ != inline_probes_) keyed_memory.release(probes_, bytes_for_groups(group_capacity_));
}

MatchIndex* MatchIndex::create() noexcept {
  void* const memory = keyed_memory.acquire(sizeof(MatchIndex));
  return memory == nullptr ? nullptr : new (memory) MatchIndex();
}

void MatchIndex::destroy(MatchIndex* index) noexcept {
  if (index == nullptr) return;
  index->~MatchIndex();
  keyed_memory.release(index, sizeof *index);
}

bool MatchIndex::insert(MatchNode& node) noexcept {
  MatchGroup* group = recent_group_;
  if (group == nullptr || !group->has_shape_of(node.criteria)) {
    group = find_group(node.criteria);
    if (group == nullptr) group = add_group(node.criteria);
    if (group == nullptr) return false;
    recent_group_ = group;
  }
  const uint64_t mask_before = group->table.mask();
  const KeyedSlot<MatchNode>* slot = group->recent_slot_of(node.criteria);
  if (slot == nullptr) {
    slot = group->table.find_or_insert(group->hash_of(node.criteria, seed_), node,
                                       leads(node.criteria));
    // The group is not new: the first nodes of a table need no memory.
    if (slot == nullptr) return false;
    group->recent_slot = group->table.number_of(*slot);
  }
  MatchNode& leader = *slot->node;
  if (&leader == &node) {
    node.previous_of_key = &node;
    if (group->table.mask() != mask_before) refresh_probe(*group);
  } else {
    MatchNode& last = *leader.previous_of_key;
    last.next_of_key = &node;
    node.previous_of_key = &last;
    leader.previous_of_key = &node;
  }
  node.next_of_key = nullptr;
  node.group = group;
  return true;
}

void MatchIndex::remove(MatchNode& node) noexcept {
  MatchGroup& group = *node.group;
  MatchNode* const next = node.next_of_key;
  MatchNode& previous = *node.previous_of_key;
  const bool is_leader = previous.next_of_key == nullptr;
  LINTEL_ASSERT(is_leader || previous.next_of_key == &node);
  LINTEL_ASSERT(group.table.used() != 0);
  if (!is_leader) {
    previous.next_of_key = next;
    if (next != nullptr) {
      next->previous_of_key = &previous;
      return;
    }
  }
  // The node is the leader, or the last one of its key, to which the leader has a link.
  KeyedSlot<MatchNode>* const recent = group.recent_slot_of(node.criteria);
  KeyedSlot<MatchNode>& slot =
      recent != nullptr
          ? *recent
          : *group.table.find(group.hash_of(node.criteria, seed_), leads(node.criteria));
  group.recent_slot = group.table.number_of(slot);
  if (!is_leader) {
    slot.node->previous_of_key = &previous;
  } else if (next != nullptr) {
    next->previous_of_key = &previous;
    slot.node = next;
  } else {
    group.table.erase(slot);
    if (group.table.used() == 0) retire_group(group);
  }
}

void MatchIndex::start_walk(uint64_t match_bits, uint64_t source) noexcept {
  for (uint32_t i = 0; i < group_count_; ++i) {
    const KeyedSlot<MatchNode>* const slot = probes_[i].find(match_bits, source, seed_);
    cursors_[i] = slot == nullptr ? nullptr : slot->node;
  }
}

MatchNode* MatchIndex::next_candidate() noexcept {
  MatchNode** best = nullptr;
  for (uint32_t i = 0; i < group_count_; ++i) {
    if (cursors_[i] == nullptr) continue;
    if (best == nullptr || cursors_[i]->sequence < (*best)->sequence) best = &cursors_[i];
  }
  if (best == nullptr) return nullptr;
  MatchNode* const candidate = *best;
  LINTEL_ASSERT(candidate->next_of_key == nullptr ||
                candidate->next_of_key->sequence > candidate->sequence);
  *best = candidate->next_of_key;
  return candidate;
}

MatchGroup* MatchIndex::find_group(const MatchCriteria& criteria) const noexcept {
  const KeyedSlot<MatchGroup>* const slot =
      shapes_.find(shape_hash(criteria, seed_),
                   [&](const MatchGroup& group) { return group.has_shape_of(criteria); });
  return slot == nullptr ? nullptr : slot->node;
}

MatchGroup* MatchIndex::add_group(const MatchCriteria& criteria) noexcept {
  if (group_count_ == group_capacity_ && !grow_groups()) return nullptr;
  if (spare_groups_ == nullptr) {
    void* const memory = keyed_memory.acquire(sizeof(MatchGroup));
    if (memory == nullptr) return nullptr;
    spare_groups_ = new (memory) MatchGroup{};
  }
  MatchGroup& group = *spare_groups_;
  group.ignore_bits = criteria.ignore_bits;
  group.source_mask = criteria.source_mask;
  const auto is_new = [](const MatchGroup&) { return false; };
  if (shapes_.find_or_insert(shape_hash(criteria, seed_), group, is_new) == nullptr)
    return nullptr;  // the group stays to spare
  spare_groups_ = group.next_spare;
  group.position = group_count_;
  groups_[group_count_++] = &group;
  refresh_probe(group);
  return &group;
}

void MatchIndex::retire_group(MatchGroup& group) noexcept {
  LINTEL_ASSERT(group_count_ != 0 && groups_[group.position] == &group);
  const uint32_t last = --group_count_;
  if (group.position != last) {
    probes_[group.position] = probes_[last];
    groups_[group.position] = groups_[last];
    groups_[group.position]->position = group.position;
  }
  const MatchCriteria shape{.ignore_bits = group.ignore_bits, .source_mask = group.source_mask};
  shapes_.erase(*shapes_.find(shape_hash(shape, seed_),
                              [&](const MatchGroup& other) { return &other == &group; }));
  if (recent_group_ == &group) recent_group_ = nullptr;
  group.next_spare = spare_groups_;
  spare_groups_ = &group;
}

bool MatchIndex::grow_groups() noexcept {
  const uint32_t capacity = group_capacity_ * 2;
  void* const memory = keyed_memory.acquire(bytes_for_groups(capacity));
  if (memory == nullptr) return false;
  auto* const probes = static_cast<MatchProbe*>(memory);
  auto* const groups = reinterpret_cast<MatchGroup**>(probes + capacity);
  std::copy_n(probes_, group_count_, probes);
  std::copy_n(groups_, group_count_, groups);
  if (probes_ != inline_probes_) keyed_memory.release(probes_, bytes_for_groups(group_capacity_));
  probes_ = probes;
  groups_ = groups;
  cursors_ = reinterpret_cast<MatchNode**>(groups + capacity);
  group_capacity_ = capacity;
  return true;
}

void MatchIndex::refresh_probe(MatchGroup& group) noexcept {
  probes_[group.position] = {.significant_bits = ~group.ignore_bits,
                             .source_mask = group.source_mask,
                             .slots = group.table.slots(),
                             .slot_mask = group.table.mask()};
}

}  // namespace lintel
