/* event.cc: transfers whose completion is counted, and pools of events. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "rma/event.h"

#include <algorithm>

#include "job/job.h"
#include "job/thread.h"
#include "network/long_yields.h"
#include "network/network.h"
#include "network/poll.h"
#include "segment/segment.h"
#include "tools/lock.h"

using namespace lintel::gasnet;

namespace {

/** A peer that called gasnet_exit can be gone before its exit code has arrived here. When the code
 * arrives, another thread ends this process. */
constexpr uint64_t kExitArrivesWithinNs = 2'000'000'000;

constexpr uint64_t kYieldsForNs = 500'000;

/* All events. They are never freed. */
std::atomic<gasneti_event*> g_newest{nullptr};

LongYields g_long_yields;

/* Number of lists of pieces, over all events. */
std::atomic<int> g_lists{0};
/* Number of events with a descriptor of a segment in memory of a device. */
std::atomic<int> g_device_segments{0};

bool all_are_answered() {
  for (const gasneti_event* event = g_newest.load(std::memory_order_acquire); event;
       event = event->made_before)
    if (!event->is_answered()) return false;
  return true;
}

[[noreturn]] void end_after_failures(ptl_size_t failures) {
  gasnett_nsleep(kExitArrivesWithinNs);
  gasnett_fatalerror_nopos(
      "%llu of the puts and gets failed: a peer has ended or cannot be reached",
      static_cast<unsigned long long>(failures));
}

}  // namespace

gasneti_event::gasneti_event(EventPool& pool) : owner(&pool), counter_(network().new_counter()) {
  memory_ = bind(0, PTL_SIZE_MAX);
  made_before = g_newest.load(std::memory_order_relaxed);
  while (!g_newest.compare_exchange_weak(made_before, this, std::memory_order_release,
                                         std::memory_order_relaxed)) {
  }
}

ptl_handle_md_t gasneti_event::bind(uintptr_t address, ptl_size_t bytes) const {
  ptl_md_t md{};
  md.start = reinterpret_cast<void*>(address);
  md.length = bytes;
  // PtlPut has read small sources when it returns, so those puts are locally complete then.
  md.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_VOLATILE;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = counter_;
  return network().bind(md);
}

bool gasneti_event::bind_device(gex_EP_Index_t endpoint, unsigned int binding) {
  if (device_) {
    if (PtlMDRelease(device_->memory) != PTL_OK) return false;
    device_.reset();
  } else if (g_device_segments.fetch_add(1, std::memory_order_relaxed) >=
             network().limits().max_mds / 8) {
    g_device_segments.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  const SegmentTable::Entry segment = segment_table().of(job().rank(), endpoint);
  device_ = std::make_unique<DeviceSegment>(DeviceSegment{
      endpoint, binding, segment.address, segment.bytes, bind(segment.address, segment.bytes)});
  return true;
}

ptl_handle_md_t gasneti_event::device_descriptor(gex_EP_Index_t endpoint, size_t bytes,
                                                 ptl_size_t* offset) {
  const unsigned int binding = segment_table().device_binding(endpoint);
  if ((!device_ || device_->endpoint != endpoint || device_->binding != binding) &&
      !bind_device(endpoint, binding))
    return memory_;
  const uintptr_t distance = *offset - device_->address;
  if (distance > device_->bytes || bytes > device_->bytes - distance) return memory_;
  *offset = distance;
  return device_->memory;
}

bool gasneti_event::is_answered() const {
  ptl_ct_event_t count;
  check(PtlCTGet(counter_, &count), "PtlCTGet");
  return count.success + count.failure >= started_.load(std::memory_order_relaxed);
}

void gasneti_event::put(Place place, const void* source, size_t bytes) {
  const size_t largest = network().limits().max_msg_size;
  auto local_offset = reinterpret_cast<ptl_size_t>(source);
  const ptl_handle_md_t memory = descriptor_for(place, bytes, &local_offset);
  while (bytes != 0) {
    const size_t part = std::min(bytes, largest);
    check(PtlPut(memory, local_offset, part, PTL_CT_ACK_REQ, process_of(place.rank),
                 number_of(PortalIndex::kSegment), place.endpoint, place.offset, nullptr, 0),
          "PtlPut");
    count_started();
    local_offset += part;
    place.offset += part;
    bytes -= part;
  }
}

void gasneti_event::get(Place place, void* destination, size_t bytes) {
  const size_t largest = network().limits().max_msg_size;
  auto local_offset = reinterpret_cast<ptl_size_t>(destination);
  const ptl_handle_md_t memory = descriptor_for(place, bytes, &local_offset);
  while (bytes != 0) {
    const size_t part = std::min(bytes, largest);
    check(PtlGet(memory, local_offset, part, process_of(place.rank),
                 number_of(PortalIndex::kSegment), place.endpoint, place.offset, nullptr),
          "PtlGet");
    count_started();
    local_offset += part;
    place.offset += part;
    bytes -= part;
  }
}

gasneti_event::Pieces* gasneti_event::bind_pieces(std::unique_ptr<ptl_iovec_t[]> list, size_t count,
                                                  size_t bytes) {
  const ptl_ni_limits_t& limits = network().limits();
  if (bytes > limits.max_msg_size || count > static_cast<size_t>(limits.max_iovecs)) return nullptr;
  if (g_lists.fetch_add(1, std::memory_order_relaxed) >= limits.max_mds / 4) {
    g_lists.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  ptl_md_t md{};
  md.start = list.get();
  md.length = count;
  md.options = PTL_IOVEC | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = counter_;
  auto* const pieces =
      new Pieces{network().bind(md), std::move(list), pieces_.load(std::memory_order_relaxed)};
  pieces_.store(pieces, std::memory_order_release);
  return pieces;
}

void gasneti_event::release_pieces() const {
  // Another thread may test a leaf of this event at the same time.
  Pieces* pieces = pieces_.exchange(nullptr, std::memory_order_acquire);
  while (pieces) {
    check(PtlMDRelease(pieces->memory), "PtlMDRelease");
    Pieces* const next = pieces->next;
    delete pieces;
    pieces = next;
    g_lists.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool gasneti_event::put_pieces(Place place, std::unique_ptr<ptl_iovec_t[]> list, size_t count,
                               size_t bytes) {
  const Pieces* const pieces = bind_pieces(std::move(list), count, bytes);
  if (!pieces) return false;
  check(PtlPut(pieces->memory, 0, bytes, PTL_CT_ACK_REQ, process_of(place.rank),
               number_of(PortalIndex::kSegment), place.endpoint, place.offset, nullptr, 0),
        "PtlPut");
  count_started();
  return true;
}

bool gasneti_event::get_pieces(Place place, std::unique_ptr<ptl_iovec_t[]> list, size_t count,
                               size_t bytes) {
  const Pieces* const pieces = bind_pieces(std::move(list), count, bytes);
  if (!pieces) return false;
  check(PtlGet(pieces->memory, 0, bytes, process_of(place.rank), number_of(PortalIndex::kSegment),
               place.endpoint, place.offset, nullptr),
        "PtlGet");
  count_started();
  return true;
}

void gasneti_event::update(const Place& place, const Atomic& atomic, void* result) {
  const ptl_process_t target = process_of(place.rank);
  const ptl_pt_index_t index = number_of(PortalIndex::kSegment);
  const auto data = reinterpret_cast<ptl_size_t>(atomic.data);
  if (atomic.operand) {
    const auto previous = reinterpret_cast<ptl_size_t>(result ? result : &unused_result_);
    check(PtlSwap(memory_, previous, memory_, data, atomic.bytes, target, index, place.endpoint,
                  place.offset, nullptr, 0, atomic.operand, atomic.operation, atomic.datatype),
          "PtlSwap");
  } else if (result) {
    check(PtlFetchAtomic(memory_, reinterpret_cast<ptl_size_t>(result), memory_, data, atomic.bytes,
                         target, index, place.endpoint, place.offset, nullptr, 0, atomic.operation,
                         atomic.datatype),
          "PtlFetchAtomic");
  } else {
    check(PtlAtomic(memory_, data, atomic.bytes, PTL_CT_ACK_REQ, target, index, place.endpoint,
                    place.offset, nullptr, 0, atomic.operation, atomic.datatype),
          "PtlAtomic");
  }
  count_started();
}

void gasneti_event::count_answer() { check(PtlCTInc(counter_, {1, 0}), "PtlCTInc"); }

bool gasneti_event::is_complete() const {
  if (is_signalled_) {
    if (has_signal_.load(std::memory_order_acquire)) return true;
    return look_ && look_(context_) && has_signal_.load(std::memory_order_acquire);
  }
  ptl_ct_event_t count;
  check(PtlCTGet(counter_, &count), "PtlCTGet");
  if (count.failure != 0) end_after_failures(count.failure);
  if (count.success < started_.load(std::memory_order_relaxed)) return false;
  if (pieces_.load(std::memory_order_relaxed)) release_pieces();
  return true;
}

std::optional<AwaitedCount> gasneti_event::awaited() const {
  if (!is_signalled_) return AwaitedCount{counter_, started_.load(std::memory_order_relaxed)};
  return awaited_ ? awaited_(context_, *this) : std::nullopt;
}

namespace lintel::gasnet {

bool Wait::poll() {
  if (!sleeps_while_waiting()) {
    wait_hint(gasnet::poll());
    return false;
  }
  if (run_poll_functions() == 0) return true;
  idle_since_ns_ = 0;
  return false;
}

void Wait::add(const gasneti_event& event) {
  const std::optional<AwaitedCount> awaited = event.awaited();
  has_all_counts_ = has_all_counts_ && awaited && size_ < kMostAwaited;
  if (has_all_counts_) awaited_[size_++] = *awaited;
}

void Wait::pause() {
  const unsigned int size = has_all_counts_ ? size_ : 0;
  size_ = 0;
  has_all_counts_ = true;
  if (look_for_one(awaited_, size)) {
    idle_since_ns_ = 0;
    return;
  }
  const uint64_t now_ns = gasnett_ticks_to_ns(gasnett_ticks_now());
  if (idle_since_ns_ == 0) idle_since_ns_ = now_ns;
  // Yields end a short wait sooner than a sleep does, unless other threads compute.
  const bool sleeps = now_ns - idle_since_ns_ > kYieldsForNs || g_long_yields.are_expected(now_ns);
  if (sleeps && size != 0) {
    sleep_until_one(awaited_, size);
    return;
  }
  wait_hint(0);
  if (!sleeps) g_long_yields.note(now_ns, gasnett_ticks_to_ns(gasnett_ticks_now()));
}

void wait_for(const gasneti_event& event) {
  Wait wait;
  while (!event.is_complete()) {
    if (!wait.poll()) continue;
    wait.add(event);
    wait.pause();
  }
}

gasneti_event* EventPool::take_free() {
  if (!free_) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  gasneti_event* const event = free_;
  if (event) free_ = event->next;
  return event;
}

gasneti_event* EventPool::take() {
  static std::atomic<int> made{0};
  gasneti_event* const event = take_free();
  if (event) return event;
  if (made.load(std::memory_order_relaxed) >= network().limits().max_mds / 2) return nullptr;
  made.fetch_add(1, std::memory_order_relaxed);
  return new gasneti_event(*this);
}

gasneti_event& EventPool::take_always() {
  gasneti_event* const event = take_free();
  return event ? *event : *new gasneti_event(*this);
}

void EventPool::release(gasneti_event& event, EventPool& caller) {
  EventPool& owner = *event.owner;
  if (&owner == &caller) {
    event.next = caller.free_;
    caller.free_ = &event;
    return;
  }
  event.next = owner.returned_.load(std::memory_order_relaxed);
  while (!owner.returned_.compare_exchange_weak(event.next, &event, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
}

ThreadEvents& this_threads_events() {
  // When a thread has ended, another one takes its place; the events stay.
  static ThreadEvents* const by_place = new ThreadEvents[max_threads()];
  return by_place[this_thread().index];
}

gasneti_event& take_signalled_event() {
  static ProcessMutex mutex;
  static EventPool* const pool LINTEL_GASNET_PT_GUARDED_BY(mutex) = new EventPool;
  const LockGuard lock(mutex);
  gasneti_event* event = pool->take_free();
  if (!event) event = new gasneti_event(*pool, gasneti_event::Signalled());
  event->expect_signal();
  return *event;
}

void start_events() { add_quiet_function(all_are_answered); }

}  // namespace lintel::gasnet
