// AwaitedPuts: the record of a put is complete for the poller, whatever cookie the peer sends, and
// is used again by a sender once the poller has ended it.
#include "core/operations/awaited_puts.h"

#include "program.h"

namespace lintel::model {
namespace {

struct Puts {
  static constexpr uint32_t first_cookie = awaited_put_cookie;
  Arena<AwaitedPuts::Ring> rings;
  AwaitedPuts puts;
  EventQueueObject queue;
  MemoryDescriptor descriptor;

  Puts() {
    require(rings.open(1), "memory");
    puts.open(rings);
    descriptor.event_queue = &queue;
  }
  bool add(uint64_t number) {
    const AwaitedPuts::Put put{reference_to(&descriptor), number, PTL_ACK_REQ, nullptr, number};
    uint32_t cookie = 0;
    return puts.add(put, cookie);
  }
  void end(uint64_t number) {
    AwaitedPuts::Record* record = nullptr;
    while ((record = puts.find(first_cookie)) == nullptr) {
    }
    require(record->resolve() == &descriptor && record->length() == number &&
                record->remote_offset() == number,
            "the record is complete");
    AwaitedPuts::end(*record);
  }
};

// A peer that acknowledges a put before it has come. The first put takes the ring.
struct FirstPut : Puts {
  void send() { require(add(1), "a record is free"); }
  void end_first() { end(1); }
};

// All records are taken.
struct FullRing : Puts {
  FullRing() {
    for (uint32_t i = 0; i < AwaitedPuts::capacity; ++i) require(add(1), "a record is free");
  }
  void send() {
    while (!add(2)) {
    }
  }
  void end_both() {
    end(1);
    end(2);
  }
};

}  // namespace

Protocol awaited_puts() {
  return {"AwaitedPuts",
          {"core/operations/awaited_puts.h"},
          {share<FirstPut>("first put", {&FirstPut::end_first, &FirstPut::send}),
           share<FullRing>("a record is used again", {&FullRing::end_both, &FullRing::send})}};
}

}  // namespace lintel::model
