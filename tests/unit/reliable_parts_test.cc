// The parts of a reliable transport that send, receive and acknowledge, each with as few other
// parts as possible.
#include "reliable/data_receiver.h"
#include "reliable/handshake.h"
#include "reliable/peer_watch.h"
#include "reliable/sender.h"
#include "support/modules.h"
#include "unit/failing_crypto.h"
#include "unit/reliable_test_support.h"
#include "util/module.h"

namespace lintel::test {
namespace {

constexpr ProcessId self_id{1, 1};
constexpr ProcessId peer_id{2, 2};
constexpr uint32_t frame_bytes = 1472;

class Sink final : public QuietSink {
 public:
  void* on_new_link(Link& link) noexcept override {
    ++announced;
    return &link;
  }
  void on_messages(Link&, const InboundMessage* arrived, unsigned count) noexcept override {
    for (unsigned i = 0; i < count; ++i) match_bits.push_back(arrived[i].header.match_bits);
    ++calls;
  }
  void on_peer_failed(Link& link) noexcept override { failed.push_back(&link); }

  unsigned announced = 0;
  unsigned calls = 0;
  std::vector<uint64_t> match_bits;
  std::vector<Link*> failed;
};

// The objects that the parts share, and one established connection.
class ReliablePart : public testing::Test {
 protected:
  ReliablePart() {
    network_.latency_ns = 0;
    settings_.clock = virtual_clock;
    EXPECT_TRUE(sent_.open(frame_bytes, 1 << 20));
    EXPECT_TRUE(transmitter_.open());
    EXPECT_TRUE(received_.open(frame_bytes, 1 << 20));
    EXPECT_TRUE(reassembly_.open(sizeof(MessageHeader) + longest_eager_bytes, 1 << 18));
    batch_.begin(sink_);
    establish(connection_);
  }
  // A connection other than the one that a test makes for the peer.
  static Connection& first_of(ConnectionTable& table) {
    EXPECT_TRUE(table.open(16));
    return *table.find_or_make({peer_id.nid, peer_id.pid + 1});
  }
  void establish(Connection& connection) {
    connection.peer = peer_id;
    connection.life.set_route({address_of(peer_id), frame_bytes});
    open_sending(connection, frame_bytes);
    connection.receive.open(1);
    connection.silence.heard(virtual_now_ns);
    connection.life.establish(1, 1, true);
  }
  void open_sending(Connection& connection, uint32_t longest) {
    connection.send.open(1, {1 << 16, FrameCharge(), longest, LinkProperties{}.queue_delay_ns},
                         settings_.shortest_timeout_ns);
  }
  // The headers of the frames sent to the peer since the last call.
  std::vector<FrameHeader> taken_frames() {
    std::vector<FrameHeader> headers;
    for (const auto& [from, frame] : network_.take(address_of(peer_id)))
      headers.push_back(header_of(frame));
    return headers;
  }
  SendStatus send(uint64_t number, size_t bytes = 8) {
    const std::vector<std::byte> payload(bytes);
    const Piece piece{const_cast<std::byte*>(payload.data()), payload.size()};
    return sender_.send(connection_, numbered_put(number), &piece, 1);
  }
  static FrameHeader acknowledgement(uint32_t acknowledged) {
    FrameHeader header{};
    header.type = FrameType::data;
    header.acknowledged = acknowledged;
    return header;
  }
  // A frame of the peer with `payload` bytes after the header of its message.
  Frame data_frame(uint32_t sequence, uint8_t flags, uint32_t payload, uint32_t announced) {
    FrameHeader header{};
    header.type = FrameType::data;
    header.flags = flags;
    header.sequence = sequence;
    header.acknowledged = 1;
    MessageHeader message = numbered_put(sequence);
    message.link_word = announced;
    Frame frame(message_frame_overhead + payload);
    std::memcpy(frame.data(), &header, sizeof header);
    std::memcpy(frame.data() + sizeof header, &message, sizeof message);
    return frame;
  }
  void receive(Frame frame) {
    const LinkAddress from = address_of(peer_id);
    data_.take(connection_, {&from, frame.data(), static_cast<uint32_t>(frame.size())},
               header_of(frame), virtual_now_ns);
  }

  MemoryNetwork network_;
  MemoryLink link_{network_, self_id, frame_bytes, 1 << 16, false};
  ReliableSettings settings_;
  ReliableCounters counters_;
  Sink sink_;
  FramePool sent_;
  FramePool received_;
  Reassembly reassembly_;
  ConnectionTable table_;
  Connection& connection_{first_of(table_)};
  PollerWakeup wakeup_;
  ConnectionTimers timers_{wakeup_};
  const ReliableContext context_{link_,     settings_,   counters_, sent_,
                                 received_, reassembly_, timers_,   table_};
  Transmitter transmitter_{context_};
  Acknowledger acknowledger_{context_, transmitter_};
  Sender sender_{context_, transmitter_, acknowledger_};
  MessageBatch batch_;
  ConnectionCloser closer_{context_, transmitter_, batch_};
  MessageAssembler assembler_{context_, batch_, closer_};
  DataReceiver data_{context_, sender_, acknowledger_, batch_, closer_, assembler_};
};

using TransmitterTest = ReliablePart;

TEST_F(TransmitterTest, AnAcknowledgementWaitsWhenTheLinkIsFull) {
  connection_.receive.window.advance();
  link_.full = true;
  transmitter_.acknowledge(connection_, virtual_now_ns);
  EXPECT_EQ(counters_.acks_sent, 0u);
  EXPECT_EQ(timers_.earliest_ns(), virtual_now_ns + settings_.ack_delay_ns);
  link_.full = false;
  transmitter_.acknowledge(connection_, virtual_now_ns);
  const std::vector<FrameHeader> frames = taken_frames();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::ack);
  EXPECT_EQ(frames[0].acknowledged, 2u);
  EXPECT_EQ(connection_.pending.deadline_ns(), UINT64_MAX);
}

TEST_F(TransmitterTest, AProbeIsAsLongAsTheResetThatMayAnswerIt) {
  transmitter_.probe_all(connection_, virtual_now_ns);
  const auto frames = network_.take(address_of(peer_id));
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].second.size(), sizeof(FrameHeader) + sizeof(ResetBody));
}

using SenderTest = ReliablePart;

TEST_F(SenderTest, RefusesWhatIsTooLongAndWhatFindsNoRoom) {
  EXPECT_EQ(send(1, longest_eager_bytes + 1), SendStatus::inaccessible);
  link_.full = true;
  SendStatus status = SendStatus::sent;
  for (unsigned i = 0; i < 1000 && status == SendStatus::sent; ++i) status = send(i, 1000);
  EXPECT_EQ(status, SendStatus::queue_full);
}

TEST_F(ReliablePart, AConnectionThatEndsLeavesNothing) {
  EXPECT_EQ(send(1, 3000), SendStatus::sent);
  receive(data_frame(3, frame_whole, 100, 100));
  receive(data_frame(1, frame_first, 100, 200));
  closer_.fail(connection_, "the test says so");
  closer_.fail(connection_, "and again");
  EXPECT_EQ(sink_.failed, std::vector<Link*>{&connection_});
  EXPECT_EQ(sent_.used_bytes() + received_.used_bytes() + reassembly_.used_bytes(), 0u);
  EXPECT_EQ(counters_.connections_failed, 1u);
}

using DataReceiverTest = ReliablePart;

TEST_F(DataReceiverTest, APeerThatSendsNonsenseFails) {
  receive(data_frame(1, frame_last, 8, 8));
  EXPECT_EQ(counters_.malformed, 1u);
  EXPECT_EQ(sink_.failed.size(), 1u);
}

TEST_F(ReliablePart, NumbersOfConnectionsHaveFortyFourRandomBits) {
  constexpr uint64_t all = (uint64_t{1} << 44) - 1;
  uint64_t set = 0;
  uint64_t clear = 0;
  for (int i = 0; i < 100; ++i) {
    Connection& connection = *table_.find_or_make(peer_id);
    set |= connection.life.number() >> 20;
    clear |= ~connection.life.number() >> 20;
    connection.life.establish(1, 1, true);
    connection.life.fail();
  }
  EXPECT_EQ(set, all);
  EXPECT_EQ(clear & all, all);
}

class HandshakeTest : public ReliablePart {
 protected:
  Handshake handshake_{context_, closer_};
};

class PeerWatchTest : public HandshakeTest {
 protected:
  void run_timers_for(uint64_t ns) {
    const uint64_t end_ns = virtual_now_ns + ns;
    while (timers_.earliest_ns() <= end_ns) {
      virtual_now_ns = std::max(virtual_now_ns, timers_.earliest_ns());
      watch_.run_timers(virtual_now_ns, false);
    }
    virtual_now_ns = end_ns;
  }
  PeerWatch watch_{context_, handshake_, closer_, transmitter_, data_};
};

TEST_F(PeerWatchTest, AsksAPeerThatIsSilentAndFailsItWithoutAnAnswer) {
  Link* const links[] = {&connection_};
  watch_.check(links, 1, virtual_now_ns);
  EXPECT_TRUE(taken_frames().empty()) << "it was just heard";
  virtual_now_ns += settings_.keepalive_ns();
  watch_.check(links, 1, virtual_now_ns);
  EXPECT_EQ(taken_frames().size(), 1u);
  for (unsigned checks = 0; checks < 4; ++checks) {
    virtual_now_ns += settings_.peer_timeout_ns / 4 + 1;
    watch_.check(links, 1, virtual_now_ns);
  }
  EXPECT_EQ(sink_.failed.size(), 1u);
}

TEST_F(PeerWatchTest, AfterAPauseOfThisProcessThePeerHasTheFullTimeAgain) {
  EXPECT_EQ(send(1), SendStatus::sent);
  run_timers_for(settings_.peer_timeout_ns / 2);
  virtual_now_ns += 2 * settings_.peer_timeout_ns;
  const uint64_t due_ns = timers_.earliest_ns();
  watch_.run_timers(virtual_now_ns, true);
  EXPECT_EQ(timers_.earliest_ns(), due_ns) << "what waits is read first";
  run_timers_for(settings_.peer_timeout_ns - 1);
  EXPECT_TRUE(sink_.failed.empty());
  run_timers_for(settings_.peer_timeout_ns / 4);
  EXPECT_EQ(sink_.failed.size(), 1u);
}

// A peer that floods does not keep the others from being looked after.
TEST_F(PeerWatchTest, TimersRunAfterAPauseThoughFramesNeverStop) {
  EXPECT_EQ(send(1), SendStatus::sent);
  virtual_now_ns += 2 * settings_.peer_timeout_ns;
  for (unsigned polls = 0; polls < 1000; ++polls) watch_.run_timers(virtual_now_ns, true);
  EXPECT_EQ(counters_.retransmissions, 1u);
}

TEST_F(PeerWatchTest, APauseBetweenChecksIsNoSilenceOfThePeer) {
  Link* const links[] = {&connection_};
  virtual_now_ns += settings_.keepalive_ns();
  watch_.check(links, 1, virtual_now_ns);
  virtual_now_ns += 2 * settings_.peer_timeout_ns;
  watch_.check(links, 1, virtual_now_ns);
  EXPECT_TRUE(sink_.failed.empty());
  EXPECT_EQ(taken_frames().size(), 2u) << "it is asked again";
}

TEST_F(PeerWatchTest, APauseDoesNotEndAnAttemptToConnect) {
  Connection& connection = *table_.find_or_make({peer_id.nid + 1, peer_id.pid});
  handshake_.start(connection, virtual_now_ns);
  virtual_now_ns += 2 * settings_.peer_timeout_ns;
  watch_.run_timers(virtual_now_ns, false);
  EXPECT_TRUE(sink_.failed.empty());
  run_timers_for(2 * settings_.peer_timeout_ns);
  EXPECT_EQ(sink_.failed.size(), 1u);
}

class SealedPeerWatchTest : public PeerWatchTest,
                            public testing::WithParamInterface<NetworkSecurity> {
 protected:
  void SetUp() override {
    if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
    std::string reason;
    const auto* const real = static_cast<const CryptoModule*>(load_module("crypto", reason));
    ASSERT_NE(real, nullptr) << reason;
    constexpr uint8_t key[CryptoModule::cipher_key_bytes] = {1, 2, 3};
    auto channel = std::make_unique<SecureChannel>();
    ASSERT_TRUE(channel->send.open(FailingCrypto::over(*real), key,
                                   {.encrypts = GetParam() == NetworkSecurity::encrypted}));
    connection_.protection.open(1, 1, std::move(channel), false);
    open_sending(connection_, frame_bytes - tag_bytes);
  }
};

INSTANTIATE_TEST_SUITE_P(Security, SealedPeerWatchTest,
                         testing::Values(NetworkSecurity::authenticated,
                                         NetworkSecurity::encrypted),
                         [](const auto& tested) {
                           return tested.param == NetworkSecurity::encrypted ? "encrypted"
                                                                             : "authenticated";
                         });

TEST_P(SealedPeerWatchTest, AFrameThatCannotBeSealedIsNotSentAndTheConnectionFails) {
  EXPECT_EQ(send(1), SendStatus::sent);
  EXPECT_EQ(taken_frames().size(), 1u);
  FailingCrypto::fails = true;
  EXPECT_EQ(send(2), SendStatus::sent) << "it is kept";
  transmitter_.probe_all(connection_, virtual_now_ns);
  transmitter_.acknowledge(connection_, virtual_now_ns);
  transmitter_.say_goodbye(connection_, virtual_now_ns);
  EXPECT_TRUE(taken_frames().empty());
  run_timers_for(1'000'000);
  EXPECT_TRUE(taken_frames().empty());
  ASSERT_EQ(sink_.failed.size(), 1u);
  EXPECT_NE(std::string(connection_.failure.reason).find("seal"), std::string::npos);
}

}  // namespace
}  // namespace lintel::test
