/* event.h: the object behind a gex_Event_t, and the events of a thread. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_RMA_EVENT_H
#define LINTEL_GASNET_RMA_EVENT_H

#include <portals4.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "job/progress_record.h"
#include "network/poll.h"
#include "tools/headers.h"

namespace lintel::gasnet {

class EventPool;

/** The remote range of a transfer. */
struct Place {
  gex_Rank_t rank;
  gex_EP_Index_t endpoint;
  ptl_size_t offset; /* offset in the bound segment of the endpoint */
  /* Endpoint of this process whose segment in memory of a device has the local range; 0: none. */
  gex_EP_Index_t local = 0;
};

/** Operation of an atomic on one value. */
struct Atomic {
  ptl_op_t operation;
  ptl_datatype_t datatype;
  size_t bytes;
  const void* data;    /* at most 8 bytes; may change once the operation has started */
  const void* operand; /* operand of PTL_SWAP and PTL_CSWAP; NULL for other operations */
};

}  // namespace lintel::gasnet

/** A group of puts and gets that completes as a whole. One counter counts their acknowledgements
 * and replies; it is never reset. A leaf event is the address of its root with bit 0 set. So a root
 * can be used again while a leaf of it is still in an array of the client. */
struct gasneti_event {
  explicit gasneti_event(lintel::gasnet::EventPool& pool);
  /** Tag of an event that counts nothing. It is complete when it is signalled. */
  struct Signalled {};
  gasneti_event(lintel::gasnet::EventPool& pool, Signalled) : owner(&pool), is_signalled_(true) {}

  /** Sends parts of at most max_msg_size bytes. The range is in the segment. */
  void put(lintel::gasnet::Place place, const void* source, size_t bytes);
  void get(lintel::gasnet::Place place, void* destination, size_t bytes);
  /** One transfer between pieces of this process and a range of the peer.
   * @return false if Portals has no room for it. */
  bool put_pieces(lintel::gasnet::Place place, std::unique_ptr<ptl_iovec_t[]> pieces, size_t count,
                  size_t bytes);
  bool get_pieces(lintel::gasnet::Place place, std::unique_ptr<ptl_iovec_t[]> pieces, size_t count,
                  size_t bytes);
  /** @param result  gets the previous value; or NULL. */
  void update(const lintel::gasnet::Place& place, const lintel::gasnet::Atomic& atomic,
              void* result);
  /** Counts an operation that a message answers, like a put. By the thread that starts it. */
  void count_started() {
    started_.store(started_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /** Any thread. */
  void count_answer();
  void expect_signal() {
    has_signal_.store(false, std::memory_order_relaxed);
    look_ = nullptr;
    awaited_ = nullptr;
    looks_before_poll_ = 0;
  }
  using Look = bool (*)(void* context);
  using AwaitedBy = std::optional<lintel::gasnet::AwaitedCount> (*)(void* context,
                                                                    const gasneti_event& event);
  /** @param look     called by tests until the event is signalled; it may signal. Runs no handlers.
   * @param awaited  returns the count that `look` finds too low, if it waits for a count.
   * @param looks_before_poll  calls of `look` before a wait polls: for conditions that need no
   *                           poll. */
  void set_look(Look look, AwaitedBy awaited, void* context, unsigned int looks_before_poll) {
    look_ = look;
    awaited_ = awaited;
    context_ = context;
    looks_before_poll_ = looks_before_poll;
  }
  unsigned int looks_before_poll() const { return looks_before_poll_; }
  void signal() { has_signal_.store(true, std::memory_order_release); }
  /** Runs no handlers. A failed transfer ends the program. */
  bool is_complete() const;
  /** @return the count that completes an incomplete event, if it waits for a count. */
  std::optional<lintel::gasnet::AwaitedCount> awaited() const;

  /** Whether every operation that was started has been answered, by success or failure. Any
   * thread. */
  bool is_answered() const;

  lintel::gasnet::EventPool* const owner;
  gasneti_event* next = nullptr;        /* link of a list of free events */
  gasneti_event* made_before = nullptr; /* link of the list of all events */

 private:
  /** A list of pieces. Portals reads it until the transfer is complete. */
  struct Pieces {
    ptl_handle_md_t memory;
    std::unique_ptr<ptl_iovec_t[]> list;
    Pieces* next;
  };
  /** @return NULL if Portals has no room. */
  Pieces* bind_pieces(std::unique_ptr<ptl_iovec_t[]> list, size_t count, size_t bytes);
  /** To be called when no transfer is under way. */
  void release_pieces() const;

  /** A segment in memory of a device. Its descriptor spares Portals the question whose memory it
   * is, for each transfer. */
  struct DeviceSegment {
    gex_EP_Index_t endpoint;
    unsigned int binding;
    uintptr_t address;
    uintptr_t bytes;
    ptl_handle_md_t memory;
  };
  /** @param offset  address of the local range; its offset in the descriptor on return. */
  ptl_handle_md_t descriptor_for(const lintel::gasnet::Place& place, size_t bytes,
                                 ptl_size_t* offset) {
    return place.local == 0 ? memory_ : device_descriptor(place.local, bytes, offset);
  }
  ptl_handle_md_t device_descriptor(gex_EP_Index_t endpoint, size_t bytes, ptl_size_t* offset);
  /** @return false if Portals has no room, or a transfer of the former segment is under way. */
  bool bind_device(gex_EP_Index_t endpoint, unsigned int binding);
  ptl_handle_md_t bind(uintptr_t address, ptl_size_t bytes) const;

  ptl_handle_ct_t counter_{};
  ptl_handle_md_t memory_{}; /* the whole address space */
  std::unique_ptr<DeviceSegment> device_;
  uint64_t unused_result_ = 0; /* result of swaps that do not fetch */
  mutable std::atomic<Pieces*> pieces_{nullptr};
  bool is_signalled_ = false;
  std::atomic<bool> has_signal_{false};
  Look look_ = nullptr;
  AwaitedBy awaited_ = nullptr;
  void* context_ = nullptr;
  unsigned int looks_before_poll_ = 0;
  std::atomic<ptl_size_t> started_{0}; /* written by one thread */
};

namespace lintel::gasnet {

/** A wait for one of several events: a loop that tests them and polls. */
class Wait {
 public:
  Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() { note_progress(); }
  /** Polls. If the poll did nothing, waits for a moment.
   * @return whether that is still to be done: call add() for each event that is awaited, then
   *         pause(). */
  bool poll();
  void add(const gasneti_event& event);
  void pause();

 private:
  uint64_t idle_since_ns_ = 0;
  AwaitedCount awaited_[kMostAwaited];
  unsigned int size_ = 0;
  bool has_all_counts_ = true; /* each event waits for a count */
};
/** Runs handlers until the event is complete. */
void wait_for(const gasneti_event& event);

/** The free events of one place for threads. Other threads return events through a list of their
 * own. An event is made when none is free; it is never freed. */
class EventPool {
 public:
  /** @return NULL if half of the memory descriptors of the interface are in use as events. */
  gasneti_event* take();
  /** Takes one of the few events without which a thread cannot continue: there is no limit. */
  gasneti_event& take_always();
  /** Called by the thread whose pool is `caller`. */
  static void release(gasneti_event& event, EventPool& caller);
  /** @return NULL if there is none. */
  gasneti_event* take_free();

 private:
  gasneti_event* free_ = nullptr;
  std::atomic<gasneti_event*> returned_{nullptr};
};

/** The implicit operations of a thread, in the groups that gex_NBI_Test distinguishes. */
struct ThreadEvents {
  EventPool pool;
  gasneti_event* gets = nullptr;
  gasneti_event* puts = nullptr;
  gasneti_event* updates = nullptr;    /* atomics, for GEX_EC_RMW */
  gasneti_event* group_puts = nullptr; /* event of puts with GEX_EVENT_GROUP, for GEX_EC_LC */
  gasneti_event* region = nullptr;     /* between begin and end of an access region */
};

ThreadEvents& this_threads_events();

/** An event that expects a signal. The thread that waits for it releases it, like any event. */
gasneti_event& take_signalled_event();

/** Set-up path. */
void start_events();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_RMA_EVENT_H
