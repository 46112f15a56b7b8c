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
#include "transport/polling.h"
#include "util/assert.h"

namespace lintel {

enum class GetStatus : uint8_t {
  ok,
  dropped,  // an event was returned; at least one before it was lost (PTL_EQ_DROPPED)
  empty,
  contended,  // only returned by try_get(): get_slowly() has to find out
};

// The fields that table 3-3 of the spec defines for PTL_EVENT_SEND, PTL_EVENT_ACK and
// PTL_EVENT_REPLY. Most messages have two of these events at their initiator, so a reader does not
// copy the other fields.
struct InitiatorEvent {
  ptl_event_kind_t type;
  void* user_ptr;
  uint64_t mlength;        // bytes
  uint64_t remote_offset;  // bytes
  ptl_list_t list;
  ptl_ni_fail_t fail;
};

// PTL_EVENT_PUT of a message that the priority list took whole, where it wanted to be.
struct PutEvent {
  const void* start;
  void* user_ptr;
  uint64_t hdr_data;
  uint64_t match_bits;
  uint64_t length;         // bytes, requested and manipulated
  uint64_t remote_offset;  // bytes
  uint64_t initiator;      // ptl_process_t
  ptl_uid_t uid;
  uint32_t pt_index;
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
    post_made([&event]() -> const ptl_event_t& { return event; }, reserved);
  }
  // The same with the event that make() returns. It is called when its place is known, so that no
  // field of the event waits in a register for that.
  template <typename Make>
  [[gnu::always_inline]] void post_made(const Make& make, bool reserved) noexcept {
    Ring& ring = *ring_.load(std::memory_order_relaxed);
    const uint64_t tail =
        ring.tail.fetch_add(one_event - (reserved ? 1 : 0), std::memory_order_relaxed);
    LINTEL_ASSERT(!reserved || (tail & reserved_mask) != 0);
    fill_made(ring, tail, make);
    gate_->notify();
  }
  [[gnu::always_inline]] void post(const InitiatorEvent& event) noexcept {
    Ring& ring = *ring_.load(std::memory_order_relaxed);
    fill(ring, ring.tail.fetch_add(one_event, std::memory_order_relaxed), event);
    gate_->notify();
  }
  // The thread that polls waits for an event of this queue until end_await(): if the queue is
  // empty, the next post_in_round() stores its event there instead, and is_awaited() ends. A full
  // fence: the thread then looks whether the queue was freed, and who frees it whether it is
  // awaited.
  void await(ptl_event_t* event) noexcept LINTEL_REQUIRES(polling) {
    awaited_.store(event, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // True: an event was stored, which the waiting thread has to report.
  [[nodiscard]] bool end_await() noexcept LINTEL_REQUIRES(polling) {
    const bool is_stored = awaited_.load(std::memory_order_relaxed) == nullptr;
    awaited_.store(nullptr, std::memory_order_release);
    return is_stored;
  }
  [[nodiscard]] bool is_awaited() const noexcept {
    return awaited_.load(std::memory_order_acquire) != nullptr;
  }
  // Appends the event that make() returns, as post_made().
  template <typename Make>
  [[gnu::always_inline]] void post_in_round(const Make& make, bool reserved = false) noexcept
      LINTEL_REQUIRES(polling) {
    ptl_event_t* const awaited = awaited_.load(std::memory_order_relaxed);
    if (awaited == nullptr || !is_empty()) return post_made(make, reserved);
    store(*awaited, make());
    awaited_.store(nullptr, std::memory_order_release);
  }
  // Appends two neighbouring events.
  [[gnu::always_inline]] void post(const InitiatorEvent& first,
                                   const InitiatorEvent& second) noexcept {
    Ring& ring = *ring_.load(std::memory_order_relaxed);
    const uint64_t tail = ring.tail.fetch_add(2 * one_event, std::memory_order_relaxed);
    fill(ring, tail, first);
    fill(ring, tail + one_event, second);
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
  // The same for the common case, without a call. After `contended`, call get_slowly().
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
  // try_get() for at most `most` events, the oldest first, with one locked instruction. `count`:
  // how many were taken if the result is ok.
  [[nodiscard]] GetStatus try_get_several(ptl_event_t* events, unsigned most,
                                          unsigned& count) noexcept {
    Ring& ring = *ring_.load(std::memory_order_acquire);
    uint64_t head = ring.head.load(std::memory_order_relaxed);
    uint64_t position = head;
    count = 0;
    for (; count < most && copy_complete(ring, ring.slot(position), position, events[count]);
         ++count)
      position += one_event;
    if (count == 0) {
      const uint64_t sequence = ring.slot(head).sequence.load(std::memory_order_relaxed);
      return static_cast<int64_t>(sequence - ring.complete_at(head)) < 0 ? GetStatus::empty
                                                                         : GetStatus::contended;
    }
    // The fence of copy_complete() orders the copies before this.
    return ring.head.compare_exchange_strong(head, position, std::memory_order_relaxed)
               ? GetStatus::ok
               : GetStatus::contended;
  }
  // get() for a slot at the head that is not complete, was overwritten or was taken by another
  // reader.
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
    [[maybe_unused]] const uint64_t tail =
        ring_.load(std::memory_order_relaxed)->tail.fetch_sub(1, std::memory_order_relaxed);
    LINTEL_ASSERT((tail & reserved_mask) != 0);
  }

  // One slot per portal table entry with flow control that uses this queue (PtlPTAlloc, PtlPTFree),
  // kept free of reserved events: its PTL_EVENT_PT_DISABLED is posted into that room.
  void add_flow_control_slot() noexcept {
    ring_.load(std::memory_order_relaxed)
        ->flow_control_slots.fetch_add(1, std::memory_order_relaxed);
  }
  void remove_flow_control_slot() noexcept {
    [[maybe_unused]] const uint32_t slots =
        ring_.load(std::memory_order_relaxed)
            ->flow_control_slots.fetch_sub(1, std::memory_order_relaxed);
    LINTEL_ASSERT(slots != 0);
  }

  // Last poll round that looks at this queue have taken into account; see PassingPolls::poll().
  std::atomic<uint64_t> round_seen{0};

  // Slots of the ring: a power of two.
  [[nodiscard]] uint64_t capacity() const noexcept;

  // Continues an empty queue at position `position`. For tests only.
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
  // lap. The fields are those of ptl_event_t, in words.
  struct alignas(128) Slot {
    using Word = std::atomic<uint64_t>;
    Word sequence;
    // All of an InitiatorEvent lies in the first cache line.
    Word user_ptr;
    Word mlength;
    Word remote_offset;
    Word type_and_list;
    Word fail_and_operation;
    Word hdr_data;
    Word match_bits;
    Word start;
    Word rlength;
    Word initiator;
    Word uid_and_index;
    Word atomic_type;
  };
  static_assert(sizeof(Slot) == 128 && offsetof(Slot, start) == 64);
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

  // Without reservations.
  [[nodiscard]] bool is_empty() const noexcept {
    const Ring& ring = *ring_.load(std::memory_order_relaxed);
    return ring.head.load(std::memory_order_relaxed) == ring.tail.load(std::memory_order_relaxed);
  }
  static void store(ptl_event_t& to, const ptl_event_t& from) noexcept { to = from; }
  static void store(ptl_event_t& to, const InitiatorEvent& from) noexcept {
    to.type = from.type;
    to.user_ptr = from.user_ptr;
    to.mlength = from.mlength;
    to.remote_offset = from.remote_offset;
    to.ptl_list = from.list;
    to.ni_fail_type = from.fail;
  }
  static void store(ptl_event_t& to, const PutEvent& from) noexcept;
  // A thread may be overwriting the slot.
  static void copy(Slot& to, const ptl_event_t& from) noexcept;
  static void copy(Slot& to, const InitiatorEvent& from) noexcept;
  static void copy(Slot& to, const PutEvent& from) noexcept;
  static void copy(ptl_event_t& to, const Slot& from) noexcept;

  template <typename Event>
  [[gnu::always_inline]] static void fill(Ring& ring, uint64_t tail, const Event& event) noexcept {
    fill_made(ring, tail, [&event]() -> const Event& { return event; });
  }
  template <typename Make>
  [[gnu::always_inline]] static void fill_made(Ring& ring, uint64_t tail,
                                               const Make& make) noexcept {
    Slot& slot = ring.slot(tail);
    const uint64_t lap = ring.lap_of(tail);
    if (slot.sequence.load(std::memory_order_acquire) != lap) [[unlikely]]
      wait_for_previous_lap(slot, lap);
    slot.sequence.store(lap + writing, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    copy(slot, make());
    slot.sequence.store(lap + ring.lap, std::memory_order_release);
    prefetch(ring.slot(tail + one_event));
  }

  // Prefetches the slot of the next writer: a large ring has left the caches since its last lap.
  static void prefetch(const Slot& slot) noexcept {
    const auto* lines = reinterpret_cast<const std::byte*>(&slot);
    __builtin_prefetch(lines, 1);
    __builtin_prefetch(lines + sizeof slot / 2, 1);
  }

  // Copies the event at `position` and moves the head from `head` past it. False: overwritten, or
  // another reader was faster.
  [[gnu::always_inline]] static bool take(Ring& ring, Slot& slot, uint64_t complete, uint64_t head,
                                          uint64_t position, ptl_event_t* event) noexcept {
    copy(*event, slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) != complete) [[unlikely]]
      return false;
    return ring.head.compare_exchange_strong(head, position + one_event, std::memory_order_relaxed,
                                             std::memory_order_relaxed);
  }

  // False: the slot does not hold the event of that position, or is being overwritten.
  [[gnu::always_inline]] static bool copy_complete(const Ring& ring, const Slot& slot,
                                                   uint64_t position, ptl_event_t& event) noexcept {
    const uint64_t complete = ring.complete_at(position);
    if (slot.sequence.load(std::memory_order_acquire) != complete) return false;
    copy(event, slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    return slot.sequence.load(std::memory_order_relaxed) == complete;
  }

  static void wait_for_previous_lap(const Slot& slot, uint64_t lap) noexcept;
  [[nodiscard]] static Ring* map_ring(unsigned capacity_shift) noexcept;

  std::atomic<Ring*> ring_{nullptr};
  Ring* rings_ = nullptr;  // all rings of this object, linked by `previous`
  WaitGate* gate_ = nullptr;
  std::atomic<ptl_event_t*> awaited_{nullptr};
};

namespace event_queue_detail {
// Each word is stored and loaded as one. A load of one word takes it from the store buffer; a wider
// load would wait until the stores have reached the cache. Relaxed atomics compile to plain moves
// and make it harmless to read a slot that is being overwritten.
[[gnu::always_inline]] inline void store(std::atomic<uint64_t>& word, uint64_t value) noexcept {
  word.store(value, std::memory_order_relaxed);
}
[[gnu::always_inline]] inline void store(std::atomic<uint64_t>& word, const void* value) noexcept {
  store(word, reinterpret_cast<uint64_t>(value));
}
[[gnu::always_inline]] inline void store(std::atomic<uint64_t>& word, uint64_t low,
                                         uint64_t high) noexcept {
  store(word, (low & 0xffffffff) | high << 32);
}
template <typename Field>
[[gnu::always_inline]] inline void load(Field& field, const std::atomic<uint64_t>& word) noexcept {
  static_assert(sizeof(Field) == sizeof(uint64_t));
  field = std::bit_cast<Field>(word.load(std::memory_order_relaxed));
}
// Into two neighbouring fields.
[[gnu::always_inline]] inline void load_pair(void* fields,
                                             const std::atomic<uint64_t>& word) noexcept {
  const uint64_t value = word.load(std::memory_order_relaxed);
  std::memcpy(fields, &value, sizeof value);
}
static_assert(sizeof(ptl_process_t) == 8);
static_assert(offsetof(ptl_event_t, pt_index) == offsetof(ptl_event_t, uid) + 4 &&
              offsetof(ptl_event_t, ptl_list) == offsetof(ptl_event_t, type) + 4 &&
              offsetof(ptl_event_t, atomic_operation) == offsetof(ptl_event_t, ni_fail_type) + 4);
static_assert(PTL_EVENT_SEND == PTL_EVENT_REPLY + 1 && PTL_EVENT_ACK == PTL_EVENT_REPLY + 2);
}  // namespace event_queue_detail

[[gnu::always_inline]] inline void EventQueue::copy(Slot& to, const ptl_event_t& from) noexcept {
  using event_queue_detail::store;
  store(to.user_ptr, from.user_ptr);
  store(to.mlength, from.mlength);
  store(to.remote_offset, from.remote_offset);
  store(to.type_and_list, from.type, from.ptl_list);
  store(to.fail_and_operation, from.ni_fail_type, from.atomic_operation);
  store(to.hdr_data, from.hdr_data);
  store(to.match_bits, from.match_bits);
  store(to.start, from.start);
  store(to.rlength, from.rlength);
  store(to.initiator, std::bit_cast<uint64_t>(from.initiator));
  store(to.uid_and_index, from.uid, from.pt_index);
  store(to.atomic_type, from.atomic_type);
}

[[gnu::always_inline]] inline void EventQueue::copy(Slot& to, const InitiatorEvent& from) noexcept {
  using event_queue_detail::store;
  store(to.user_ptr, from.user_ptr);
  store(to.mlength, from.mlength);
  store(to.remote_offset, from.remote_offset);
  store(to.type_and_list, from.type, from.list);
  store(to.fail_and_operation, from.fail, PTL_MIN);
}

[[gnu::always_inline]] inline void EventQueue::copy(Slot& to, const PutEvent& from) noexcept {
  using event_queue_detail::store;
  store(to.user_ptr, from.user_ptr);
  store(to.mlength, from.length);
  store(to.remote_offset, from.remote_offset);
  store(to.type_and_list, PTL_EVENT_PUT, PTL_PRIORITY_LIST);
  store(to.fail_and_operation, PTL_NI_OK, PTL_MIN);
  store(to.hdr_data, from.hdr_data);
  store(to.match_bits, from.match_bits);
  store(to.start, from.start);
  store(to.rlength, from.length);
  store(to.initiator, from.initiator);
  store(to.uid_and_index, from.uid, from.pt_index);
  store(to.atomic_type, uint64_t{PTL_INT8_T});
}

[[gnu::always_inline]] inline void EventQueue::store(ptl_event_t& to,
                                                     const PutEvent& from) noexcept {
  to.start = const_cast<void*>(from.start);
  to.user_ptr = from.user_ptr;
  to.hdr_data = from.hdr_data;
  to.match_bits = from.match_bits;
  to.rlength = from.length;
  to.mlength = from.length;
  to.remote_offset = from.remote_offset;
  std::memcpy(&to.initiator, &from.initiator, sizeof from.initiator);
  to.uid = from.uid;
  to.pt_index = from.pt_index;
  to.type = PTL_EVENT_PUT;
  to.ptl_list = PTL_PRIORITY_LIST;
  to.ni_fail_type = PTL_NI_OK;
  to.atomic_operation = PTL_MIN;
  to.atomic_type = PTL_INT8_T;
}

[[gnu::always_inline]] inline void EventQueue::copy(ptl_event_t& to, const Slot& from) noexcept {
  using event_queue_detail::load;
  using event_queue_detail::load_pair;
  load_pair(&to.type, from.type_and_list);
  load(to.user_ptr, from.user_ptr);
  load(to.mlength, from.mlength);
  load(to.remote_offset, from.remote_offset);
  load_pair(&to.ni_fail_type, from.fail_and_operation);
  if (to.type >= PTL_EVENT_REPLY && to.type <= PTL_EVENT_ACK) return;
  load(to.hdr_data, from.hdr_data);
  load(to.match_bits, from.match_bits);
  load(to.start, from.start);
  load(to.rlength, from.rlength);
  load(to.initiator, from.initiator);
  load_pair(&to.uid, from.uid_and_index);
  to.atomic_type = static_cast<ptl_datatype_t>(from.atomic_type.load(std::memory_order_relaxed));
}

// Slots of the event queue set aside before the message was accepted (flow control, spec 2.8).
struct EventReservation {
  bool communication = false;
  bool unlink = false;
};

}  // namespace lintel
