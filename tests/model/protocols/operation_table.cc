// OperationTable: senders fill in an operation, the poller finds it by its cookie and ends it, and
// senders use it again.
#include "core/operations/operation_table.h"

#include "program.h"
#include "util/address_space.h"
#include "util/lock.h"

namespace lintel {

// The limits of this process do not matter.
uint32_t fitting_capacity(uint32_t, uint64_t) noexcept { return 4; }

namespace model {
namespace {

struct Operations {
  OperationTable table;
  Peer peer;
  std::atomic<uint32_t> cookies[2]{};

  Operations() { require(table.open(), "memory"); }
  // As Initiator does. A peer may answer before it was asked, so the cookie orders nothing.
  void send(unsigned number) {
    Operation* operation = nullptr;
    {
      const LockGuard guard(peer.send_lock);
      operation = table.allocate(peer);
    }
    require(operation != nullptr, "an operation is free");
    operation->stream_position = number + 1;
    operation->peer.store(&peer, std::memory_order_release);
    cookies[number].store(table.cookie_of(*operation) + 1, std::memory_order_relaxed);
  }
  void end(unsigned number) {
    uint32_t cookie = 0;
    while ((cookie = cookies[number].load(std::memory_order_relaxed)) == 0) {
    }
    Operation* operation = nullptr;
    while ((operation = table.find(cookie - 1)) == nullptr) {
    }
    require(operation->stream_position == number + 1, "the operation is complete");
    operation->stream_position = 0;
    table.end(*operation);
    table.return_ended(peer);
  }
  void first() { send(0); }
  void second() { send(1); }
  void both() {
    send(0);
    send(1);
  }
  void end_both() {
    end(0);
    end(1);
  }
};

}  // namespace

Protocol operation_table() {
  using O = Operations;
  return {"OperationTable",
          {"core/operations/operation_table", "core/operations/operation.h"},
          {share<O>("one sender", {&O::end_both, &O::both}),
           share<O>("two senders", {&O::end_both, &O::first, &O::second})}};
}

}  // namespace model
}  // namespace lintel
