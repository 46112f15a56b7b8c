// EventQueue: writers that fill different slots or the same one in different laps, readers that
// race for an event or with the writer that overwrites it, reservations.
#include "core/events/event_queue.h"

#include "core/events/live_handle.h"
#include "program.h"

namespace lintel::model {
namespace {

template <unsigned slots>
struct QueueOf {
  WaitGate gate;
  EventQueue queue;
  std::atomic<uint32_t> taken{0};
  int payload[4]{};
  unsigned seen[4]{};

  QueueOf() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    gate.set_doorbell(nullptr);
    require(queue.open(slots, 0, &gate), "memory");
  }

  void post(uint64_t number) {
    payload[number] = 7;
    queue.post(
        InitiatorEvent{PTL_EVENT_SEND, nullptr, number, number + 10, PTL_PRIORITY_LIST, PTL_NI_OK});
  }
  template <uint64_t... numbers>
  void post_all() {
    (post(numbers), ...);
  }
  GetStatus get() {
    ptl_event_t event;
    const GetStatus status = queue.get(&event);
    if (status != GetStatus::ok && status != GetStatus::dropped) return status;
    require(event.type == PTL_EVENT_SEND && event.mlength < 4 &&
                event.remote_offset == event.mlength + 10 && event.ni_fail_type == PTL_NI_OK,
            "an event is of one piece");
    require(payload[event.mlength] == 7, "what precedes the event is there");
    ++seen[event.mlength];
    last = event.mlength;
    return status;
  }
  uint64_t last = 0;

  // Takes `count` events.
  template <unsigned count>
  void take() {
    for (unsigned got = 0; got < count;)
      if (get() == GetStatus::ok) ++got;
  }
  void all_taken() {
    for (uint64_t i = 0; i < 2; ++i) require(seen[i] == 1, "each event was taken once");
  }
};

using Queue = QueueOf<2>;

// One of two readers gets each event. They count in memory of their own.
struct TwoReaders : Queue {
  unsigned got[2]{};
  template <unsigned reader>
  void take_any() {
    for (unsigned i = 0; i < 2; ++i) {
      ptl_event_t event;
      if (queue.get(&event) != GetStatus::ok) return;
      require(payload[event.mlength] == 7, "what precedes the event is there");
      got[reader] |= 1u << event.mlength;
    }
  }
  // The same, several at a time.
  template <unsigned reader>
  void take_ready() {
    ptl_event_t events[2];
    unsigned count = 0;
    if (queue.try_get_several(events, 2, count) != GetStatus::ok) return;
    for (unsigned i = 0; i < count; ++i) {
      require(payload[events[i].mlength] == 7, "what precedes the event is there");
      got[reader] |= 1u << events[i].mlength;
    }
  }
  void once() { require((got[0] & got[1]) == 0, "no event was taken twice"); }
};

// Three events in two slots: the first may be overwritten, and this is reported.
template <unsigned slots>
struct OverwrittenIn : QueueOf<slots> {
  using QueueOf<slots>::get;
  using QueueOf<slots>::last;
  template <uint64_t last_number>
  void take_until() {
    uint64_t expected = 0;
    for (;;) {
      const GetStatus status = get();
      if (status == GetStatus::empty) continue;
      require(last >= expected, "events come in order");
      require((status == GetStatus::dropped) == (last != expected), "a loss is reported");
      expected = last + 1;
      if (last == last_number) return;
    }
  }
};

using Overwritten = OverwrittenIn<2>;

// The same, with a reader that takes several at a time.
struct ReadyOverwritten : Overwritten {
  void take_ready() {
    ptl_event_t events[2];
    unsigned count = 0;
    if (queue.try_get_several(events, 2, count) != GetStatus::ok) return;
    for (unsigned i = 0; i < count; ++i) {
      require(events[i].mlength == i && events[i].remote_offset == i + 10,
              "the oldest events are of one piece and in order");
      require(payload[i] == 7, "what precedes the event is there");
    }
  }
};

// Two writers fill the same slot in two laps.
struct Laps : OverwrittenIn<1> {
  void post_first() { post(0); }
  void post_second() { post(1); }
  void take() {
    while (get() == GetStatus::empty) {
    }
  }
};

// The room of a reservation is not overwritten, and none is given that is not there.
struct Reserved : Queue {
  void post_reserved() {
    for (uint64_t i = 0; i < 3; ++i) {
      while (!queue.try_reserve()) {
      }
      payload[i] = 7;
      ptl_event_t event{};
      event.type = PTL_EVENT_SEND;
      event.mlength = i;
      event.remote_offset = i + 10;
      event.ni_fail_type = PTL_NI_OK;
      queue.post(event, true);
    }
  }
  void take_three() {
    for (uint64_t i = 0; i < 3;) {
      const GetStatus status = get();
      if (status == GetStatus::empty) continue;
      require(status == GetStatus::ok && last == i, "no event is lost");
      ++i;
    }
  }
};

// The thread that awaits an event looks whether the queue was freed, and who frees it waits until
// it is not awaited.
struct Freed : Queue {
  LiveHandle handle;
  uint64_t live = handle.begin(1);
  int used = 0;

  void await() {
    ptl_event_t event;
    queue.await(&event);
    if (handle.is(live)) ++used;
    static_cast<void>(queue.end_await());
  }
  void free() {
    require(handle.end(live), "one thread frees it");
    std::atomic_thread_fence(std::memory_order_seq_cst);
    while (queue.is_awaited()) {
    }
    ++used;
  }
};

// A thread still looks at the queue while it is opened anew, with a ring of another size.
struct Reopened : QueueOf<1> {
  void look() {
    ptl_event_t event;
    static_cast<void>(queue.try_get(&event));
  }
  void look_at_several() {
    ptl_event_t events[2];
    unsigned count = 0;
    static_cast<void>(queue.try_get_several(events, 2, count));
  }
  void look_slowly() {
    ptl_event_t event;
    static_cast<void>(queue.get_slowly(&event));
  }
  void reopen() {
    queue.reset();
    require(queue.open(2, 0, &gate), "memory");
  }
};

}  // namespace

Protocol event_queue() {
  return {
      "EventQueue",
      {"core/events/event_queue"},
      {share<Queue>("two writers", {&Queue::take<2>, &Queue::post_all<0>, &Queue::post_all<1>},
                    &Queue::all_taken),
       share<TwoReaders>(
           "two readers",
           {&TwoReaders::post_all<0, 1>, &TwoReaders::take_any<0>, &TwoReaders::take_any<1>},
           &TwoReaders::once),
       share<TwoReaders>(
           "a reader of several",
           {&TwoReaders::post_all<0, 1>, &TwoReaders::take_any<0>, &TwoReaders::take_ready<1>},
           &TwoReaders::once),
       share<ReadyOverwritten>("several overwritten", {&ReadyOverwritten::take_ready,
                                                       &ReadyOverwritten::post_all<0, 1, 2>}),
       share<Overwritten>("overwritten",
                          {&Overwritten::take_until<2>, &Overwritten::post_all<0, 1, 2>}),
       share<Laps>("two writers, one slot", {&Laps::take, &Laps::post_first, &Laps::post_second}),
       share<Reserved>("reserved", {&Reserved::take_three, &Reserved::post_reserved}),
       share<Reopened>("opened anew", {&Reopened::look, &Reopened::look_slowly, &Reopened::reopen}),
       share<Reopened>("opened anew, several", {&Reopened::look_at_several, &Reopened::reopen}),
       share<Freed>("awaited and freed", {&Freed::await, &Freed::free})}};
}

}  // namespace lintel::model
