/* network_stage.cc: chains of triggered operations. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/network_stage.h"

#include "job/job.h"
#include "network/network.h"

namespace lintel::gasnet {
namespace {

/** The purpose of an entry. */
enum class Target : uint8_t { kValue, kCombine, kResult, kRelease };

/* Kept until the process ends. */
ptl_handle_md_t g_memory; /* the whole address space */

constexpr uint64_t match_bits_of(uint32_t team, unsigned int slot, unsigned int level,
                                 Target target) {
  return uint64_t{team} << 32 | uint64_t{slot} << 16 | uint64_t{level} << 8 |
         static_cast<uint8_t>(target);
}

ptl_size_t offset_of(const void* address) { return reinterpret_cast<ptl_size_t>(address); }

}  // namespace

bool NetworkStage::open() {
  const ptl_ni_limits_t& limits = network().limits();
  if (limits.max_volatile_size < kSmallBytes || limits.max_atomic_size < kSmallBytes) return false;
  network().allocate(PortalIndex::kCollectives, 0, PTL_EQ_NONE);
  ptl_md_t md{};
  md.length = PTL_SIZE_MAX;
  md.options = PTL_MD_VOLATILE;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = PTL_CT_NONE;
  g_memory = network().bind(md);
  return true;
}

NetworkStage::NetworkStage(uint32_t team, const TeamPlaces& places)
    : team_(team),
      places_(places),
      levels_(most_steps(places.count()) + 1),
      levels_of_slots_(kSlots, std::vector<Level>(levels_)),
      ends_(kSlots),
      results_(kSlots),
      memory_(new char[kSlots * levels_ * kSmallBytes + 64]()),
      values_(kSlots) {
  char* next = memory_.get() + (64 - offset_of(memory_.get()) % 64);
  for (std::vector<char*>& values : values_)
    for (unsigned int level = 0; level < levels_; ++level, next += kSmallBytes)
      values.push_back(next);
}

NetworkStage::~NetworkStage() {
  for (const ptl_handle_me_t entry : entries_)
    while (PtlMEUnlink(entry) == PTL_IN_USE) {
    }
  for (const ptl_handle_ct_t counter : counters_) {
    PtlCTCancelTriggered(counter);
    PtlCTFree(counter);
  }
}

bool NetworkStage::add(Counter& counter) {
  if (PtlCTAlloc(network().interface(), &counter.handle) != PTL_OK) return false;
  counters_.push_back(counter.handle);
  return true;
}

bool NetworkStage::add_entry(uint64_t match_bits, void* start, size_t bytes,
                             ptl_handle_ct_t counter, unsigned int operation) {
  ptl_me_t entry{};
  entry.start = start;
  entry.length = bytes;
  entry.ct_handle = counter;
  entry.uid = PTL_UID_ANY;
  entry.options = operation | (PtlHandleIsEqual(counter, PTL_CT_NONE) ? 0 : PTL_ME_EVENT_CT_COMM);
  entry.match_id.rank = PTL_RANK_ANY;
  entry.match_bits = match_bits;
  ptl_handle_me_t handle;
  if (PtlMEAppend(network().interface(), number_of(PortalIndex::kCollectives), &entry,
                  PTL_PRIORITY_LIST, nullptr, &handle) != PTL_OK)
    return false;
  entries_.push_back(handle);
  return true;
}

bool NetworkStage::prepare() {
  for (unsigned int slot = 0; slot < kSlots; ++slot) {
    if (!add(ends_[slot])) return false;
    for (unsigned int number = 0; number < levels_; ++number) {
      Level& level = levels_of_slots_[slot][number];
      char* const value = values_[slot][number];
      if (!add(level.arrived) || !add(level.combined) ||
          !add_entry(match_bits_of(team_, slot, number, Target::kValue), value, kSmallBytes,
                     level.arrived.handle, PTL_ME_OP_PUT) ||
          !add_entry(match_bits_of(team_, slot, number, Target::kCombine), value, kSmallBytes,
                     level.combined.handle, PTL_ME_OP_PUT))
        return false;
    }
  }
  return true;
}

bool NetworkStage::prepare_release(const NodeStage& node) {
  for (unsigned int slot = 0; slot < kSlots; ++slot) {
    NodeSlot& shared = node.slot(slot);
    if (!add(results_[slot]) ||
        !add_entry(match_bits_of(team_, slot, 0, Target::kResult), shared.result, kSmallBytes,
                   results_[slot].handle, PTL_ME_OP_PUT) ||
        !add_entry(match_bits_of(team_, slot, 0, Target::kRelease), &shared.released,
                   sizeof shared.released, ends_[slot].handle, PTL_ME_OP_PUT))
      return false;
  }
  return true;
}

void NetworkStage::put(const Awaited& value, size_t bytes, ptl_rank_t target,
                       uint64_t match_bits) const {
  const ptl_size_t from = bytes == 0 ? 0 : offset_of(value.value);
  if (value.threshold == 0)
    check(PtlPut(g_memory, from, bytes, PTL_NO_ACK_REQ, process_of(target),
                 number_of(PortalIndex::kCollectives), match_bits, 0, nullptr, 0),
          "PtlPut");
  else
    check(PtlTriggeredPut(g_memory, from, bytes, PTL_NO_ACK_REQ, process_of(target),
                          number_of(PortalIndex::kCollectives), match_bits, 0, nullptr, 0,
                          value.counter, value.threshold),
          "PtlTriggeredPut");
}

void NetworkStage::increment(const Awaited& when, const Counter& counter) const {
  const ptl_ct_event_t one{1, 0};
  if (when.threshold == 0)
    check(PtlCTInc(counter.handle, one), "PtlCTInc");
  else
    check(PtlTriggeredCTInc(counter.handle, one, when.counter, when.threshold),
          "PtlTriggeredCTInc");
}

Awaited NetworkStage::value_of_neighbour(unsigned int slot) {
  Counter& counter = levels_of_slots_[slot][0].arrived;
  return {values_[slot][0], counter.handle, ++counter.expected};
}

Awaited NetworkStage::post(unsigned int slot, const Schedule& schedule, const Reduction& reduction,
                           Awaited value) {
  const size_t bytes = reduction.bytes();
  for (unsigned int number = 0; number < schedule.steps; ++number) {
    const Step& step = schedule.step[number];
    if (step.to != kNoPlace)
      put(value, bytes, places_.process_at(step.to),
          match_bits_of(team_, slot, number + 1, Target::kValue));
    if (step.from == kNoPlace) continue;
    Level& level = levels_of_slots_[slot][number + 1];
    char* const received = values_[slot][number + 1];
    if (step.replaces) {
      value = {received, level.arrived.handle, ++level.arrived.expected};
      continue;
    }
    increment(value, level.arrived);
    level.arrived.expected += 2;
    const Awaited both{received, level.arrived.handle, level.arrived.expected};
    if (bytes == 0) {
      value = both;
      continue;
    }
    check(PtlTriggeredAtomic(g_memory, offset_of(value.value), bytes, PTL_NO_ACK_REQ,
                             process_of(job().rank()), number_of(PortalIndex::kCollectives),
                             match_bits_of(team_, slot, number + 1, Target::kCombine), 0, nullptr,
                             0, reduction.portals_operation(), reduction.portals_type(),
                             both.counter, both.threshold),
          "PtlTriggeredAtomic");
    value = {received, level.combined.handle, ++level.combined.expected};
  }
  return value;
}

Awaited NetworkStage::post_release(unsigned int slot, uint32_t use, Awaited value, size_t bytes) {
  const ptl_rank_t self = job().rank();
  if (bytes != 0) {
    put(value, bytes, self, match_bits_of(team_, slot, 0, Target::kResult));
    value = {nullptr, results_[slot].handle, ++results_[slot].expected};
  }
  uses_[slot] = use;
  value.value = reinterpret_cast<char*>(&uses_[slot]);
  put(value, sizeof use, self, match_bits_of(team_, slot, 0, Target::kRelease));
  return {nullptr, ends_[slot].handle, ++ends_[slot].expected};
}

Awaited NetworkStage::post_end(unsigned int slot, Awaited value) {
  Counter& counter = ends_[slot];
  increment(value, counter);
  return {value.value, counter.handle, ++counter.expected};
}

bool NetworkStage::is_reached(const Awaited& value) {
  if (value.threshold == 0) return true;
  ptl_ct_event_t count;
  check(PtlCTGet(value.counter, &count), "PtlCTGet");
  return count.success >= value.threshold;
}

void NetworkStage::send_to_leader(ptl_rank_t leader, uint32_t team, unsigned int slot,
                                  const void* value, size_t bytes) {
  check(PtlPut(g_memory, bytes == 0 ? 0 : offset_of(value), bytes, PTL_NO_ACK_REQ,
               process_of(leader), number_of(PortalIndex::kCollectives),
               match_bits_of(team, slot, 0, Target::kValue), 0, nullptr, 0),
        "PtlPut");
}

}  // namespace lintel::gasnet
