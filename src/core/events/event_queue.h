// Event queues: bounded rings of full events, several writers, several readers (spec 3.13).
// Message path: one locked instruction per post and one per get, no lock.
//
// A writer takes the next position by adding to `tail`, fills the slot of that position and then
// publishes it through the sequence number of the slot. A reader copies the event at `head`, checks
// that the slot was not overwritten meanwhile, and takes the event by moving `head`. When the ring
// is full a writer overwrites the oldest event (spec 3.13.5); the reader that finds its slot in a
// later lap moves on to the oldest survivor and reports PTL_EQ_DROPPED. An event whose writer lost
// its processor holds up those behind it until the writer continues; nothing is lost by that.
//
// Rings are never unmapped before close(), so a thread that still uses a freed queue finds memory
// of the right type; reuse of the object reuses its rings.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/events/wait_gate.h"
#include "portals4.h"

namespace lintel {

enum class GetStatus : uint8_t {
  ok,
  dropped,  // an event was returned; at least one before it was lost (PTL_EQ_DROPPED)
  empty,
  contended,  // of try_get() only: not known yet
};

class EventQueue {
 public:
  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue() { close(); }

  // Set-up path; nobody else uses the object meanwhile. Room for at least `count` events beside
  // `flow_control_slots` (the most portal table entries with flow control that may share the queue,
  // spec 3.13.5). May be called again after reset(). False: not that much memory (PTL_NO_SPACE).
  [[nodiscard]] bool open(ptl_size_t count, unsigned flow_control_slots, WaitGate* gate) noexcept;
  // Forgets all events, reservations and flow control slots (PtlEQFree); the memory stays.
  void reset() noexcept;
  // Unmaps the rings: nobody may use the object any more.
  void close() noexcept;

  // Appends an event, into reserved room if `reserved`. Any thread. Without a reservation it
  // overwrites the oldest event if the ring is full.
  [[gnu::always_inline]] void post(const ptl_event_t& event, bool reserved = false) noexcept {
    Ring& ring = *ring_.load(std::memory_order_relaxed);
    fill(ring, ring.tail.fetch_add(one_event - (reserved ? 1 : 0), std::memory_order_relaxed),
         event, event.type);
    gate_->notify();
  }
  // Appends two neighbouring events: `event`, and a copy of it of kind `second`.
  [[gnu::always_inline]] void post(const ptl_event_t& event, ptl_event_kind_t second) noexcept {
    Ring& ring = *ring_.load(std::memory_order_relaxed);
    const uint64_t tail = ring.tail.fetch_add(2 * one_event, std::memory_order_relaxed);
    fill(ring, tail, event, event.type);
    fill(ring, tail + one_event, event, second);
    gate_->notify();
  }

  // Appends an event into free room beside reservations and flow control slots, else into a flow
  // control slot. Appends nothing if that holds an event posted with the same `last` that was not
  // taken yet. `last` is 0 at first. Callers that share it exclude each other.
  void post_into_own_slot(const ptl_event_t& event, uint64_t& last) noexcept;

  // Takes the oldest event. Any thread. Leaves `event` undefined if there is none.
  [[nodiscard, gnu::always_inline]] GetStatus get(ptl_event_t* event) noexcept {
    const GetStatus status = try_get(event);
    return status == GetStatus::contended ? get_slowly(event) : status;
  }
  // The same without a call, for the common case; `contended`: get_slowly() tells.
  [[nodiscard, gnu::always_inline]] GetStatus try_get(ptl_event_t* event) noexcept {
    Ring& ring = *ring_.load(std::memory_order_acquire);
    const uint64_t head = ring.head.load(std::memory_order_relaxed);
    Slot& slot = ring.slot(head);
    const uint64_t complete = ring.complete_at(head);
    const uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
    if (sequence == complete) {
      if (take(ring, slot, complete, head, head, event)) [[likely]]
        return GetStatus::ok;
    } else if (static_cast<int64_t>(sequence - complete) < 0) {
      return GetStatus::empty;  // another reader passes this slot only when it is complete
    }
    return GetStatus::contended;
  }
  // When the slot at the head is not complete, was overwritten or was taken by another reader.
  [[nodiscard]] GetStatus get_slowly(ptl_event_t* event) noexcept;

  // Flow control (spec 2.8, 3.13.5). try_reserve() sets room for one event aside, so that posting
  // it overwrites nothing even if other reservations are used first; false if the room left is that
  // of the flow control slots. Every reservation ends with post() or cancel_reservation().
  // Unreserved posts (of local operations) may still fill the queue and overwrite.
  [[nodiscard]] bool try_reserve() noexcept {
    Ring& ring = *ring_.load(std::memory_order_relaxed);
    uint64_t tail = ring.tail.load(std::memory_order_relaxed);
    do {
      const uint64_t reserved = tail & reserved_mask;
      // Negative if others have posted and taken since the tail was read: then the exchange fails.
      const int64_t used =
          static_cast<int64_t>(tail - ring.head.load(std::memory_order_relaxed)) >> position_shift;
      const uint64_t kept = reserved + ring.flow_control_slots.load(std::memory_order_relaxed);
      if (used + static_cast<int64_t>(kept) >= static_cast<int64_t>(ring.capacity()) ||
          reserved == reserved_mask) [[unlikely]] {
        return false;
      }
    } while (!ring.tail.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed));
    return true;
  }
  void cancel_reservation() noexcept {
    ring_.load(std::memory_order_relaxed)->tail.fetch_sub(1, std::memory_order_relaxed);
  }

  // One slot per portal table entry with flow control that uses this queue (PtlPTAlloc, PtlPTFree),
  // kept free of reserved events: its PTL_EVENT_PT_DISABLED is posted into that room.
  void add_flow_control_slot() noexcept {
    ring_.load(std::memory_order_relaxed)
        ->flow_control_slots.fetch_add(1, std::memory_order_relaxed);
  }
  void remove_flow_control_slot() noexcept {
    ring_.load(std::memory_order_relaxed)
        ->flow_control_slots.fetch_sub(1, std::memory_order_relaxed);
  }

  // For those who look at the queue and do not wait: PhysicalInterface::poll_in_passing().
  std::atomic<uint64_t> round_seen{0};

  // Slots of the ring: a power of two.
  [[nodiscard]] uint64_t capacity() const noexcept;

  // For tests: continues an empty queue just before position `position`.
  void start_at(uint64_t position) noexcept;

 private:
  // The tail holds the next position in its upper bits and the number of reservations in its lower
  // ones, so that one locked instruction changes both consistently. Positions wrap after 2^46
  // events, and all arithmetic on them is modular.
  static constexpr unsigned position_shift = 18;
  static constexpr uint64_t one_event = uint64_t{1} << position_shift;
  static constexpr uint64_t reserved_mask = one_event - 1;
  static constexpr unsigned max_capacity_shift = 32;

  // sequence == lap_of(p): empty, free for the writer of position p; lap_of(p) + writing: being
  // filled; lap_of(p) + lap: holds the event of position p. Zeroed memory is a ring in its first
  // lap.
  struct alignas(128) Slot {
    std::atomic<uint64_t> sequence;
    ptl_event_t event;
  };
  static_assert(sizeof(Slot) == 128);
  static constexpr uint64_t writing = 1;

  struct Ring {
    uint64_t mask;         // slots - 1
    uint64_t lap;          // difference between the sequences of two laps
    uint64_t in_lap;       // lap - 1: the bits of a position within its lap
    uint64_t offset_mask;  // mask * sizeof(Slot)
    Ring* previous;
    unsigned capacity_shift;
    std::atomic<uint32_t> flow_control_slots;
    alignas(128) std::atomic<uint64_t> tail;
    alignas(128) std::atomic<uint64_t> head;  // reservation bits zero
    alignas(128) Slot slots[1];               // mask + 1 of them

    [[nodiscard]] uint64_t capacity() const noexcept { return mask + 1; }
    [[nodiscard]] uint64_t lap_of(uint64_t position) const noexcept { return position & ~in_lap; }
    // The sequence of the slot of `position` when it holds the event of that position.
    [[nodiscard]] uint64_t complete_at(uint64_t position) const noexcept {
      return (position | in_lap) + 1;
    }
    [[nodiscard]] Slot& slot(uint64_t position) noexcept {
      static_assert(one_event % sizeof(Slot) == 0);
      auto* const first = reinterpret_cast<std::byte*>(slots);
      return *reinterpret_cast<Slot*>(first +
                                      (position / (one_event / sizeof(Slot)) & offset_mask));
    }
    [[nodiscard]] size_t bytes() const noexcept { return sizeof(Ring) + mask * sizeof(Slot); }
  };

  // `from` and `to`: one of them is in a slot, and a thread may be overwriting it.
  static void copy_into_slot(ptl_event_t& to, const ptl_event_t& from,
                             ptl_event_kind_t type) noexcept;
  static void copy_from_slot(ptl_event_t& to, ptl_event_t& from) noexcept;

  [[gnu::always_inline]] static void fill(Ring& ring, uint64_t tail, const ptl_event_t& event,
                                          const ptl_event_kind_t& type) noexcept {
    Slot& slot = ring.slot(tail);
    const uint64_t lap = ring.lap_of(tail);
    if (slot.sequence.load(std::memory_order_acquire) != lap) [[unlikely]]
      wait_for_previous_lap(slot, lap);
    slot.sequence.store(lap + writing, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    copy_into_slot(slot.event, event, type);
    slot.sequence.store(lap + ring.lap, std::memory_order_release);
    prefetch(ring.slot(tail + one_event));
  }

  // For the next writer: a large ring has left the caches since its last lap.
  static void prefetch(const Slot& slot) noexcept {
    const auto* lines = reinterpret_cast<const std::byte*>(&slot);
    __builtin_prefetch(lines, 1);
    __builtin_prefetch(lines + sizeof slot / 2, 1);
  }

  // Copies the event at `position` and moves the head from `head` past it. False: overwritten, or
  // another reader was faster.
  [[gnu::always_inline]] static bool take(Ring& ring, Slot& slot, uint64_t complete, uint64_t head,
                                          uint64_t position, ptl_event_t* event) noexcept {
    copy_from_slot(*event, slot.event);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) != complete) [[unlikely]]
      return false;
    return ring.head.compare_exchange_strong(head, position + one_event, std::memory_order_release,
                                             std::memory_order_relaxed);
  }

  static void wait_for_previous_lap(const Slot& slot, uint64_t lap) noexcept;
  [[nodiscard]] static Ring* map_ring(unsigned capacity_shift) noexcept;

  std::atomic<Ring*> ring_{nullptr};
  Ring* rings_ = nullptr;  // all rings of this object, linked by `previous`
  WaitGate* gate_ = nullptr;
};

namespace event_queue_detail {
// An event is 12 words, each stored and loaded as one. A load of one word takes it from the store
// buffer; a wider load would wait until the stores have reached the cache. Relaxed atomics compile
// to plain moves and make it harmless to read a slot that is being overwritten.
inline std::atomic_ref<uint64_t> word(void* field) noexcept {
  return std::atomic_ref(*static_cast<uint64_t*>(field));
}
[[gnu::always_inline]] inline void store(void* field, uint64_t value) noexcept {
  word(field).store(value, std::memory_order_relaxed);
}
[[gnu::always_inline]] inline void store_pair(void* field, uint64_t low, uint64_t high) noexcept {
  store(field, (low & 0xffffffff) | high << 32);
}
static_assert(sizeof(ptl_event_t) == 12 * sizeof(uint64_t) && sizeof(ptl_process_t) == 8);
static_assert(offsetof(ptl_event_t, pt_index) == offsetof(ptl_event_t, uid) + 4 &&
              offsetof(ptl_event_t, ptl_list) == offsetof(ptl_event_t, type) + 4 &&
              offsetof(ptl_event_t, atomic_operation) == offsetof(ptl_event_t, ni_fail_type) + 4);
}  // namespace event_queue_detail

[[gnu::always_inline]] inline void EventQueue::copy_into_slot(ptl_event_t& to,
                                                              const ptl_event_t& from,
                                                              ptl_event_kind_t type) noexcept {
  using namespace event_queue_detail;
  store(&to.start, reinterpret_cast<uint64_t>(from.start));
  store(&to.user_ptr, reinterpret_cast<uint64_t>(from.user_ptr));
  store(&to.hdr_data, from.hdr_data);
  store(&to.match_bits, from.match_bits);
  store(&to.rlength, from.rlength);
  store(&to.mlength, from.mlength);
  store(&to.remote_offset, from.remote_offset);
  store(&to.initiator, std::bit_cast<uint64_t>(from.initiator));
  store_pair(&to.uid, from.uid, from.pt_index);
  store_pair(&to.type, type, from.ptl_list);
  store_pair(&to.ni_fail_type, from.ni_fail_type, from.atomic_operation);
  store_pair(&to.atomic_type, from.atomic_type, 0);
}

[[gnu::always_inline]] inline void EventQueue::copy_from_slot(ptl_event_t& to,
                                                              ptl_event_t& from) noexcept {
  auto* const target = reinterpret_cast<std::byte*>(&to);
  auto* const source = reinterpret_cast<std::byte*>(&from);
#pragma GCC unroll 12
  for (size_t i = 0; i < sizeof(ptl_event_t); i += sizeof(uint64_t)) {
    const uint64_t value = event_queue_detail::word(source + i).load(std::memory_order_relaxed);
    std::memcpy(target + i, &value, sizeof value);
  }
}

}  // namespace lintel
