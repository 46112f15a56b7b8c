// Messages of a process to itself. Message path, but for open() and connect().
#include "local/local_transport.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "util/guarded_memory.h"

namespace lintel {

namespace {

constexpr uint64_t page_bytes = 4096;

uint64_t to_page_end(const void* address) noexcept {
  return page_bytes - reinterpret_cast<uintptr_t>(address) % page_bytes;
}

// Copies once more page by page, to find out how far it goes and which side ends it.
RemoteResult copy_up_to_fault(std::byte* to, const std::byte* from, uint64_t bytes,
                              bool reading) noexcept {
  uint64_t moved = 0;
  while (moved < bytes) {
    const uint64_t step =
        std::min({bytes - moved, to_page_end(to + moved), to_page_end(from + moved)});
    if (!guarded_copy(to + moved, from + moved, step)) {
      std::byte probe;
      const bool source_is_good = guarded_copy(&probe, from + moved, 1);
      return {source_is_good == reading ? RemoteStatus::local_fault : RemoteStatus::remote_fault,
              moved};
    }
    moved += step;
  }
  return {RemoteStatus::done, moved};
}

}  // namespace

RemoteResult copy_within_process(const Piece* local, unsigned local_count,
                                 const RemoteMemory* remote, unsigned remote_count,
                                 bool reading) noexcept {
  uint64_t moved = 0;
  uint64_t local_offset = 0;
  uint64_t remote_offset = 0;
  while (local_count != 0 && remote_count != 0) {
    const uint64_t step = std::min(local->length - local_offset, remote->length - remote_offset);
    std::byte* const here = local->base + local_offset;
    std::byte* const there = reinterpret_cast<std::byte*>(remote->address + remote_offset);
    std::byte* const to = reading ? here : there;
    const std::byte* const from = reading ? there : here;
    if (step != 0 && !guarded_copy(to, from, step)) {
      const RemoteResult result = copy_up_to_fault(to, from, step, reading);
      if (result.status != RemoteStatus::done) return {result.status, moved + result.bytes};
    }
    moved += step;
    local_offset += step;
    remote_offset += step;
    if (local_offset == local->length) {
      ++local;
      --local_count;
      local_offset = 0;
    }
    if (remote_offset == remote->length) {
      ++remote;
      --remote_count;
      remote_offset = 0;
    }
  }
  return {RemoteStatus::done, moved};
}

std::unique_ptr<LocalTransport> LocalTransport::open(ProcessId self, uint32_t uid) {
  void* memory =
      mmap(nullptr, geometry.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<LocalTransport> transport(new LocalTransport(self, uid, memory));
  return transport->producer_.attached() ? std::move(transport) : nullptr;
}

// A payload that fits a cell is sent with it; a longer one is copied once, straight to its final
// place.
LocalTransport::LocalTransport(ProcessId self, uint32_t uid, void* memory)
    : capabilities_{"local", lane_max_payload_bytes, true, false, lane_inline_bytes + 1},
      memory_(memory),
      process_(static_cast<uint32_t>(getpid())) {
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
  if (!announced_) [[unlikely]]
    announce(sink);
  unsigned total = 0;
  // All that is there: the core polls again only after another send.
  while (total < budget) {
    auto taken = LaneConsumer::Taken::none;
    uint32_t cookie;
    if (consumer_.message_waits())
      taken = consumer_.deliver_put(sink, link_, [this] { return &producer_.acks(); });
    if (taken != LaneConsumer::Taken::none) [[likely]] {
      if (taken == LaneConsumer::Taken::acknowledged) producer_.acks().publish();
      static_cast<void>(consumer_.release_taken());
      ++total;
    } else if (consumer_.acks().take_single(cookie)) {
      total += sink.on_acknowledgement(link_, cookie);
    } else if (consumer_.ready()) {
      total += take_burst(sink, budget - total);
    } else {
      static_cast<void>(consumer_.release_on_request());
      break;
    }
  }
  return total;
}

void LocalTransport::announce(MessageSink& sink) noexcept {
  announced_ = true;
  void* const context = sink.on_new_link(link_);
  if (link_.context != context) link_.context = context;
}

[[gnu::noinline]] unsigned LocalTransport::take_burst(MessageSink& sink, unsigned budget) noexcept {
  bool malformed = false;  // cannot be: no other process writes this lane
  uint32_t cookies[lane_ack_places];
  const unsigned acks = consumer_.acks().take(cookies, malformed);
  if (acks != 0) sink.on_acknowledgements(link_, cookies, acks);
  InboundMessage messages[burst];
  const unsigned count = consumer_.peek(messages, std::min(burst, budget), malformed);
  if (count != 0) {
    sink.on_messages(link_, messages, count);
    static_cast<void>(consumer_.release(count));
  }
  return acks + count;
}

bool LocalTransport::arm(bool blocked_senders) noexcept {
  consumer_.publish_room();
  // If there is nothing to read, there is room again for senders that found none.
  return !consumer_.ready() && !(blocked_senders && blocked_.exchange(false));
}

std::string LocalTransport::describe() const {
  return "this process itself, payloads above " + std::to_string(lane_inline_bytes) +
         " bytes copied once";
}

}  // namespace lintel
