// Two reliable transports of one process over links that only copy. Each message is sent by the end
// that received the last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "reliable/reliable_transport.h"

namespace lintel::components {

// The frames on the way to one of the two.
struct Mailbox {
  static constexpr unsigned most = PacketLink::largest_burst;
  alignas(64) std::byte data[most][512];
  uint32_t length[most];
  unsigned count = 0;
};

class CopyingLink final : public PacketLink {
 public:
  static constexpr uint32_t pid = 1;
  static constexpr uint32_t frame_bytes = 9000;

  static LinkAddress address_of(uint32_t nid) {
    LinkAddress address;
    std::memcpy(address.bytes.data(), &nid, sizeof nid);
    return address;
  }

  CopyingLink(uint32_t nid, uint32_t peer_nid, Mailbox& in, Mailbox& out)
      : peer_address_(address_of(peer_nid)), in_(in), out_(out) {
    properties_.name = "copying";
    properties_.id = {nid, pid};
    properties_.own_address = address_of(nid);
    properties_.mtu = frame_bytes;
    properties_.receive_capacity_bytes = 1 << 20;
  }
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
  bool arm() noexcept override { return true; }
  LinkCounters counters() const noexcept override { return {}; }
  std::string describe() const override { return {}; }

 private:
  LinkAddress peer_address_;
  Mailbox& in_;
  Mailbox& out_;
};

class CopyingPair {
 public:
  explicit CopyingPair(const ReliableSettings& settings) {
    std::string reason;
    for (uint32_t i = 0; i < 2; ++i) {
      auto link = std::make_unique<CopyingLink>(i + 1, 2 - i, boxes_[i], boxes_[1 - i]);
      ends_[i].transport = ReliableTransport::open(std::move(link), settings, reason);
    }
    for (uint32_t i = 0; i < 2; ++i)
      ends_[i].to_peer = ends_[i].transport->connect({2 - i, CopyingLink::pid}, &reason);
    while (!send(ends_[0])) {
      poll(ends_[1]);
      poll(ends_[0]);
    }
    while (ends_[1].sink.messages == 0) poll(ends_[1]);
    sender_ = 1;
  }

  // A message of 8 bytes, until it is handed up. False: it was not taken.
  [[nodiscard]] bool exchange() {
    End& receiver = ends_[1 - sender_];
    const uint64_t before = receiver.sink.messages;
    if (!send(ends_[sender_])) return false;
    while (receiver.sink.messages == before) poll(receiver);
    sender_ = 1 - sender_;
    return true;
  }

 private:
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
  };

  static bool send(End& end) {
    uint64_t payload = 0;
    const Piece piece{reinterpret_cast<std::byte*>(&payload), sizeof payload};
    MessageHeader header{};
    header.kind = MessageKind::put;
    return end.transport->send(*end.to_peer, header, &piece, 1) == SendStatus::sent;
  }
  static void poll(End& end) { end.transport->poll(end.sink, 32); }

  std::unique_ptr<Mailbox[]> boxes_ = std::make_unique<Mailbox[]>(2);
  End ends_[2];
  unsigned sender_ = 0;
};

}  // namespace lintel::components
