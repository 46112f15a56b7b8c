// ChannelRequests: the poller learns of an event of the device, also while it handles another one.
#include "verbs/channel_requests.h"

#include <cstddef>
#include <new>

#include "program.h"

namespace lintel::model {
namespace {

struct Requests {
  ChannelRequests requests{true};
  bool is_lost = false;  // the poller knows

  Requests() {
    // A request that has been handled meanwhile.
    ibv_qp broken{};
    ibv_async_event event{};
    event.event_type = IBV_EVENT_QP_FATAL;
    event.element.qp = &broken;
    requests.on_async_event(event);
  }
  void lose() {
    ibv_async_event event{};
    event.event_type = IBV_EVENT_DEVICE_FATAL;
    requests.on_async_event(event);
  }
  // As VerbsTransport::poll().
  void poll() {
    if (requests.is_pending(std::memory_order_relaxed) && requests.take().shared_queue)
      is_lost = true;
  }
  void known() {
    require(is_lost || requests.is_pending(std::memory_order_relaxed), "the event is noticed");
    poll();
    require(is_lost, "the event is there");
  }
};

// An event that comes while the interface is opened: its doorbell may be there, or not yet.
struct DuringOpening {
  ChannelRequests requests{true};
  alignas(Doorbell) std::byte memory[sizeof(Doorbell)];

  void open() { requests.set_doorbell(*new (memory) Doorbell); }
  void lose() {
    ibv_async_event event{};
    event.event_type = IBV_EVENT_DEVICE_FATAL;
    requests.on_async_event(event);
  }
  void known() { require(requests.take().shared_queue, "the event is there"); }
};

}  // namespace

Protocol channel_requests() {
  return {"ChannelRequests",
          {"verbs/channel_requests"},
          {share<Requests>("event", {&Requests::poll, &Requests::lose}, &Requests::known),
           share<DuringOpening>("during opening", {&DuringOpening::open, &DuringOpening::lose},
                                &DuringOpening::known)}};
}

}  // namespace lintel::model
