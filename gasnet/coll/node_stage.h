/* node_stage.h: the memory that neighbours in a team share for its small collectives. Message path.
 *
 * A slot serves one call at a time. Few members that all want the result of a reduction read each
 * other's contributions: one cache line from each member to each other. Otherwise the member that
 * arrives last combines the contributions of all, and releases the others. Contributions are
 * combined in the order of ranks. A slot is used again when all members have finished its last
 * call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_NODE_STAGE_H
#define LINTEL_GASNET_COLL_NODE_STAGE_H

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tools/headers.h"

namespace lintel::gasnet {

constexpr unsigned int kSlots = 16;
constexpr size_t kSmallBytes = 256; /* maximum length of a vector in a slot */

/** A slot in shared memory that is initially zero. The contributions follow the slot. */
struct NodeSlot {
  alignas(64) std::atomic<uint32_t> arrived;  /* members that have arrived, in this use */
  alignas(64) std::atomic<uint32_t> released; /* the last use whose result is there */
  alignas(64) char result[kSmallBytes];
};
static_assert(sizeof(NodeSlot) == 2 * 64 + kSmallBytes);

/** Contribution of a member to the call of a slot. */
struct alignas(64) NodeContribution {
  std::atomic<uint32_t> use; /* the last use whose contribution is there, if all read it */
  alignas(16) char bytes[kSmallBytes];
};
static_assert(sizeof(NodeContribution) == 64 + kSmallBytes);

/** Follows the contributions of the last slot, for each member. */
struct alignas(64) NodeMember {
  std::atomic<uint32_t> finished; /* calls; the slots of all before this one are free */
};

class NodeStage {
 public:
  static constexpr size_t bytes(uint32_t members) {
    return kSlots * slot_bytes(members) + members * sizeof(NodeMember);
  }

  NodeStage(void* memory, uint32_t members, uint32_t index)
      : memory_(static_cast<char*>(memory)), members_(members), index_(index) {}

  uint32_t members() const { return members_; }
  bool is_leader() const { return index_ == 0; }
  NodeSlot& slot(unsigned int number) const {
    gasneti_assert(number < kSlots);
    return *reinterpret_cast<NodeSlot*>(memory_ + number * slot_bytes(members_));
  }
  NodeContribution& contribution(unsigned int number, uint32_t member) const {
    gasneti_assert(member < members_);
    return reinterpret_cast<NodeContribution*>(&slot(number) + 1)[member];
  }
  NodeContribution& own_contribution(unsigned int number) const {
    return contribution(number, index_);
  }

  /** Whether all members have finished the first `calls` calls. */
  bool have_finished(uint32_t calls);
  /** This member has finished the first `calls` calls. */
  void finish(uint32_t calls) {
    const uint32_t before = of_member(index_).finished.load(std::memory_order_relaxed);
    // Numbers of calls wrap around.
    gasneti_assert(static_cast<int32_t>(calls - before) >= 0);
    if (calls != before) of_member(index_).finished.store(calls, std::memory_order_release);
  }
  /** Shows the contribution of this member to the others. */
  void show(unsigned int number, uint32_t use) const {
    own_contribution(number).use.store(use, std::memory_order_release);
    prefetch_for_write(&own_contribution((number + 1) % kSlots));
  }
  bool is_shown(unsigned int number, uint32_t use, uint32_t member) const {
    return contribution(number, member).use.load(std::memory_order_acquire) == use;
  }
  /** @return whether this member is the last. */
  bool arrive(unsigned int number) const {
    NodeSlot& s = slot(number);
    const uint32_t arrived = s.arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
    gasneti_assert(arrived <= members_);
    if (arrived != members_) return false;
    s.arrived.store(0, std::memory_order_relaxed);
    return true;
  }
  void release(unsigned int number, uint32_t use) const {
    slot(number).released.store(use, std::memory_order_release);
  }
  bool is_released(unsigned int number, uint32_t use) const {
    return slot(number).released.load(std::memory_order_acquire) == use;
  }

 private:
  /** Takes the line of the next call from the members that have read it, during this call. */
  static void prefetch_for_write([[maybe_unused]] const void* line) {
#ifdef __x86_64__
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
  }
  static constexpr size_t slot_bytes(uint32_t members) {
    return sizeof(NodeSlot) + members * sizeof(NodeContribution);
  }
  NodeMember& of_member(uint32_t member) const {
    return reinterpret_cast<NodeMember*>(memory_ + kSlots * slot_bytes(members_))[member];
  }

  char* memory_;
  uint32_t members_;
  uint32_t index_;
  uint32_t finished_by_all_ = 0; /* calls, as far as this member has looked */
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_NODE_STAGE_H
