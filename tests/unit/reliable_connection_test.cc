// Connections: how they are opened, refused, ended and opened again.
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "reliable/cookie.h"
#include "support/modules.h"
#include "unit/reliable_test_support.h"
#include "util/log.h"

namespace lintel::test {
namespace {

constexpr ProcessId low_id{0x0a000001, 10};
constexpr ProcessId high_id{0x0a000002, 20};

class Connections : public testing::Test {
 protected:
  // Each process sends one message to the other.
  void expect_exchange(MemoryProcess& a, MemoryProcess& b) {
    const size_t at_a = a.messages.size();
    const size_t at_b = b.messages.size();
    Link* const to_b = a.connect(b.id());
    Link* const to_a = b.connect(a.id());
    ASSERT_NE(to_a, nullptr);
    ASSERT_NE(to_b, nullptr);
    send_surely(a, to_b, {&a, &b}, numbered_put(1), {});
    send_surely(b, to_a, {&a, &b}, numbered_put(2), {});
    EXPECT_TRUE(run_until(
        {&a, &b}, [&] { return a.messages.size() > at_a && b.messages.size() > at_b; },
        5'000'000'000));
  }
  MemoryNetwork network_;
};

TEST_F(Connections, ReachNeitherOneselfNorNowhere) {
  MemoryProcess a(network_, low_id);
  std::string reason;
  EXPECT_EQ(a.transport().connect(low_id, &reason), nullptr);
  EXPECT_NE(reason.find("itself"), std::string::npos);
  EXPECT_EQ(a.transport().connect({0, 5}, &reason), nullptr);
  EXPECT_NE(reason.find("nid 0"), std::string::npos);
}

TEST_F(Connections, ASilentPeerFailsAfterTheTimeoutAndNotBefore) {
  ReliableSettings settings;
  settings.peer_timeout_ns = 3'000'000'000;
  MemoryProcess a(network_, low_id, settings);
  MemoryProcess b(network_, high_id, settings);
  expect_exchange(a, b);
  run_for({&a, &b}, 10'000'000);
  network_.script = [](const LinkAddress&, const LinkAddress&, const Frame&) {
    return std::vector<MemoryNetwork::Copy>{};
  };
  EXPECT_EQ(a.send(a.connect(high_id), numbered_put(3)), SendStatus::sent);
  const uint64_t start = virtual_now_ns;
  ASSERT_TRUE(run_until(
      {&a, &b}, [&] { return !a.failed.empty(); }, 20'000'000'000));
  EXPECT_GE(virtual_now_ns - start, settings.peer_timeout_ns);
  EXPECT_LE(virtual_now_ns - start, settings.peer_timeout_ns + 500'000'000);
  EXPECT_TRUE(b.failed.empty()) << "it waits for nothing";
  EXPECT_EQ(a.transport().frame_memory_used(), 0u);
}

// The peer has died. The process itself looks only once in a while.
TEST_F(Connections, ADeadPeerFailsThoughTheProcessHardlyEverPolls) {
  ReliableSettings settings;
  settings.peer_timeout_ns = 3'000'000'000;
  MemoryProcess a(network_, low_id, settings);
  MemoryProcess b(network_, high_id, settings);
  expect_exchange(a, b);
  EXPECT_EQ(a.send(a.connect(high_id), numbered_put(3)), SendStatus::sent);
  unsigned polls = 0;
  for (; a.failed.empty() && polls < 100; ++polls) {
    virtual_now_ns += 5 * settings.peer_timeout_ns;
    a.poll();
  }
  EXPECT_LT(polls, 32u);
}

struct Refusal {
  const char* name;
  ReliableSettings first;
  ReliableSettings second;
};
ReliableSettings with(const char* key, uint32_t uid = 1000) {
  ReliableSettings settings;
  settings.job_key = key;
  settings.uid = uid;
  return settings;
}

// Settings without a job key; `secret` is that of the user on the node.
ReliableSettings on_node(const char* secret, uint32_t uid = 1000) {
  ReliableSettings settings;
  settings.node_secret = std::make_shared<const std::string>(secret);
  settings.uid = uid;
  return settings;
}

ReliableSettings protected_by(NetworkSecurity security, ReliableSettings settings) {
  settings.security = security;
  return settings;
}

class Refusals : public testing::TestWithParam<Refusal> {};

TEST_P(Refusals, NothingPassesAndTheCallerLearns) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  MemoryNetwork network;
  MemoryProcess a(network, low_id, GetParam().first);
  MemoryProcess b(network, high_id, GetParam().second);
  Link* const link = a.connect(high_id);
  EXPECT_EQ(a.send(link, numbered_put(1)), SendStatus::connecting);
  // If frames are protected, the caller waits for a better answer after a refusal.
  EXPECT_TRUE(run_until(
      {&a, &b}, [&] { return !a.failed.empty(); }, 1'000'000'000));
  EXPECT_GE(b.transport().counters().handshakes_refused, 1u);
  EXPECT_EQ(b.transport().connections(), 0u);
  EXPECT_EQ(b.links, 0u);
  EXPECT_EQ(a.send(link, numbered_put(1)), SendStatus::peer_failed);
}

INSTANTIATE_TEST_SUITE_P(
    Causes, Refusals,
    testing::Values(
        Refusal{"another_key", with("alpha"), with("beta")},
        Refusal{"no_key_here", with(""), with("beta")},
        Refusal{"no_key_there", with("alpha"), with("")},
        Refusal{"another_user", with("", 1000), with("", 1001)},
        Refusal{"another_user_with_key", with("k", 1000), with("k", 1001)},
        Refusal{"another_node", on_node("0123456789abcdef"), on_node("0123456789abcdeg")},
        Refusal{"open_there", on_node("0123456789abcdef"), with("")},
        Refusal{"open_here", with(""), on_node("0123456789abcdef")},
        Refusal{"no_key_on_this_node", on_node("0123456789abcdef"), with("alpha")},
        Refusal{"other_protection", protected_by(NetworkSecurity::encrypted, with("k")),
                protected_by(NetworkSecurity::authenticated, with("k"))},
        Refusal{"no_protection_there",
                protected_by(NetworkSecurity::authenticated, on_node("0123456789abcdef")),
                on_node("0123456789abcdef")},
        Refusal{"another_key_and_protected",
                protected_by(NetworkSecurity::authenticated, with("alpha")),
                protected_by(NetworkSecurity::authenticated, with("beta"))}),
    [](const auto& info) { return std::string(info.param.name); });

// Spec 2.3: a nid names one node.
TEST_F(Connections, OneNidOnTwoNodesIsAnErrorWithoutWhichThereIsNone) {
  constexpr ProcessId other_pid{low_id.nid, low_id.pid + 1};
  ReliableSettings here;
  here.node = 1;
  ReliableSettings there;
  there.node = 2;
  for (const bool same_node : {false, true}) {
    MemoryNetwork network;
    MemoryProcess a(network, low_id, here);
    MemoryProcess b(network, other_pid, same_node ? here : there);
    Link* const link = a.connect(other_pid);
    bool is_sent = false;
    EXPECT_TRUE(run_until(
        {&a, &b},
        [&] {
          is_sent = is_sent || a.send(link, numbered_put(1)) == SendStatus::sent;
          return !a.failed.empty() || b.links == 1;
        },
        1'000'000'000));
    EXPECT_EQ(a.failed.size(), same_node ? 0u : 1u);
    EXPECT_EQ(is_sent, same_node);
    if (!same_node) {
      EXPECT_NE(std::string(link->failure.reason).find("the same nid"), std::string::npos);
    }
  }
}

// Each attempt to send a frame would use up a counter. After half an epoch of them, of which the
// peer saw none, it would lack the next key.
TEST_F(Connections, AFullLinkDoesNotUseUpTheKeysOfSealedFrames) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  for (const NetworkSecurity security :
       {NetworkSecurity::authenticated, NetworkSecurity::encrypted}) {
    ReliableSettings settings =
        protected_by(security, with("a secret that is long enough not to be stretched"));
    settings.key_epoch_bits = 8;
    MemoryProcess a(network_, low_id, settings);
    MemoryProcess b(network_, high_id, settings);
    expect_exchange(a, b);
    b.messages.clear();
    // It has to acknowledge something, and to send something.
    send_surely(b, b.connect(low_id), {&a, &b}, numbered_put(1), {});
    a.link().full = true;
    for (uint64_t i = 0; i < 8; ++i)
      EXPECT_EQ(a.send(a.connect(high_id), numbered_put(i), numbered_bytes(i, 1000)),
                SendStatus::sent);
    run_for({&a, &b}, settings.peer_timeout_ns / 2);
    a.link().full = false;
    EXPECT_TRUE(run_until(
        {&a, &b}, [&] { return b.messages.size() == 8; }, 1'000'000'000));
    for (uint64_t i = 0; i < b.messages.size(); ++i)
      EXPECT_EQ(b.messages[i].payload, numbered_bytes(i, 1000));
    EXPECT_TRUE(a.failed.empty());
    EXPECT_TRUE(b.failed.empty());
  }
}

TEST_F(Connections, TheSameJobKeyOpensThem) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  MemoryProcess a(network_, low_id, with("a secret"));
  MemoryProcess b(network_, high_id, with("a secret"));
  expect_exchange(a, b);
  EXPECT_NE(a.transport().describe().find("prove the job key"), std::string::npos);
}

TEST_F(Connections, TheSecretOfTheNodeOpensThem) {
  MemoryProcess a(network_, low_id, on_node("0123456789abcdef"));
  MemoryProcess b(network_, high_id, on_node("0123456789abcdef"));
  expect_exchange(a, b);
  EXPECT_NE(a.transport().describe().find("on this node"), std::string::npos);
}

TEST_F(Connections, WithoutAKeyTheyAreSaidNotToBeAuthenticated) {
  MemoryProcess a(network_, low_id);
  EXPECT_NE(a.transport().describe().find("NOT authenticated"), std::string::npos);
}

// A called process receives proofs of the caller. With a short key, it could try guesses of the key
// against them.
TEST(JobProofTest, AShortKeyIsStretchedAndALongOneIsNot) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  const auto secret_of = [](const std::string& key) {
    ReliableSettings settings;
    settings.job_key = key;
    JobProof proof;
    std::string reason;
    EXPECT_TRUE(proof.open(settings, reason)) << reason;
    return std::string(proof.secret().begin(), proof.secret().end());
  };
  const std::string stretched = secret_of("word");
  EXPECT_EQ(stretched.size(), 32u);
  EXPECT_EQ(stretched.find("word"), std::string::npos);
  EXPECT_EQ(secret_of("word"), stretched);
  EXPECT_NE(secret_of("ward"), stretched);
  const std::string long_key(32, 'k');
  EXPECT_EQ(secret_of(long_key), long_key);
}

// The called side must prove that it knows the key as well.
TEST_F(Connections, AForgedAcceptIsRefused) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  MemoryProcess a(network_, low_id, with("a secret"));
  MemoryProcess b(network_, high_id, with("a secret"));
  network_.script = [&](const LinkAddress&, const LinkAddress&,
                        const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    if (header_of(frame).type != FrameType::accept) return {{frame, 0}};
    // The same frame, from a sender that can compute checks but not proofs.
    HandshakeBody body;
    std::memcpy(&body, frame.data() + sizeof(FrameHeader), sizeof body);
    body.number += 1 << 20;
    return {{FakePeer::frame_of(header_of(frame), body, handshake_seed), 0}};
  };
  EXPECT_EQ(a.send(a.connect(high_id), numbered_put(1)), SendStatus::connecting);
  EXPECT_TRUE(run_until(
      {&a, &b}, [&] { return !a.failed.empty(); }, 100'000'000));
  EXPECT_EQ(a.transport().counters().handshakes_refused, 1u);
}

// Somebody on the way who weakens what is demanded cannot make the proof that belongs to it.
TEST_F(Connections, ADowngradeIsNamed) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  MemoryProcess a(network_, low_id, protected_by(NetworkSecurity::encrypted, with("a secret")));
  MemoryProcess b(network_, high_id, protected_by(NetworkSecurity::encrypted, with("a secret")));
  network_.script = [&](const LinkAddress&, const LinkAddress&,
                        const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    const FrameType type = header_of(frame).type;
    if (type != FrameType::accept && type != FrameType::connect) return {{frame, 0}};
    HandshakeBody body;
    std::memcpy(&body, frame.data() + sizeof(FrameHeader), sizeof body);
    body.security = NetworkSecurity::off;
    return {{FakePeer::frame_of(header_of(frame), body, handshake_seed), 0}};
  };
  Link* const link = a.connect(high_id);
  EXPECT_EQ(a.send(link, numbered_put(1)), SendStatus::connecting);
  EXPECT_TRUE(run_until(
      {&a, &b}, [&] { return !a.failed.empty(); }, 2'000'000'000));
  EXPECT_NE(std::string(link->failure.reason).find("downgrade"), std::string::npos)
      << link->failure.reason;
}

// Each cause and node is told again after some time, and the answers are limited like others.
TEST_F(Connections, RefusalsAreToldNowAndThen) {
  if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
  MemoryProcess b(network_, high_id, with("beta"));
  testing::internal::CaptureStderr();
  uint64_t number = 4711;
  const auto call = [&](ProcessId from) {
    FakePeer caller(network_, from, high_id, ++number);
    return caller.connect(b);
  };
  for (unsigned i = 0; i < 10; ++i) EXPECT_FALSE(call({5, i}));
  EXPECT_FALSE(call({6, 1}));
  virtual_now_ns += SaidRecently::again_ns;
  EXPECT_FALSE(call({5, 1}));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
  const uint64_t before = network_.frames_carried;
  constexpr unsigned calls = 3 * AnswerLimit::at_once;
  const uint64_t now_ns = virtual_now_ns;
  for (unsigned i = 0; i < calls; ++i) {
    static_cast<void>(call({5, 1}));
    virtual_now_ns = now_ns;
  }
  EXPECT_LE(network_.frames_carried - before, AnswerLimit::at_once);
}

// If the version differs, only the connection number of the frame is read. The answer is short.
TEST_F(Connections, ACallerOfAnotherVersionIsAnswered) {
  MemoryProcess b(network_, high_id);
  FakePeer caller(network_, low_id, high_id);
  testing::internal::CaptureStderr();
  for (unsigned i = 0; i < 2; ++i) {
    caller.call(FrameType::hello, caller.body(), frame_version + 1);
    b.poll();
    virtual_now_ns += network_.latency_ns;
    const auto answers = network_.take(address_of(low_id));
    ASSERT_EQ(answers.size(), 1u);
    const Frame& answer = answers.front().second;
    ASSERT_EQ(answer.size(), sizeof(FrameHeader));
    EXPECT_TRUE(check_frame(handshake_seed, answer.data(), answer.size()));
    EXPECT_EQ(header_of(answer).version, frame_version);
    EXPECT_EQ(header_of(answer).type, FrameType::refuse);
    EXPECT_EQ(header_of(answer).connection, caller.body().number);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string expected = "speaks version " + std::to_string(frame_version + 1) +
                               " of the protocol, this process version " +
                               std::to_string(frame_version);
  EXPECT_NE(said.find(expected), std::string::npos) << said;
  EXPECT_EQ(said.find(expected), said.rfind(expected)) << said;
  // Only calls are answered. Otherwise two processes of different versions would exchange frames
  // for ever.
  caller.call(FrameType::refuse, caller.body(), frame_version + 1);
  caller.call(FrameType::accept, caller.body(), frame_version + 1);
  b.poll();
  virtual_now_ns += network_.latency_ns;
  EXPECT_TRUE(network_.take(address_of(low_id)).empty());
}

TEST_F(Connections, ATargetOfAnotherVersionRefuses) {
  MemoryProcess a(network_, low_id);
  FakePeer target(network_, high_id, low_id);
  Link* const link = a.connect(high_id);
  EXPECT_EQ(a.send(link, numbered_put(1)), SendStatus::connecting);
  virtual_now_ns += network_.latency_ns;
  const auto calls = network_.take(address_of(high_id));
  ASSERT_EQ(calls.size(), 1u);
  HandshakeBody call;
  std::memcpy(&call, calls.front().second.data() + sizeof(FrameHeader), sizeof call);
  struct NoBody {};
  const auto refuse = [&](uint64_t number) {
    FrameHeader header{};
    header.type = FrameType::refuse;
    header.connection = number;
    target.inject(FakePeer::frame_of(header, NoBody(), handshake_seed, frame_version + 1));
    virtual_now_ns += network_.latency_ns;
    a.poll();
  };
  refuse(call.number + 1);
  EXPECT_TRUE(a.failed.empty()) << "another sender may have sent it";
  refuse(call.number);
  ASSERT_EQ(a.failed.size(), 1u);
  EXPECT_EQ(link->failure.kind, Link::Failure::Kind::refused);
  EXPECT_NE(std::string(link->failure.reason).find("another version"), std::string::npos);
}

// Hellos with forged sources make the called process store nothing, and answers are not longer than
// the hellos.
TEST_F(Connections, HellosLeaveNoState) {
  MemoryProcess b(network_, high_id);
  uint64_t answered_bytes = 0;
  uint64_t asked_bytes = 0;
  network_.script = [&](const LinkAddress&, const LinkAddress&,
                        const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    answered_bytes += frame.size();
    return {};
  };
  for (uint32_t i = 0; i < 10'000; ++i) {
    FakePeer caller(network_, {0x0b000000 + i, i % 1000}, high_id);
    HandshakeBody body = caller.body();
    // Half of the callers continue with an invented cookie.
    body.cookie = i;
    caller.call(i % 2 == 0 ? FrameType::hello : FrameType::connect, body);
    asked_bytes += sizeof(FrameHeader) + sizeof body;
    b.poll();
  }
  for (unsigned i = 0; i < 1000; ++i) b.poll();
  EXPECT_EQ(b.transport().connections(), 0u);
  EXPECT_EQ(b.transport().counters().strangers, 5'000u);
  EXPECT_GT(answered_bytes, 0u);
  EXPECT_LE(answered_bytes, asked_bytes);
  network_.script = nullptr;
  MemoryProcess a(network_, low_id);
  expect_exchange(a, b);
}

uint64_t resident_bytes() {
  std::ifstream status("/proc/self/statm");
  uint64_t pages = 0;
  uint64_t resident = 0;
  status >> pages >> resident;
  return resident * 4096;
}

// The memory for each peer is bounded, and small for an idle peer.
TEST_F(Connections, TenThousandKnownAndFiftyActiveStaySmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer multiplies the memory that is measured";
#endif
  constexpr uint32_t known = 10'000;
  constexpr uint32_t active = 50;
  ReliableSettings settings;
  settings.memory_bytes = 2 << 20;
  settings.most_connections = 1 << 14;
  MemoryProcess centre(network_, high_id, settings);
  const uint64_t before = resident_bytes();
  for (uint32_t i = 0; i < known; ++i) {
    FakePeer peer(network_, {0x0c000000 + i, 1}, high_id);
    ASSERT_TRUE(peer.connect(centre));
    peer.inject(peer.message_frame(1, numbered_put(i), {}));
    centre.poll();
    ASSERT_EQ(centre.messages.size(), 1u);
    centre.messages.clear();
    virtual_now_ns += 1'000'000;
    centre.poll();
    // Removes the acknowledgement: each later take() would have to check all frames left in the
    // network.
    virtual_now_ns += network_.latency_ns;
    EXPECT_EQ(network_.take(address_of({0x0c000000 + i, 1})).size(), 1u);
  }
  EXPECT_EQ(centre.transport().connections(), known);
  run_for({&centre}, 10'000'000);
  const uint64_t idle = resident_bytes() - std::min(before, resident_bytes());
  RecordProperty("bytes_per_idle_connection", static_cast<int>(idle / known));
  EXPECT_LE(idle / known, 1024u) << "an idle connection";
  for (uint32_t i = 0; i < active; ++i)
    for (uint64_t message = 0; message < 4; ++message)
      static_cast<void>(centre.send(centre.connect({0x0c000000 + i, 1}), numbered_put(message),
                                    numbered_bytes(message, 8000)));
  EXPECT_LE(resident_bytes() - std::min(before, resident_bytes()), uint64_t{64} << 20);
}

}  // namespace
}  // namespace lintel::test
