// Sealed frames on the wire. fuzz/parsers/network.cc has the attacker who changes and repeats them.
#include "reliable_test_support.h"
#include "support/modules.h"

namespace lintel::test {
namespace {

constexpr ProcessId low_id{0x0a000001, 10};
constexpr ProcessId high_id{0x0a000002, 20};
constexpr const char* job_key = "a secret that is long enough not to be stretched";

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

}  // namespace
}  // namespace lintel::test
