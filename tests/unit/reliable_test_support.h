// Support for the tests of the reliability layer: links in memory whose frames a test can change,
// simulated time, and processes that record what they receive.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reliable/reliable_transport.h"
#include "support/quiet_sink.h"
#include "transport/packet_link.h"
#include "util/guarded_memory.h"

namespace lintel::test {

inline uint64_t virtual_now_ns = 1'000'000'000;
inline uint64_t virtual_clock() noexcept { return virtual_now_ns; }

inline LinkAddress address_of(ProcessId process) {
  LinkAddress address;
  std::memcpy(address.bytes.data(), &process, sizeof process);
  return address;
}

// The address of a port of a process.
inline LinkAddress address_of(ProcessId process, unsigned rail) {
  LinkAddress address = address_of(process);
  address.bytes[sizeof process] = static_cast<std::byte>(rail);
  return address;
}
inline unsigned rail_of(const LinkAddress& address) {
  return static_cast<unsigned>(address.bytes[sizeof(ProcessId)]);
}

using Frame = std::vector<std::byte>;

inline FrameHeader header_of(const Frame& frame) {
  FrameHeader header{};
  std::memcpy(&header, frame.data(), std::min(frame.size(), sizeof header));
  return header;
}

// Carries frames between MemoryLinks, each after `latency_ns`.
class MemoryNetwork {
 public:
  // The script replaces a frame by copies (none: it is lost), each with an additional delay.
  struct Copy {
    Frame frame;
    uint64_t delay_ns = 0;
  };
  using Script = std::function<std::vector<Copy>(const LinkAddress& from, const LinkAddress& to,
                                                 const Frame& frame)>;

  uint64_t latency_ns = 5'000;
  Script script;  // empty: everything arrives once
  uint64_t frames_carried = 0;

  void carry(const LinkAddress& from, const LinkAddress& to, Frame frame) {
    ++frames_carried;
    std::vector<Copy> copies;
    if (script)
      copies = script(from, to, frame);
    else
      copies.push_back({std::move(frame), 0});
    for (Copy& copy : copies)
      queue_.emplace(virtual_now_ns + latency_ns + copy.delay_ns,
                     Travelling{from, to, std::move(copy.frame)});
  }
  // A frame that seems to come from `from`, and arrives at once.
  void inject(const LinkAddress& from, const LinkAddress& to, Frame frame) {
    queue_.emplace(virtual_now_ns, Travelling{from, to, std::move(frame)});
  }

  // Removes and returns the frames for `to` that have arrived by now.
  std::deque<std::pair<LinkAddress, Frame>> take(const LinkAddress& to) {
    std::deque<std::pair<LinkAddress, Frame>> arrived;
    for (auto it = queue_.begin(); it != queue_.end() && it->first <= virtual_now_ns;) {
      if (it->second.to == to) {
        arrived.emplace_back(it->second.from, std::move(it->second.frame));
        it = queue_.erase(it);
      } else {
        ++it;
      }
    }
    return arrived;
  }

 private:
  struct Travelling {
    LinkAddress from, to;
    Frame frame;
  };
  std::multimap<uint64_t, Travelling> queue_;
};

class MemoryLink final : public PacketLink {
 public:
  MemoryLink(MemoryNetwork& network, ProcessId id, uint32_t mtu, uint64_t capacity,
             bool from_anywhere, unsigned rails = 1)
      : route_mtu(mtu), network_(network) {
    properties_.name = "memory";
    properties_.id = id;
    properties_.own_address = address_of(id);
    properties_.host_mask = address_of({UINT32_MAX, 0});
    properties_.mtu = mtu;
    properties_.receive_capacity_bytes = capacity;
    properties_.sends_from_anywhere = from_anywhere;
    properties_.rail_count = static_cast<uint8_t>(rails == 1 ? 0 : rails);
    for (unsigned i = 0; i < rails; ++i) properties_.rails[i] = {{static_cast<uint8_t>(i)}, mtu};
  }

  void keep_frames_of_node(bool keep) { properties_.keeps_frames_of_node = keep; }
  void use_rails(uint8_t most) { properties_.rails_used = most; }

  bool full = false;          // accepts no frames
  unsigned calls = 0;         // of send()
  unsigned frames_taken = 0;  // by send()
  uint32_t route_mtu;         // of the route to every peer

  ResolveStatus resolve(ProcessId peer, Route& route, std::string* reason) noexcept override {
    if (peer.nid == 0) {
      if (reason != nullptr) *reason = "nobody has nid 0";
      return ResolveStatus::unreachable;
    }
    route = {address_of(peer), route_mtu};
    return ResolveStatus::resolved;
  }
  bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override {
    route = {from, route_mtu};
    return rail_of(from) < rails() && from.without_rail() == address_of(peer, rail_of(from));
  }
  unsigned ways_to(ProcessId peer, const LinkAddress&,
                   LinkAddress (&to)[most_ways]) const noexcept override {
    for (unsigned i = 0; i < properties_.rail_count; ++i)
      to[i] = rail_address(peer, i, properties_.rails[i]);
    return properties_.rail_count;
  }
  LinkAddress rail_address(ProcessId peer, unsigned rail,
                           const RailAddress& port) const noexcept override {
    LinkAddress to = address_of(peer, port.bytes[0]);
    to.set_rail(static_cast<uint8_t>(rail));
    return to;
  }
  unsigned send(const OutboundFrame* frames, unsigned count) noexcept override {
    ++calls;
    if (full) return 0;
    frames_taken += count;
    for (unsigned i = 0; i < count; ++i) {
      Frame bytes;
      bool readable = true;
      for (unsigned p = 0; p < frames[i].count; ++p) {
        const size_t before = bytes.size();
        bytes.resize(before + frames[i].pieces[p].length);
        readable &= guarded_copy(bytes.data() + before, frames[i].pieces[p].base,
                                 frames[i].pieces[p].length);
      }
      if (!readable) continue;  // lost, as sends_from_anywhere permits
      EXPECT_LE(bytes.size(), mtu());
      const LinkAddress& to = *frames[i].to;
      network_.carry(address_of(id(), to.rail()), to.without_rail(), std::move(bytes));
    }
    return count;
  }
  unsigned receive(InboundFrame* frames, unsigned max) noexcept override {
    for (unsigned rail = 0; rail < rails(); ++rail)
      for (auto& arrived : network_.take(address_of(id(), rail))) {
        arrived.first.set_rail(static_cast<uint8_t>(rail));
        waiting_.push_back(std::move(arrived));
      }
    handed_out_.clear();
    unsigned count = 0;
    while (count < max && !waiting_.empty()) {
      handed_out_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      ++count;
    }
    for (unsigned i = 0; i < count; ++i)
      frames[i] = {&handed_out_[i].first, handed_out_[i].second.data(),
                   static_cast<uint32_t>(handed_out_[i].second.size())};
    return count;
  }
  bool arm() noexcept override { return waiting_.empty(); }
  LinkCounters counters() const noexcept override { return {}; }
  std::string describe() const override { return "memory"; }

 private:
  [[nodiscard]] unsigned rails() const { return std::max<unsigned>(1, properties_.rail_count); }

  MemoryNetwork& network_;
  std::deque<std::pair<LinkAddress, Frame>> waiting_;
  std::deque<std::pair<LinkAddress, Frame>> handed_out_;
};

// A process: a transport over a MemoryLink, and a sink that stores arrived messages.
class MemoryProcess final : public QuietSink {
 public:
  struct Message {
    ProcessId from;
    MessageHeader header;
    std::vector<std::byte> payload;
  };

  MemoryProcess(MemoryNetwork& network, ProcessId id, ReliableSettings settings = {},
                uint32_t mtu = 1472, uint64_t capacity = 256 * 1024, bool from_anywhere = false,
                unsigned rails = 1)
      : id_(id) {
    settings.clock = virtual_clock;
    settings.uid = settings.uid == 0 ? 1000 : settings.uid;
    auto link = std::make_unique<MemoryLink>(network, id, mtu, capacity, from_anywhere, rails);
    link_ = link.get();
    std::string reason;
    transport_ = ReliableTransport::open(std::move(link), settings, reason);
    EXPECT_NE(transport_, nullptr) << reason;
  }

  ReliableTransport& transport() { return *transport_; }
  MemoryLink& link() { return *link_; }
  ProcessId id() const { return id_; }
  void end() { transport_.reset(); }

  Link* connect(ProcessId peer) { return transport_->connect(peer, nullptr); }
  SendStatus send(Link* link, const MessageHeader& header, std::vector<std::byte> payload = {}) {
    const Piece piece{payload.data(), payload.size()};
    return transport_->send(*link, header, &piece, payload.empty() ? 0 : 1);
  }
  unsigned poll() { return transport_ == nullptr ? 0 : transport_->poll(*this, 32); }

  void* on_new_link(Link& link) noexcept override {
    ++links;
    uids.push_back(link.uid);
    return &link;
  }
  void on_messages(Link& link, const InboundMessage* arrived, unsigned count) noexcept override {
    for (unsigned i = 0; i < count; ++i) {
      messages.push_back({link.peer, arrived[i].header, {}});
      messages.back().payload.assign(arrived[i].payload,
                                     arrived[i].payload + arrived[i].payload_length);
    }
    last_link = &link;
  }
  void on_peer_failed(Link& link) noexcept override { failed.push_back(link.peer); }

  std::deque<Message> messages;
  std::vector<ProcessId> failed;
  std::vector<uint32_t> uids;
  unsigned links = 0;
  Link* last_link = nullptr;

 private:
  ProcessId id_;
  MemoryLink* link_ = nullptr;
  std::unique_ptr<ReliableTransport> transport_;
};

// Advances the time in small steps, in which all processes poll, until `done()`. Returns false
// after `limit_ns`.
template <typename Done>
[[nodiscard]] bool run_until(const std::vector<MemoryProcess*>& processes, Done&& done,
                             uint64_t limit_ns = 60'000'000'000) {
  const uint64_t end = virtual_now_ns + limit_ns;
  uint64_t step_ns = 1'000;
  while (!done()) {
    if (virtual_now_ns > end) return false;
    unsigned work = 0;
    for (MemoryProcess* process : processes) work += process->poll();
    // Without work, larger and larger steps are made until the next timer.
    step_ns = work != 0 ? 1'000 : std::min<uint64_t>(step_ns * 2, 500'000);
    virtual_now_ns += step_ns;
  }
  return true;
}

inline void run_for(const std::vector<MemoryProcess*>& processes, uint64_t duration_ns) {
  const uint64_t end = virtual_now_ns + duration_ns;
  static_cast<void>(run_until(processes, [&] { return virtual_now_ns >= end; }));
}

// A peer that consists only of the frames that the test makes.
class FakePeer {
 public:
  // `number`: its number of the connection.
  FakePeer(MemoryNetwork& network, ProcessId id, ProcessId target, uint64_t number = 4711)
      : network_(network), id_(id), target_(target), number_(number) {}

  template <typename Body>
  static Frame frame_of(FrameHeader header, const Body& body, uint32_t seed,
                        uint8_t version = frame_version) {
    constexpr size_t bytes = std::is_empty_v<Body> ? 0 : sizeof body;
    header.version = version;
    header.check = finish_check(body_check(seed, &body, bytes), header);
    Frame frame(sizeof header + bytes);
    std::memcpy(frame.data(), &header, sizeof header);
    std::memcpy(frame.data() + sizeof header, &body, bytes);
    return frame;
  }
  HandshakeBody body() const {
    HandshakeBody body{};
    body.number = number_;
    body.incarnation = 1;
    body.from_nid = id_.nid;
    body.from_pid = id_.pid;
    body.to_nid = target_.nid;
    body.to_pid = target_.pid;
    body.uid = 1000;
    body.mtu = 1472;
    body.window_bytes = 1 << 16;
    body.first_sequence = 1;
    body.message_version = message_version;
    return body;
  }
  void inject(Frame frame) {
    network_.inject(address_of(id_), address_of(target_), std::move(frame));
  }
  void call(FrameType type, const HandshakeBody& body, uint8_t version = frame_version) {
    FrameHeader header{};
    header.type = type;
    inject(frame_of(header, body, handshake_seed, version));
  }
  // Receives the answers of the target; true if one is a frame of the handshake of this type.
  bool take_answer(FrameType type, HandshakeBody& body) {
    virtual_now_ns += network_.latency_ns;
    for (const auto& [from, frame] : network_.take(address_of(id_))) {
      if (header_of(frame).type != type || frame.size() != sizeof(FrameHeader) + sizeof body)
        continue;
      std::memcpy(&body, frame.data() + sizeof(FrameHeader), sizeof body);
      return true;
    }
    return false;
  }
  // Makes the whole handshake.
  [[nodiscard]] bool connect(MemoryProcess& target) {
    HandshakeBody answer{};
    call(FrameType::hello, body());
    target.poll();
    if (!take_answer(FrameType::challenge, answer)) return false;
    connect_body_ = body();
    connect_body_.cookie = answer.cookie;
    repeat_connect();
    target.poll();
    if (!take_answer(FrameType::accept, answer)) return false;
    peer_number_ = answer.number;
    return true;
  }
  // Sends the same frame again.
  void repeat_connect() { call(FrameType::connect, connect_body_); }
  // A frame of the connection with this header, apart from its check.
  [[nodiscard]] Frame connected_frame(FrameHeader header,
                                      const std::vector<std::byte>& body) const {
    header.version = frame_version;
    header.connection = peer_number_;
    if (header.acknowledged == 0) header.acknowledged = 1;
    const uint32_t seed = connection_seed(peer_number_, number_);
    header.check = finish_check(body_check(seed, body.data(), body.size()), header);
    Frame frame(sizeof header + body.size());
    std::memcpy(frame.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(frame.data() + sizeof header, body.data(), body.size());
    return frame;
  }
  [[nodiscard]] Frame message_frame(uint32_t sequence, const MessageHeader& message,
                                    const std::vector<std::byte>& payload) const {
    FrameHeader header{};
    header.type = FrameType::data;
    header.flags = frame_first | frame_last;
    header.sequence = sequence;
    MessageHeader sent = message;
    sent.link_word = static_cast<uint32_t>(payload.size());
    std::vector<std::byte> body(sizeof sent);
    std::memcpy(body.data(), &sent, sizeof sent);
    body.insert(body.end(), payload.begin(), payload.end());
    return connected_frame(header, body);
  }
  uint64_t peer_number() const { return peer_number_; }

 private:
  MemoryNetwork& network_;
  ProcessId id_;
  ProcessId target_;
  uint64_t number_;
  HandshakeBody connect_body_{};
  uint64_t peer_number_ = 0;
};

inline std::vector<std::byte> numbered_bytes(uint64_t number, size_t length) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>(number * 131 + i * 17 + (i >> 8));
  return bytes;
}

inline MessageHeader numbered_put(uint64_t number) {
  MessageHeader header{};
  header.kind = MessageKind::put;
  header.match_bits = number;
  return header;
}

// Repeats send() while there is no room and time advances.
inline void send_surely(MemoryProcess& from, Link* link, const std::vector<MemoryProcess*>& all,
                        const MessageHeader& header, const std::vector<std::byte>& payload) {
  SendStatus status = SendStatus::queue_full;
  EXPECT_TRUE(run_until(all, [&] {
    status = from.send(link, header, payload);
    return status != SendStatus::queue_full && status != SendStatus::connecting;
  }));
  EXPECT_EQ(status, SendStatus::sent);
}

// Sends until several frames may be in flight at once, and removes these messages from `to`.
inline void widen_window(MemoryProcess& from, MemoryProcess& to, Link* link,
                         const std::vector<MemoryProcess*>& all) {
  run_for(all, 5'000'000);
  const auto known = static_cast<std::ptrdiff_t>(to.messages.size());
  for (unsigned i = 0; i < 16; ++i)
    send_surely(from, link, all, numbered_put(0), numbered_bytes(0, 1400));
  run_for(all, 5'000'000);
  to.messages.erase(to.messages.begin() + known, to.messages.end());
}

// Two connected processes with frames of 9000 bytes.
class ConnectedPair : public testing::Test {
 protected:
  static constexpr ProcessId first_id{1, 1};
  static constexpr ProcessId second_id{2, 2};
  static constexpr uint32_t frame_bytes = 9000;
  static constexpr uint64_t capacity_bytes = 256 * 1024;

  // `from_anywhere`: LinkProperties::sends_from_anywhere of both links.
  explicit ConnectedPair(bool from_anywhere, const ReliableSettings& settings = {})
      : first_(network_, first_id, settings, frame_bytes, capacity_bytes, from_anywhere),
        second_(network_, second_id, settings, frame_bytes, capacity_bytes, from_anywhere) {}
  // The script refers to variables of the test, which no longer exist when the processes say
  // goodbye.
  ~ConnectedPair() override { network_.script = nullptr; }
  void SetUp() override {
    link_ = first_.connect(second_id);
    const MessageHeader hello = numbered_put(0);
    ASSERT_TRUE(run_until(all_, [&] { return first_.send(link_, hello) == SendStatus::sent; }));
    ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 1; }));
    widen_window(first_, second_, link_, all_);
    second_.messages.clear();
  }

  MemoryNetwork network_;
  MemoryProcess first_;
  MemoryProcess second_;
  std::vector<MemoryProcess*> all_{&first_, &second_};
  Link* link_ = nullptr;
};

}  // namespace lintel::test
