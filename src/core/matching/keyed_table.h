// A hash table of pointers with open addressing: linear probing, at most half full, and removal
// that closes the gap, so that an emptied table needs no rebuilding. A slot holds the whole hash: a
// probe reads only the node that it searches for.
// Message path: find() and erase(); find_or_insert() allocates only when the table grows.
#pragma once

#include <cstdint>

#include "core/matching/keyed_memory.h"

namespace lintel {

template <typename Node>
struct KeyedSlot {
  uint64_t hash;
  Node* node;  // null: free
};

template <typename Node>
class KeyedTable {
 public:
  using Slot = KeyedSlot<Node>;

  KeyedTable() = default;
  KeyedTable(const KeyedTable&) = delete;
  KeyedTable& operator=(const KeyedTable&) = delete;
  ~KeyedTable() { release_slots(); }

  // The first slot with `hash` whose node satisfies `is_wanted`, or null.
  template <typename IsWanted>
  [[nodiscard]] static Slot* find(Slot* slots, uint64_t mask, uint64_t hash,
                                  IsWanted&& is_wanted) noexcept {
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
      Slot& slot = slots[i];
      if (slot.node == nullptr) return nullptr;
      if (slot.hash == hash && is_wanted(*slot.node)) return &slot;
    }
  }
  template <typename IsWanted>
  [[nodiscard]] Slot* find(uint64_t hash, IsWanted&& is_wanted) const noexcept {
    return find(slots_, mask_, hash, is_wanted);
  }

  // The slot with `hash` whose node satisfies `is_wanted`; if there is none, a slot that holds
  // `node` from now on. Null, and nothing changed, when the table is full and no larger one can be
  // had.
  template <typename IsWanted>
  [[nodiscard]] Slot* find_or_insert(uint64_t hash, Node& node, IsWanted&& is_wanted) noexcept {
    uint64_t i = hash & mask_;
    for (; slots_[i].node != nullptr; i = (i + 1) & mask_) {
      if (slots_[i].hash == hash && is_wanted(*slots_[i].node)) return &slots_[i];
    }
    if (used_ * 2 > mask_) {
      // Slots that stay free end every probe; without memory the table fills up to 7/8.
      if (!grow() && used_ + 1 > (mask_ + 1) / 8 * 7) return nullptr;
      i = free_slot(hash);
    }
    slots_[i] = Slot{hash, &node};
    ++used_;
    return &slots_[i];
  }

  void erase(Slot& slot) noexcept {
    // Later slots of the same run move forward unless that would put them before their home.
    uint64_t gap = static_cast<uint64_t>(&slot - slots_);
    for (uint64_t i = (gap + 1) & mask_; slots_[i].node != nullptr; i = (i + 1) & mask_) {
      const uint64_t home_to_here = (i - slots_[i].hash) & mask_;
      const uint64_t gap_to_here = (i - gap) & mask_;
      if (home_to_here < gap_to_here) continue;
      slots_[gap] = slots_[i];
      gap = i;
    }
    slots_[gap].node = nullptr;
    --used_;
  }

  // A number for each slot, until the table grows. Any number names one.
  [[nodiscard]] uint64_t number_of(const Slot& slot) const noexcept {
    return static_cast<uint64_t>(&slot - slots_);
  }
  [[nodiscard]] Slot& slot(uint64_t number) const noexcept { return slots_[number & mask_]; }

  [[nodiscard]] Slot* slots() noexcept { return slots_; }
  [[nodiscard]] uint64_t mask() const noexcept { return mask_; }
  [[nodiscard]] uint64_t used() const noexcept { return used_; }

 private:
  static constexpr uint64_t inline_slots = 8;

  [[nodiscard]] uint64_t free_slot(uint64_t hash) const noexcept {
    uint64_t i = hash & mask_;
    while (slots_[i].node != nullptr) i = (i + 1) & mask_;
    return i;
  }

  [[nodiscard]] bool grow() noexcept {
    const uint64_t old_count = mask_ + 1;
    const uint64_t new_count = old_count == inline_slots ? old_count * 4 : old_count * 2;
    void* const memory = keyed_memory.acquire(new_count * sizeof(Slot));
    if (memory == nullptr) return false;
    Slot* const old_slots = slots_;
    slots_ = static_cast<Slot*>(memory);
    mask_ = new_count - 1;
    for (uint64_t i = 0; i < old_count; ++i) {
      if (old_slots[i].node != nullptr) slots_[free_slot(old_slots[i].hash)] = old_slots[i];
    }
    if (old_slots == inline_)
      for (Slot& slot : inline_) slot = Slot{};
    else
      keyed_memory.release(old_slots, old_count * sizeof(Slot));
    return true;
  }

  void release_slots() noexcept {
    if (slots_ != inline_) keyed_memory.release(slots_, (mask_ + 1) * sizeof(Slot));
  }

  Slot* slots_ = inline_;
  uint64_t mask_ = inline_slots - 1;
  uint64_t used_ = 0;
  Slot inline_[inline_slots] = {};
};

}  // namespace lintel
