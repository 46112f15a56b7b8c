// What the reliability layer does for a short message, both ways: two transports of one process over a
// link that only copies; sent by one, received by the other, which sends the next.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "../core/repeated.h"
#include "reliable/reliable_transport.h"

namespace lintel::components {
namespace {

constexpr uint32_t payload_bytes = 8;
constexpr uint32_t frame_bytes = 9000;
constexpr uint32_t pid = 1;

// What is on the way to one of the two.
struct Mailbox {
  static constexpr unsigned most = PacketLink::largest_burst;
  alignas(64) std::byte data[most][512];
  uint32_t length[most];
  unsigned count = 0;
};

LinkAddress address_of(uint32_t nid) {
  LinkAddress address;
  std::memcpy(address.bytes.data(), &nid, sizeof nid);
  return address;
}

class CopyingLink final : public PacketLink {
 public:
  CopyingLink(uint32_t nid, uint32_t peer_nid, Mailbox& in, Mailbox& out)
      : nid_(nid), peer_address_(address_of(peer_nid)), in_(in), out_(out) {}
  const char* name() const noexcept override { return "copying"; }
  ProcessId id() const noexcept override { return {nid_, pid}; }
  LinkAddress own_address() const noexcept override { return address_of(nid_); }
  uint32_t mtu() const noexcept override { return frame_bytes; }
  uint64_t receive_capacity_bytes() const noexcept override { return 1 << 20; }
  ResolveStatus resolve(ProcessId peer, Route& route, std::string*) noexcept override {
    route = {address_of(peer.nid), frame_bytes};
    return ResolveStatus::resolved;
  }
  bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override {
    route = {from, frame_bytes};
    return from == address_of(peer.nid);
  }
  unsigned send(const OutboundFrame* frames, unsigned count) noexcept override {
    unsigned sent = 0;
    for (; sent < count && out_.count < Mailbox::most; ++sent, ++out_.count) {
      uint32_t length = 0;
      for (unsigned i = 0; i < frames[sent].count; ++i) {
        std::memcpy(out_.data[out_.count] + length, frames[sent].pieces[i].base,
                    frames[sent].pieces[i].length);
        length += static_cast<uint32_t>(frames[sent].pieces[i].length);
      }
      out_.length[out_.count] = length;
    }
    return sent;
  }
  unsigned receive(InboundFrame* frames, unsigned max) noexcept override {
    const unsigned count = std::min(in_.count, max);
    for (unsigned i = 0; i < count; ++i) frames[i] = {&peer_address_, in_.data[i], in_.length[i]};
    in_.count = 0;
    return count;
  }
  int descriptor() const noexcept override { return no_descriptor; }
  bool arm() noexcept override { return true; }
  LinkCounters counters() const noexcept override { return {}; }
  std::string describe() const override { return {}; }

 private:
  uint32_t nid_;
  LinkAddress peer_address_;
  Mailbox& in_;
  Mailbox& out_;
};

struct Sink final : MessageSink {
  uint64_t messages = 0;
  void* on_new_link(Link&) noexcept override { return this; }
  void on_messages(Link&, const InboundMessage*, unsigned count) noexcept override {
    messages += count;
  }
  void on_peer_failed(Link&) noexcept override {}
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return false; }
};

struct End {
  std::unique_ptr<ReliableTransport> transport;
  Sink sink;
  Link* to_peer = nullptr;

  bool send() {
    uint64_t payload = 0;
    const Piece piece{reinterpret_cast<std::byte*>(&payload), payload_bytes};
    MessageHeader header{};
    header.kind = MessageKind::put;
    return transport->send(*to_peer, header, &piece, 1) == SendStatus::sent;
  }
  void poll() { transport->poll(sink, 32); }
};

void reliable_message(benchmark::State& state) {
  const auto boxes = std::make_unique<Mailbox[]>(2);
  End ends[2];
  std::string reason;
  for (uint32_t i = 0; i < 2; ++i)
    ends[i].transport = ReliableTransport::open(
        std::make_unique<CopyingLink>(i + 1, 2 - i, boxes[i], boxes[1 - i]), {}, reason);
  for (uint32_t i = 0; i < 2; ++i)
    ends[i].to_peer = ends[i].transport->connect({2 - i, pid}, &reason);
  while (!ends[0].send()) {
    ends[1].poll();
    ends[0].poll();
  }
  while (ends[1].sink.messages == 0) ends[1].poll();
  unsigned sender = 1;
  for (auto _ : state) {
    End& receiver = ends[1 - sender];
    const uint64_t before = receiver.sink.messages;
    if (!ends[sender].send()) state.SkipWithError("the message was not sent");
    while (receiver.sink.messages == before) receiver.poll();
    sender = 1 - sender;
  }
}
BENCHMARK(reliable_message)->Apply(repeated);

}  // namespace
}  // namespace lintel::components
