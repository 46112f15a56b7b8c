// Event queues: set-up of rings, and the unusual turns of the message path.
#include "core/events/event_queue.h"

#include <sched.h>
#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <type_traits>

#include "util/clock.h"

namespace lintel {

static_assert(std::is_trivially_copyable_v<ptl_event_t>);

EventQueue::Ring* EventQueue::map_ring(unsigned capacity_shift) noexcept {
  const uint64_t slots = uint64_t{1} << capacity_shift;
  const size_t bytes = sizeof(Ring) + (slots - 1) * sizeof(Slot);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Zeroed memory is a valid ring (see Slot); a constructor would touch every page of it.
  Ring* ring = static_cast<Ring*>(memory);
  ring->mask = slots - 1;
  ring->lap = one_event << capacity_shift;
  ring->in_lap = ring->lap - 1;
  ring->offset_mask = ring->mask * sizeof(Slot);
  ring->capacity_shift = capacity_shift;
  return ring;
}

bool EventQueue::open(ptl_size_t count, unsigned flow_control_slots, WaitGate* gate) noexcept {
  constexpr uint64_t most = uint64_t{1} << max_capacity_shift;
  if (count > most - flow_control_slots) return false;
  const uint64_t needed = count + flow_control_slots;
  const auto shift = static_cast<unsigned>(std::bit_width(needed == 0 ? 0 : needed - 1));
  // A ring of exactly this size is needed: a larger one would spread few events over many cache
  // lines. The rings of one object have different sizes, so their number is bounded.
  Ring* ring = rings_;
  while (ring != nullptr && ring->capacity_shift != shift) ring = ring->previous;
  if (ring == nullptr) {
    ring = map_ring(shift);
    if (ring == nullptr) return false;
    ring->previous = rings_;
    rings_ = ring;
  }
  // A thread that posted to this queue in its last use may be about to wake those who wait.
  if (gate_ != gate) gate_ = gate;
  ring_.store(ring, std::memory_order_release);
  reset();
  return true;
}

void EventQueue::reset() noexcept {
  Ring* const ring = ring_.load(std::memory_order_relaxed);
  if (ring == nullptr) return;
  const uint64_t tail = ring->tail.load(std::memory_order_relaxed) & ~reserved_mask;
  ring->tail.store(tail, std::memory_order_relaxed);
  ring->head.store(tail, std::memory_order_relaxed);
  ring->flow_control_slots.store(0, std::memory_order_relaxed);
}

void EventQueue::close() noexcept {
  ring_.store(nullptr, std::memory_order_relaxed);
  while (rings_ != nullptr) {
    Ring* const ring = rings_;
    rings_ = ring->previous;
    munmap(static_cast<void*>(ring), ring->bytes());
  }
}

uint64_t EventQueue::capacity() const noexcept {
  return ring_.load(std::memory_order_relaxed)->capacity();
}

void EventQueue::start_at(uint64_t position) noexcept {
  Ring& ring = *ring_.load(std::memory_order_relaxed);
  const uint64_t start = position << position_shift;
  for (uint64_t i = 0; i <= ring.mask; ++i) {
    const uint64_t coming = start + (i << position_shift);
    ring.slot(coming).sequence.store(ring.lap_of(coming), std::memory_order_relaxed);
  }
  ring.tail.store(start, std::memory_order_relaxed);
  ring.head.store(start, std::memory_order_relaxed);
}

void EventQueue::post_into_own_slot(const ptl_event_t& event, uint64_t& last) noexcept {
  if (try_reserve()) {
    post(event, true);
    return;
  }
  Ring& ring = *ring_.load(std::memory_order_relaxed);
  const uint64_t position = last & ~reserved_mask;
  const bool taken = static_cast<int64_t>(ring.head.load(std::memory_order_relaxed) - position) > 0;
  const bool overwritten = ring.tail.load(std::memory_order_relaxed) - position > ring.lap;
  if (last != 0 && !taken && !overwritten) return;
  const uint64_t tail = ring.tail.fetch_add(one_event, std::memory_order_relaxed);
  fill(ring, tail, event);
  last = (tail & ~reserved_mask) | 1;
  gate_->notify();
}

GetStatus EventQueue::get_slowly(ptl_event_t* event) noexcept {
  Ring& ring = *ring_.load(std::memory_order_acquire);
  uint64_t slack = 0;  // events given up beyond those overwritten
  uint64_t head = ring.head.load(std::memory_order_relaxed);
  uint64_t position = head;
  for (;;) {
    Slot& slot = ring.slot(position);
    const uint64_t complete = ring.complete_at(position);
    const auto ahead =
        static_cast<int64_t>(slot.sequence.load(std::memory_order_acquire) - complete);
    if (ahead == 0) {
      if (take(ring, slot, complete, head, position, event))
        return position == head ? GetStatus::ok : GetStatus::dropped;
    } else if (ahead < 0) {
      // No event at all, or one whose writer has not finished.
      const uint64_t now = ring.head.load(std::memory_order_relaxed);
      if (now == head) return GetStatus::empty;
      head = position = now;
      continue;
    }
    const uint64_t now = ring.head.load(std::memory_order_relaxed);
    if (now != head) {
      head = position = now;
      continue;
    }
    // Overwritten. The oldest survivor is the next to be overwritten, so each failure to get hold
    // of one leaves more room to the writers, up to half the ring.
    const uint64_t tail = ring.tail.load(std::memory_order_relaxed) & ~reserved_mask;
    position = tail - ring.lap + (slack << position_shift);
    const uint64_t more = slack == 0 ? 1 : 2 * slack;
    if (more <= ring.capacity() / 2) slack = more;
  }
}

// The writer of this slot one lap ago has not finished: it lost its processor while the others
// filled the whole ring.
void EventQueue::wait_for_previous_lap(const Slot& slot, uint64_t lap) noexcept {
  for (unsigned spins = 0; slot.sequence.load(std::memory_order_acquire) != lap; ++spins) {
    if (spins < 200) {
      spin_hint();
    } else {
      sched_yield();
    }
  }
}

}  // namespace lintel
