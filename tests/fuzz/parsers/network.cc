// Two transports with an attacker between them, who sees every frame. The input decides what the
// attacker loses, delays, repeats, damages and splices. Without seals the attacker can compute
// valid checks, and nothing may crash. With seals messages are only delayed: they arrive unchanged,
// once and in order. Datagrams may be lost or late; only the replay window prevents duplicates.
#include <array>
#include <set>

#include "fuzz/parsers/input.h"
#include "simulation/repeatable_random.h"
#include "support/modules.h"
#include "unit/reliable_test_support.h"
#include "util/log.h"

namespace lintel::fuzz {
namespace {

using test::Frame;
using test::MemoryNetwork;

constexpr ProcessId ids[2] = {{0x0a000001, 10}, {0x0a000002, 20}};
constexpr unsigned most_steps = 200;
constexpr size_t datagram_bytes = 100;

class Meddler {
 public:
  explicit Meddler(Input& input) noexcept : input_(input) {}

  std::vector<MemoryNetwork::Copy> meddle(const LinkAddress& to, const Frame& frame) {
    const unsigned side = to == test::address_of(ids[0]) ? 0 : 1;
    note_numbers(side, frame);
    if (seen_.size() < 64) seen_.push_back(frame);
    switch (input_.below(16)) {
      case 0:
        return {};
      case 1:
        return {{frame, 0}, {frame, delay()}};
      case 2:
        return {{frame, delay()}};
      case 3: {
        Frame changed = frame;
        input_.damage(changed.data(), changed.size(), 3);
        if (input_.flag()) repair(side, changed);
        return {{std::move(changed), 0}};
      }
      case 4: {
        Frame changed = frame;
        splice(changed, seen_[input_.byte() % seen_.size()]);
        if (input_.flag()) repair(side, changed);
        return {{std::move(changed), 0}, {frame, delay()}};
      }
      case 5: {  // an old frame, perhaps to the other side
        Frame old = seen_[input_.byte() % seen_.size()];
        input_.damage(old.data(), old.size(), 1);
        return {{frame, 0}, {std::move(old), delay()}};
      }
      case 6: {
        Frame shorter = frame;
        shorter.resize(input_.take<uint16_t>() % (frame.size() + 1));
        if (input_.flag()) repair(side, shorter);
        return {{std::move(shorter), 0}, {frame, 0}};
      }
      default:
        return {{frame, 0}};
    }
  }

 private:
  uint64_t delay() noexcept { return uint64_t{1} << input_.below(24); }
  // Records the number of the connection for each side, from the handshake.
  void note_numbers(unsigned to, const Frame& frame) noexcept {
    HandshakeBody body;
    if (frame.size() != sizeof(FrameHeader) + sizeof body) return;
    const FrameType type = test::header_of(frame).type;
    if (type != FrameType::connect && type != FrameType::accept) return;
    std::memcpy(&body, frame.data() + sizeof(FrameHeader), sizeof body);
    numbers_[1 - to] = body.number;
  }
  static void splice(Frame& frame, const Frame& other) {
    if (frame.size() < sizeof(FrameHeader) || other.size() < sizeof(FrameHeader)) return;
    frame.resize(sizeof(FrameHeader));
    frame.insert(frame.end(), other.begin() + sizeof(FrameHeader), other.end());
  }
  void repair(unsigned to, Frame& frame) const noexcept {
    FrameHeader header = test::header_of(frame);
    if (frame.size() < sizeof header) return;
    const bool connected = header.type >= FrameType::data && header.type <= FrameType::goodbye;
    const uint32_t seed =
        connected ? connection_seed(numbers_[to], numbers_[1 - to]) : handshake_seed;
    header.check = finish_check(
        body_check(seed, frame.data() + sizeof header, frame.size() - sizeof header), header);
    std::memcpy(frame.data(), &header, sizeof header);
  }

  Input& input_;
  uint64_t numbers_[2] = {};
  std::vector<Frame> seen_;
};

class Fuzzed {
 public:
  Fuzzed(Input& input, bool can_seal)
      : input_(input),
        sealed_(input.below(can_seal ? 4 : 2)),
        settings_(settings(input, sealed_)),
        meddler_(input),
        processes_{test::MemoryProcess(network_, ids[0], settings_),
                   test::MemoryProcess(network_, ids[1], settings_)} {}
  ~Fuzzed() { network_.script = nullptr; }

  void run() {
    network_.script = [this](const LinkAddress&, const LinkAddress& to, const Frame& frame) {
      return meddler_.meddle(to, frame);
    };
    for (unsigned step = 0; step < most_steps && !input_.is_empty(); ++step) {
      const unsigned side = input_.below(2);
      if (const unsigned what = input_.below(4); what == 3)
        send_datagram(side);
      else if (what != 0)
        send(side);
      test::virtual_now_ns += uint64_t{1} << input_.below(28);
      poll();
    }
    // Without the attacker, messages sent over open connections arrive.
    network_.script = nullptr;
    for (unsigned i = 0; i < 400; ++i) {
      test::virtual_now_ns += 1'000'000;
      poll();
    }
  }

 private:
  static ReliableSettings settings(Input& input, unsigned sealed) {
    ReliableSettings settings;
    settings.memory_bytes = 1 << 20;
    const uint8_t first = input.byte();
    if (first >= 128) {
      settings.first_sequence = UINT32_MAX - (first & 15);
      settings.first_counter = (uint64_t{1} << 32) - (first & 7) - 1;
    }
    if (sealed >= 2) {
      settings.job_key = "a secret that is long enough not to be stretched";
      settings.security = sealed == 2 ? NetworkSecurity::authenticated : NetworkSecurity::encrypted;
      settings.key_epoch_bits = 6 + input.below(2);
    }
    return settings;
  }

  void send(unsigned side) {
    Stream& stream = streams_[side];
    test::MemoryProcess& process = processes_[side];
    if (stream.link == nullptr) stream.link = process.connect(ids[1 - side]);
    const std::vector<std::byte> payload =
        test::numbered_bytes(stream.sent, length_of(stream.sent));
    MessageHeader header = test::numbered_put(stream.sent);
    header.hdr_data = stream.connection;
    const SendStatus status = process.send(stream.link, header, payload);
    if (status == SendStatus::sent) ++stream.sent;
    if (status == SendStatus::peer_failed) stream.link = process.connect(ids[1 - side]);
  }
  static size_t length_of(uint64_t number) noexcept { return number * 977 % 3000; }

  void send_datagram(unsigned side) {
    Stream& stream = streams_[side];
    if (stream.link == nullptr) return;
    const uint64_t number = stream.datagrams;
    MessageHeader header = test::numbered_put(number);
    header.flags = flag_unreliable;
    if (processes_[side].send(stream.link, header, test::numbered_bytes(number, datagram_bytes)) ==
        SendStatus::sent)
      ++stream.datagrams;
  }

  void poll() {
    for (unsigned side = 0; side < 2; ++side) {
      test::MemoryProcess& process = processes_[side];
      process.poll();
      if (sealed_ >= 2)
        for (const test::MemoryProcess::Message& message : process.messages)
          ((message.header.flags & flag_unreliable) != 0 ? check_datagram : check)(
              streams_[1 - side], message);
      process.messages.clear();
      if (!process.failed.empty()) {
        // Even if the peer has connected again at once.
        process.failed.clear();
        ++streams_[side].connection;
        streams_[side].sent = 0;
      }
      FUZZ_CHECK(process.transport().frame_memory_used() <= (1u << 20) + (1u << 17));
    }
  }

  struct Stream {
    Link* link = nullptr;
    uint64_t connection = 0;  // number of failed connections
    uint64_t sent = 0;
    uint64_t arriving = 0;  // the connection from which messages arrive
    uint64_t received = 0;
    uint64_t datagrams = 0;
    std::set<uint64_t> datagrams_received;
  };
  static void check_datagram(Stream& stream, const test::MemoryProcess::Message& message) {
    const uint64_t number = message.header.match_bits;
    FUZZ_CHECK(number < stream.datagrams);
    FUZZ_CHECK(stream.datagrams_received.insert(number).second);
    FUZZ_CHECK(message.payload == test::numbered_bytes(number, datagram_bytes));
  }
  static void check(Stream& stream, const test::MemoryProcess::Message& message) {
    const uint64_t number = message.header.match_bits;
    if (message.header.hdr_data != stream.arriving) {
      FUZZ_CHECK(message.header.hdr_data > stream.arriving);
      stream.arriving = message.header.hdr_data;
      stream.received = 0;
    }
    FUZZ_CHECK(stream.arriving <= stream.connection);
    FUZZ_CHECK(number == stream.received);
    FUZZ_CHECK(message.payload == test::numbered_bytes(number, length_of(number)));
    ++stream.received;
  }

  Input& input_;
  const unsigned sealed_;  // 0, 1: no; 2: authenticated; 3: encrypted
  const ReliableSettings settings_;
  Meddler meddler_;
  MemoryNetwork network_;
  std::array<test::MemoryProcess, 2> processes_;
  std::array<Stream, 2> streams_;
};

}  // namespace
}  // namespace lintel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel;
  static const bool can_seal = test::use_built_modules();
  set_log_level(LogLevel::error);
  simulation::reseed_random(1);
  test::virtual_now_ns = 1'000'000'000'000;
  fuzz::Input input(data, size);
  fuzz::Fuzzed(input, can_seal).run();
  return 0;
}
