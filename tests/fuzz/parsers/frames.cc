// Frames of a peer in every state of a connection: handshakes in both directions with valid and
// invalid cookies, open connections, resets, failures. Checks are valid unless the input demands
// invalid ones.
#include <array>

#include "fuzz/parsers/input.h"
#include "simulation/repeatable_random.h"
#include "unit/reliable_test_support.h"
#include "util/log.h"

namespace lintel::fuzz {
namespace {

using test::Frame;

constexpr ProcessId target_id{0x0a000001, 10};
constexpr uint64_t memory_bytes = 1 << 20;
constexpr uint32_t most_connections = 4;
constexpr unsigned most_steps = 300;
constexpr unsigned peers = 3;

// The state of a peer that the fuzzer needs for valid frames.
struct Peer {
  ProcessId id{};
  uint64_t number = 0;         // the peer's number, in frames to it
  uint64_t target_number = 0;  // the target's
  uint64_t calls_us = 0;       // the number in the target's hello, which waits for an answer
  uint64_t cookie = 0;
  uint32_t next = 1;  // sequence number
  Link* link = nullptr;
};

class Fuzzed {
 public:
  explicit Fuzzed(Input& input) : input_(input), target_(network_, target_id, settings(input)) {
    target_.link().keep_frames_of_node(true);
    for (unsigned i = 0; i < peers; ++i) {
      // The first one is on the node of the target.
      peers_[i].id = {target_id.nid + i, 20};
      peers_[i].number = 4711 + i;
    }
  }

  void run() {
    for (unsigned step = 0; step < most_steps && !input_.is_empty(); ++step) {
      Peer& peer = peers_[input_.below(peers)];
      act(peer);
      target_.poll();
      look_at_answers();
      check();
    }
    // After any input, time can pass and the transport still works.
    for (unsigned i = 0; i < 8; ++i) {
      test::virtual_now_ns += 20'000'000'000;
      target_.poll();
    }
    check();
  }

 private:
  static ReliableSettings settings(Input& input) {
    ReliableSettings settings;
    settings.memory_bytes = memory_bytes;
    settings.most_connections = most_connections;
    settings.reuses_places = input.flag();
    const uint8_t first = input.byte();
    // Some sequence numbers begin shortly before their wrap.
    settings.first_sequence = first < 128 ? 1 : UINT32_MAX - (first & 15);
    return settings;
  }

  void act(Peer& peer) {
    switch (input_.below(16)) {
      case 0:
        return call(peer, FrameType::hello, 0, 0);
      case 1:
        return call(peer, FrameType::connect, 0, peer.cookie);
      case 2:
        return call(peer, static_cast<FrameType>(input_.byte()), input_.take<uint64_t>(), 0);
      case 3:  // an answer to the hello of the target
        return call(peer, FrameType::challenge, peer.calls_us, input_.byte());
      case 4:
        call(peer, FrameType::accept, peer.calls_us, 0);
        peer.target_number = peer.calls_us;
        peer.next = 1;
        return;
      case 5:
        return call(peer, FrameType::refuse, peer.calls_us, 0);
      case 6:
      case 7:
        return send_message(peer);
      case 8:
        return send_connected(peer, FrameType::data, input_.bytes(input_.byte()));
      case 9:
        return send_connected(peer, FrameType::ack, input_.bytes(input_.byte() % 40 * 8));
      case 10: {
        constexpr FrameType types[] = {FrameType::datagram, FrameType::probe, FrameType::goodbye,
                                       FrameType::data};
        return send_connected(peer, types[input_.below(4)], input_.bytes(input_.below(128)));
      }
      case 11:
        return reset(peer);
      case 12:
        test::virtual_now_ns += uint64_t{1} << input_.below(36);
        return;
      case 13:
        return target_sends(peer);
      case 14:
        if (!seen_.empty())
          network_.inject(test::address_of(peer.id), test::address_of(target_id),
                          seen_[input_.byte() % seen_.size()]);
        return;
      default:
        target_.link().full = input_.flag();
        return inject(peer, input_.bytes(input_.byte()));
    }
  }

  void inject(const Peer& peer, Frame frame) {
    if (seen_.size() < 64) seen_.push_back(frame);
    network_.inject(test::address_of(peer.id), test::address_of(target_id), std::move(frame));
  }

  void call(Peer& peer, FrameType type, uint64_t connection, uint64_t cookie) {
    HandshakeBody body = test::FakePeer(network_, peer.id, target_id, peer.number).body();
    body.cookie = cookie;
    body.first_sequence = 1;
    body.leaves_unchecked = 1;
    input_.damage(&body, sizeof body, 3);
    FrameHeader header{};
    header.type = type;
    header.connection = connection;
    inject(peer, test::FakePeer::frame_of(header, body, handshake_seed));
  }

  // Valid messages, alone, in a bundle or in several frames, and inconsistent ones.
  void send_message(Peer& peer) {
    std::vector<std::byte> body;
    const unsigned messages = 1 + (input_.below(4) == 0 ? input_.below(9) : 0);
    for (unsigned i = 0; i < messages; ++i) {
      MessageHeader message{};
      message.kind = static_cast<MessageKind>(1 + input_.below(message_kinds));
      message.flags = input_.byte() & flag_known;
      const uint32_t payload = input_.byte();
      message.link_word = input_.below(8) == 0 ? input_.take<uint32_t>() % 70000 : payload;
      message.set_length(payload);
      body.resize(bundle_aligned(static_cast<uint32_t>(body.size())));
      const size_t at = body.size();
      body.resize(at + sizeof message + payload);
      std::memcpy(body.data() + at, &message, sizeof message);
    }
    send_connected(peer, FrameType::data, body);
  }

  void send_connected(Peer& peer, FrameType type, const std::vector<std::byte>& body) {
    FrameHeader header{};
    header.version = frame_version;
    header.type = type;
    const uint8_t how = input_.byte();
    header.flags = (how & 8) != 0 ? how & (frame_whole | frame_wants_ack) : frame_whole;
    if ((how & 0x80) != 0) header.flags |= frame_unchecked;
    header.connection = peer.target_number;
    header.sequence = peer.next;
    if ((how & 0x10) != 0) header.sequence += input_.byte();
    header.acknowledged = (how & 0x20) != 0 ? input_.take<uint32_t>() : 1;
    header.selective = (how & 0x40) != 0 ? input_.take<uint64_t>() : 0;
    header.ack_delay = how;
    if (type == FrameType::data && header.sequence == peer.next) ++peer.next;
    const uint32_t seed = connection_seed(peer.target_number, peer.number);
    size_t checked_bytes = body.size();
    if ((header.flags & frame_unchecked) != 0)
      checked_bytes = std::min(
          checked_bytes, (header.flags & frame_first) != 0 ? sizeof(MessageHeader) : size_t{0});
    header.check = finish_check(body_check(seed, body.data(), checked_bytes), header);
    if (how == 0xff) ++header.check;
    Frame frame(sizeof header + body.size());
    std::memcpy(frame.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(frame.data() + sizeof header, body.data(), body.size());
    inject(peer, std::move(frame));
  }

  void reset(const Peer& peer) {
    ResetBody body{peer.number, peer.id.nid, peer.id.pid, {}};
    input_.damage(&body, sizeof body, 2);
    FrameHeader header{};
    header.type = FrameType::reset;
    inject(peer, test::FakePeer::frame_of(header, body, handshake_seed));
  }

  void target_sends(Peer& peer) {
    if (peer.link == nullptr) peer.link = target_.connect(peer.id);
    if (peer.link == nullptr) return;
    const std::vector<std::byte> payload(input_.take<uint16_t>() % 8193);
    MessageHeader header = test::numbered_put(1);
    header.set_length(payload.size());
    // After a failure, a new connection is made.
    if (target_.send(peer.link, header, payload) == SendStatus::peer_failed)
      peer.link = target_.connect(peer.id);
  }

  void look_at_answers() {
    test::virtual_now_ns += network_.latency_ns;
    for (Peer& peer : peers_) {
      for (const auto& [from, frame] : network_.take(test::address_of(peer.id))) {
        const FrameHeader header = test::header_of(frame);
        HandshakeBody body;
        if (frame.size() != sizeof header + sizeof body) continue;
        std::memcpy(&body, frame.data() + sizeof header, sizeof body);
        if (header.type == FrameType::challenge) peer.cookie = body.cookie;
        if (header.type == FrameType::hello) peer.calls_us = body.number;
        if (header.type == FrameType::accept) {
          peer.target_number = body.number;
          peer.next = 1;
        }
      }
    }
  }

  void check() {
    FUZZ_CHECK(target_.transport().frame_memory_used() <= memory_bytes + memory_bytes / 8);
    FUZZ_CHECK(target_.transport().connections() <= most_connections);
    for (const test::MemoryProcess::Message& message : target_.messages)
      FUZZ_CHECK(message.payload.size() <= PacketLink::largest_mtu);
    target_.messages.clear();
  }

  Input& input_;
  test::MemoryNetwork network_;
  test::MemoryProcess target_;
  std::array<Peer, peers> peers_;
  std::vector<Frame> seen_;
};

}  // namespace
}  // namespace lintel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel;
  set_log_level(LogLevel::error);
  simulation::reseed_random(1);
  test::virtual_now_ns = 1'000'000'000'000;
  fuzz::Input input(data, size);
  fuzz::Fuzzed(input).run();
  return 0;
}
