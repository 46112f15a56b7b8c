// Messages of a process to itself. Message path, but for open() and connect().
#include "local/local_transport.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace lintel {

std::unique_ptr<LocalTransport> LocalTransport::open(ProcessId self, uint32_t uid) {
  void* memory =
      mmap(nullptr, geometry.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<LocalTransport> transport(new LocalTransport(self, uid, memory));
  return transport->producer_.attached() ? std::move(transport) : nullptr;
}

// What fits a cell is sent with it; anything longer is copied once, straight to its final place.
LocalTransport::LocalTransport(ProcessId self, uint32_t uid, void* memory)
    : capabilities_{"local", lane_max_payload_bytes, true, false, lane_inline_bytes + 1},
      memory_(memory) {
  capabilities_.in_process = true;
  link_.peer = self;
  link_.uid = uid;
  LaneControl* const lane = new (memory) LaneControl;
  if (producer_.attach(lane, geometry)) consumer_.attach(lane, geometry);
}

LocalTransport::~LocalTransport() { munmap(memory_, geometry.bytes()); }

Link* LocalTransport::connect(ProcessId peer, std::string* reason) {
  if (peer == link_.peer) return &link_;
  if (reason != nullptr) *reason = "it is another process";
  return nullptr;
}

SendStatus LocalTransport::send(Link&, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept {
  const SendStatus status = producer_.push(header, pieces, count);
  if (status == SendStatus::queue_full) [[unlikely]]
    blocked_.store(true, std::memory_order_relaxed);
  return status;
}

unsigned LocalTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  unsigned total = 0;
  // All that is there: the core asks again only after another send.
  while (total < budget && consumer_.ready()) {
    InboundMessage messages[burst];
    bool malformed = false;  // cannot be: nobody else writes this lane
    const unsigned count = consumer_.peek(messages, std::min(burst, budget - total), malformed);
    if (count == 0) [[unlikely]]
      break;
    if (!announced_) [[unlikely]] {
      announced_ = true;
      void* const context = sink.on_new_link(link_);
      if (link_.context != context) link_.context = context;
    }
    sink.on_messages(link_, messages, count);
    static_cast<void>(consumer_.release(count));
    total += count;
  }
  if (total < budget) static_cast<void>(consumer_.release_on_request());
  return total;
}

bool LocalTransport::arm(bool blocked_senders) noexcept {
  consumer_.publish_room();
  // With nothing to read there is room again for senders that found none.
  return !consumer_.ready() && !(blocked_senders && blocked_.exchange(false));
}

std::string LocalTransport::describe() const {
  return "this process itself, payloads above " + std::to_string(lane_inline_bytes) +
         " bytes copied once";
}

}  // namespace lintel
