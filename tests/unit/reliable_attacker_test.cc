// An attacker between two processes, who sees every frame, can delay frames, and sends modified and
// recorded ones. The only effect is delay.
#include <random>

#include "reliable_test_support.h"
#include "support/modules.h"

namespace lintel::test {
namespace {

constexpr ProcessId low_id{0x0a000001, 10};
constexpr ProcessId high_id{0x0a000002, 20};
constexpr const char* job_key = "a secret that is long enough not to be stretched";

class Attacker {
 public:
  explicit Attacker(MemoryNetwork& network, uint64_t seed) : network_(network), random_(seed) {}

  std::vector<MemoryNetwork::Copy> meddle(const LinkAddress& from, const LinkAddress& to,
                                          const Frame& frame) {
    seen_.push_back({from, to, frame});
    for (int i = 0; i < 2; ++i) attack();
    const unsigned dice = random_() % 20;
    if (dice == 0) return {};
    return {{frame, dice < 5 ? random_() % 2'000'000 : 0}};
  }

  uint64_t attacks = 0;

 private:
  struct Seen {
    LinkAddress from, to;
    Frame frame;
  };

  const Seen& any() {
    // Mostly one of the newest frames, which are the most useful ones.
    const size_t newest = std::min<size_t>(seen_.size(), random_() % 4 == 0 ? seen_.size() : 50);
    return seen_[seen_.size() - 1 - random_() % newest];
  }
  void attack() {
    ++attacks;
    const Seen& seen = any();
    Frame frame = seen.frame;
    switch (random_() % 7) {
      case 0:  // repeats it
        break;
      case 1:  // changes a byte
        frame[random_() % frame.size()] ^= static_cast<std::byte>(1 + random_() % 255);
        break;
      case 2:  // puts the body of another frame behind the header
        splice(frame, any().frame);
        break;
      case 3:  // changes a bit and corrects the check
        frame[sizeof(FrameHeader) + random_() % (frame.size() - sizeof(FrameHeader) + 1) -
              (frame.size() > sizeof(FrameHeader) ? 1 : 0)] ^= std::byte{1};
        check(frame, seen.to);
        break;
      case 4:
        return reset(seen);
      case 5:
        return answer(seen);
      default:
        frame.resize(sizeof(FrameHeader) + random_() % 64);
        break;
    }
    network_.inject(seen.from, seen.to, std::move(frame));
  }
  static void splice(Frame& frame, const Frame& other) {
    if (frame.size() < sizeof(FrameHeader) || other.size() < sizeof(FrameHeader)) return;
    frame.resize(sizeof(FrameHeader));
    frame.insert(frame.end(), other.begin() + sizeof(FrameHeader), other.end());
  }
  // The connection number in the newest frame sent there.
  uint64_t number_to(const LinkAddress& to) const {
    for (size_t i = seen_.size(); i-- > 0;) {
      const uint64_t number = header_of(seen_[i].frame).connection;
      if (seen_[i].to == to && number != 0) return number;
    }
    return 0;
  }
  void check(Frame& frame, const LinkAddress& to) const {
    const LinkAddress other = to == address_of(low_id) ? address_of(high_id) : address_of(low_id);
    FrameHeader header = header_of(frame);
    const bool connected = header.type >= FrameType::data && header.type <= FrameType::goodbye;
    const uint32_t seed =
        connected ? connection_seed(number_to(to), number_to(other)) : handshake_seed;
    header.check = finish_check(
        body_check(seed, frame.data() + sizeof header, frame.size() - sizeof header), header);
    std::memcpy(frame.data(), &header, sizeof header);
  }
  static ProcessId process_at(const LinkAddress& address) {
    return address == address_of(low_id) ? low_id : high_id;
  }
  void reset(const Seen& seen) {
    const ProcessId sender = process_at(seen.from);
    FrameHeader header{};
    header.type = FrameType::reset;
    const ResetBody body{number_to(seen.from), sender.nid, sender.pid, {}};
    network_.inject(seen.from, seen.to, FakePeer::frame_of(header, body, handshake_seed));
  }
  // Sends a frame of the handshake with all known values, but without a proof.
  void answer(const Seen& seen) {
    constexpr FrameType types[] = {FrameType::challenge, FrameType::accept, FrameType::refuse,
                                   FrameType::connect, FrameType::hello};
    const ProcessId sender = process_at(seen.from);
    const ProcessId receiver = process_at(seen.to);
    FrameHeader header{};
    header.type = types[random_() % std::size(types)];
    header.connection = number_to(seen.to);
    HandshakeBody body = FakePeer(network_, sender, receiver, number_to(seen.from)).body();
    body.admission = Admission::job_key;
    body.security = NetworkSecurity::authenticated;
    body.cause = RefuseCause::job;
    network_.inject(seen.from, seen.to, FakePeer::frame_of(header, body, handshake_seed));
  }

  MemoryNetwork& network_;
  std::mt19937_64 random_;
  std::vector<Seen> seen_;
};

struct Attacked {
  NetworkSecurity security;
  uint64_t seed;
};

class AttackerTest : public testing::TestWithParam<Attacked> {
 protected:
  static ReliableSettings settings() {
    ReliableSettings settings;
    settings.job_key = job_key;
    settings.security = GetParam().security;
    settings.key_epoch_bits = 12;  // keys change during the test
    return settings;
  }
};

TEST_P(AttackerTest, GetsNothingButDelay) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  constexpr uint64_t messages = 1'500;
  MemoryNetwork network;
  Attacker attacker(network, GetParam().seed);
  MemoryProcess a(network, low_id, settings(), 1472, 256 * 1024, true);
  MemoryProcess b(network, high_id, settings(), 1472, 256 * 1024, true);
  network.script = [&](const LinkAddress& from, const LinkAddress& to, const Frame& frame) {
    return attacker.meddle(from, to, frame);
  };
  const auto length_of = [](uint64_t number) { return number * 37 % 3'000; };
  const std::vector<MemoryProcess*> both{&a, &b};
  for (uint64_t number = 0; number < messages; ++number) {
    send_surely(a, a.connect(high_id), both, numbered_put(number),
                numbered_bytes(number, length_of(number)));
    if (number % 3 == 0)
      send_surely(b, b.connect(low_id), both, numbered_put(number), numbered_bytes(number, 8));
  }
  EXPECT_TRUE(run_until(
      both, [&] { return b.messages.size() >= messages && a.messages.size() >= messages / 3; }))
      << b.messages.size() << " and " << a.messages.size() << " of them arrived";
  run_for(both, 1'000'000'000);
  EXPECT_TRUE(a.failed.empty());
  EXPECT_TRUE(b.failed.empty());
  ASSERT_EQ(b.messages.size(), messages);
  ASSERT_EQ(a.messages.size(), messages / 3);
  for (uint64_t number = 0; number < messages; ++number) {
    ASSERT_EQ(b.messages[number].header.match_bits, number);
    ASSERT_EQ(b.messages[number].payload, numbered_bytes(number, length_of(number)));
  }
  for (uint64_t i = 0; i < messages / 3; ++i)
    ASSERT_EQ(a.messages[i].payload, numbered_bytes(3 * i, 8));
  EXPECT_GT(attacker.attacks, 2 * messages);
  EXPECT_GT(b.transport().counters().replayed, 0u);
  EXPECT_GT(b.transport().counters().damaged, 0u);
}

// No part of the payload is visible in an encrypted frame.
TEST(EncryptionTest, HidesWhatIsSent) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  const std::string text = "attack at dawn, and again at dusk";
  std::vector<std::byte> payload(text.size());
  std::memcpy(payload.data(), text.data(), text.size());
  for (const auto security : {NetworkSecurity::authenticated, NetworkSecurity::encrypted}) {
    ReliableSettings settings;
    settings.job_key = job_key;
    settings.security = security;
    MemoryNetwork network;
    unsigned shown = 0;
    network.script = [&](const LinkAddress&, const LinkAddress&, const Frame& frame) {
      const std::string bytes(reinterpret_cast<const char*>(frame.data()), frame.size());
      shown += bytes.find(text) != std::string::npos;
      return std::vector<MemoryNetwork::Copy>{{frame, 0}};
    };
    MemoryProcess a(network, low_id, settings);
    MemoryProcess b(network, high_id, settings);
    send_surely(a, a.connect(high_id), {&a, &b}, numbered_put(1), payload);
    EXPECT_TRUE(run_until({&a, &b}, [&] { return !b.messages.empty(); }));
    EXPECT_EQ(b.messages.front().payload, payload);
    EXPECT_EQ(shown != 0, security == NetworkSecurity::authenticated);
  }
}

// A frame is retransmitted when the key of its previous transmission has been discarded.
TEST(EncryptionTest, RepeatsAFrameAfterTwoChangesOfTheKey) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  constexpr unsigned epoch_bits = 6;
  ReliableSettings settings;
  settings.job_key = job_key;
  settings.security = NetworkSecurity::encrypted;
  settings.key_epoch_bits = epoch_bits;
  MemoryNetwork network;
  MemoryProcess a(network, low_id, settings);
  MemoryProcess b(network, high_id, settings);
  Link* const to_b = a.connect(high_id);
  send_surely(a, to_b, {&a, &b}, numbered_put(0), numbered_bytes(0, 100));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.messages.size() == 1; }));
  // The first data frame is dropped until its last transmission was two epochs before.
  uint32_t victim = 0;
  unsigned sent_since = 0;
  bool arrived = false;
  network.script = [&](const LinkAddress& from, const LinkAddress&, const Frame& frame) {
    std::vector<MemoryNetwork::Copy> copies{{frame, 0}};
    if (!(from == address_of(low_id))) return copies;
    const FrameHeader header = header_of(frame);
    if (header.type == FrameType::data && victim == 0) victim = header.sequence;
    const bool is_victim = header.type == FrameType::data && header.sequence == victim;
    arrived |= is_victim && sent_since > 2u << epoch_bits;
    sent_since = is_victim ? 0 : sent_since + 1;
    if (is_victim && !arrived) copies.clear();
    return copies;
  };
  uint64_t sent = 1;
  Link* const to_a = b.connect(low_id);
  EXPECT_TRUE(run_until({&a, &b}, [&] {
    if (sent < 10 &&
        a.send(to_b, numbered_put(sent), numbered_bytes(sent, 100)) == SendStatus::sent)
      ++sent;
    static_cast<void>(b.send(to_a, numbered_put(0)));  // its acknowledgements change the key
    return arrived && b.messages.size() > 1;
  }));
  EXPECT_TRUE(run_until({&a, &b}, [&] { return b.messages.size() == sent; }));
  for (uint64_t number = 0; number < b.messages.size(); ++number)
    ASSERT_EQ(b.messages[number].payload, numbered_bytes(number, 100)) << number;
  EXPECT_TRUE(a.failed.empty());
}

std::vector<Attacked> attacked() {
  std::vector<Attacked> all;
  for (const auto security : {NetworkSecurity::authenticated, NetworkSecurity::encrypted})
    for (uint64_t seed = 1; seed <= 8; ++seed) all.push_back({security, seed});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Seeds, AttackerTest, testing::ValuesIn(attacked()), [](const auto& info) {
  return std::string(info.param.security == NetworkSecurity::encrypted ? "encrypted"
                                                                       : "authenticated") +
         "_" + std::to_string(info.param.seed);
});

}  // namespace
}  // namespace lintel::test
