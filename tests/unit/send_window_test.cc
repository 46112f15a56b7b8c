// The sending half of a connection: which frames may be sent, which are lost, when to retry.
#include "reliable/send_window.h"

#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "reliable/cookie.h"
#include "reliable/receive_window.h"

namespace lintel {
namespace {

constexpr uint32_t mtu = 1000;
constexpr uint64_t ms = 1'000'000;
constexpr uint64_t queue_delay_ns = 50'000;

class SendWindowTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pool_.open(mtu, 4 << 20));
    open(1 << 20);
  }
  void TearDown() override { pool_.release_chain(window_.take_all()); }
  // The state after some round trips of duration 0, which are not counted as measured. 16 frames
  // may be sent if the peer can receive them. The next number is 100.
  void open(uint64_t peer_window, uint32_t slot_bytes = 0) {
    constexpr unsigned earlier = 2 + 4 + 8;
    window_.open(100 - earlier, {peer_window, FrameCharge(slot_bytes), mtu, queue_delay_ns}, ms);
    queue(earlier);
    while (!window_.empty()) acknowledge(send(0).back() + 1, {0}, 0);
  }
  void queue(unsigned count) {
    for (unsigned i = 0; i < count; ++i) window_.append(pool_.acquire(mtu));
  }
  // Sends the frames that may be sent; returns their numbers.
  std::vector<uint32_t> send(uint64_t now, unsigned most = 64) {
    FrameBuffer* frames[64];
    const unsigned count =
        window_.collect(window_.first(), window_.window_bytes(), frames, most, exhausted_);
    window_.mark_sent(window_.first(), frames, count, now);
    std::vector<uint32_t> numbers;
    for (unsigned i = 0; i < count; ++i) numbers.push_back(frames[i]->sequence);
    return numbers;
  }
  SendWindow::Acknowledged acknowledge(uint32_t number, std::vector<uint64_t> bits, uint64_t now) {
    const SendWindow::Acknowledged result = window_.acknowledge(number, bits, 0, now);
    pool_.release_chain(result.released);
    return result;
  }
  FramePool pool_;
  SendWindow window_;
  bool exhausted_ = false;
};

using Numbers = std::vector<uint32_t>;

TEST_F(SendWindowTest, FramesGoInOrderAndLeaveWhenAcknowledged) {
  queue(5);
  EXPECT_EQ(send(0), (Numbers{100, 101, 102, 103, 104}));
  EXPECT_TRUE(send(0).empty());
  EXPECT_TRUE(acknowledge(103, {0}, 10'000).progress);
  EXPECT_EQ(window_.queue().frames(), 2u);
  EXPECT_TRUE(acknowledge(105, {0}, 20'000).progress);
  EXPECT_TRUE(window_.empty());
  EXPECT_EQ(window_.in_flight_bytes(), 0u);
  EXPECT_EQ(window_.deadline_ns(), UINT64_MAX);
  EXPECT_EQ(pool_.used_bytes(), 0u);
}

TEST_F(SendWindowTest, OldAndImpossibleAcknowledgementsChangeNothing) {
  queue(3);
  send(0);
  EXPECT_FALSE(acknowledge(104, {0}, 1).valid) << "never sent";
  EXPECT_FALSE(acknowledge(99u + 0x7fffffffu, {0}, 1).valid);
  EXPECT_TRUE(acknowledge(102, {0}, 1).progress);
  const SendWindow::Acknowledged old = acknowledge(101, {~uint64_t{0}}, 2);
  EXPECT_TRUE(old.valid);
  EXPECT_FALSE(old.progress);
  EXPECT_EQ(window_.queue().frames(), 1u);
}

// A frame goes by itself in a shorter way, with the same result.
TEST_F(SendWindowTest, TheOnlyFrameThatWaitsMayGoAloneWhileThereIsRoom) {
  EXPECT_EQ(window_.only_waiting(), nullptr) << "none waits";
  queue(1);
  FrameBuffer* const only = window_.only_waiting();
  ASSERT_NE(only, nullptr);
  EXPECT_EQ(only->sequence, 100u);
  window_.mark_first_sent(*only, 1 * ms);
  EXPECT_EQ(window_.only_waiting(), nullptr) << "it was sent";
  EXPECT_EQ(window_.queue().unsent_frames(), 0u);
  EXPECT_EQ(window_.first().in_flight_bytes(), mtu + FrameCharge::records_bytes);
  EXPECT_TRUE(window_.was_sent_before(101));
  EXPECT_NE(window_.deadline_ns(), UINT64_MAX);

  queue(2);
  EXPECT_EQ(window_.only_waiting(), nullptr) << "two wait";
  EXPECT_EQ(send(1 * ms), (Numbers{101, 102}));
  queue(1);
  EXPECT_NE(window_.only_waiting(), nullptr) << "others are on the way";
  send(1 * ms);
  const SendWindow::Acknowledged result = acknowledge(100, {0b110}, 2 * ms);
  EXPECT_EQ(result.newly_lost, 1u);
  queue(1);
  EXPECT_EQ(window_.only_waiting(), nullptr) << "a lost one goes first";
  EXPECT_EQ(send(2 * ms), (Numbers{100, 104}));
}

TEST_F(SendWindowTest, TheOnlyFrameWaitsForRoom) {
  queue(16);
  send(0);
  queue(1);
  EXPECT_EQ(window_.only_waiting(), nullptr);
  EXPECT_TRUE(send(0).empty());
  acknowledge(116, {0}, 0);
  EXPECT_NE(window_.only_waiting(), nullptr);
}

// Otherwise each acknowledgement would send the few frames that it makes room for, by a system
// call.
TEST_F(SendWindowTest, WhileAnAcknowledgementIsDueFramesWaitForRoomForABurst) {
  EXPECT_FALSE(window_.awaits_room_for_burst()) << "no acknowledgement is due";
  queue(1);
  send(0);
  queue(1);
  EXPECT_FALSE(window_.awaits_room_for_burst()) << "there is room for all";
  queue(60);
  send(0);
  EXPECT_TRUE(window_.awaits_room_for_burst());
  acknowledge(101, {0}, 0);
  EXPECT_TRUE(window_.awaits_room_for_burst()) << "room for 2 of 16";
  acknowledge(104, {0}, 0);
  EXPECT_FALSE(window_.awaits_room_for_burst());
  const uint32_t last = send(0).back();
  acknowledge(last - 12, {0xf00}, 0);
  EXPECT_NE(window_.waiting_frames(), window_.queue().unsent_frames());
  EXPECT_FALSE(window_.awaits_room_for_burst()) << "frames were lost";
}

// Otherwise three times as many of the short ones would go.
TEST_F(SendWindowTest, EachFrameTakesASlotOfThePeer) {
  constexpr uint32_t slots = 5;
  open(uint64_t{slots} * mtu, mtu);
  for (const uint32_t length : {mtu, mtu / 4}) {
    const uint32_t first = window_.next_sequence();
    for (unsigned i = 0; i < 2 * slots; ++i) window_.append(pool_.acquire(length));
    for (FrameBuffer* frame = window_.queue().oldest(); frame != nullptr; frame = frame->next)
      frame->length = length;
    EXPECT_EQ(send(0).size(), slots);
    EXPECT_TRUE(exhausted_);
    EXPECT_EQ(window_.in_flight_bytes(), slots * mtu);
    acknowledge(first + slots, {0}, 0);
    EXPECT_EQ(send(0).size(), slots);
    acknowledge(first + 2 * slots, {0}, 0);
    EXPECT_TRUE(window_.empty());
    EXPECT_EQ(window_.in_flight_bytes(), 0u);
  }
}

// Parts of a long frame take slots, too.
TEST_F(SendWindowTest, PartsKeepToTheRoomOfThePeer) {
  open(uint64_t{4} * mtu, mtu);
  EXPECT_EQ(window_.frames_with_room(100), 4u);
  queue(3);
  send(0);
  EXPECT_EQ(window_.frames_with_room(100), 1u);
  queue(1);
  send(0);
  EXPECT_EQ(window_.frames_with_room(100), 1u) << "or there would never be an answer";
}

// Its number is known before the last part goes, and its answer shows whether all have arrived.
TEST_F(SendWindowTest, TheLastPartIsAProbe) {
  queue(1);
  const uint32_t number = window_.first().losses().probe_number_behind_next();
  send(0);
  window_.first().losses().renew_probe();
  EXPECT_EQ(window_.first().losses().probe_number(), number);
  static_cast<void>(window_.take_answer(number));
  EXPECT_EQ(acknowledge(100, {0}, 10'000).newly_lost, 1u);
  EXPECT_EQ(send(20'000), (Numbers{100}));
}

// It drops what lies further ahead of what it waits for.
TEST_F(SendWindowTest, NoFrameGoesThatThePeerWouldNotKeep) {
  open(1 << 20, 1);
  const auto queue_short = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) window_.append(pool_.acquire(8));
  };
  queue_short(selective_reach);
  while (!window_.empty()) acknowledge(send(0).back() + 1, {0}, 0);
  const uint32_t first = window_.next_sequence();
  queue_short(selective_reach + 2);
  size_t sent = 0;
  do sent += send(0).size();
  while (!exhausted_);
  EXPECT_EQ(sent, selective_reach);
  acknowledge(first + 1, {0}, 0);
  EXPECT_EQ(send(0), (Numbers{first + selective_reach}));
  EXPECT_TRUE(exhausted_);
}

TEST_F(SendWindowTest, AFrameThatThreeLaterOnesOvertookIsLostAndGoesAgainFirst) {
  queue(8);
  send(0, 6);
  EXPECT_EQ(acknowledge(100, {0b1}, 1000).newly_lost, 0u);    // 101
  EXPECT_EQ(acknowledge(100, {0b11}, 1000).newly_lost, 0u);   // 102
  EXPECT_EQ(acknowledge(100, {0b111}, 1000).newly_lost, 1u);  // 103: 100 is lost
  EXPECT_EQ(send(2000), (Numbers{100, 106, 107}));
  // If overtaken again after its retransmission, the frame is lost again.
  EXPECT_EQ(acknowledge(100, {0b1111111}, 3000).newly_lost, 0u);
  queue(2);
  EXPECT_EQ(send(3000), (Numbers{108, 109}));
  EXPECT_EQ(acknowledge(100, {0b111111111}, 4000).newly_lost, 1u);
  EXPECT_EQ(send(4000), (Numbers{100}));
  EXPECT_TRUE(acknowledge(110, {0}, 5000).progress);
  EXPECT_TRUE(window_.empty());
}

TEST_F(SendWindowTest, LossesCostAShareOfTheWindow) {
  queue(16);
  EXPECT_EQ(send(0).size(), 16u);
  EXPECT_EQ(acknowledge(100, {0x7fff}, 0).newly_lost, 1u);
  EXPECT_EQ(send(0), (Numbers{100}));
  acknowledge(116, {0}, 0);
  queue(64);
  const size_t doubled = 32;
  EXPECT_LT(send(0).size(), doubled);
  EXPECT_TRUE(exhausted_);
}

TEST_F(SendWindowTest, AtTheTimeoutEverythingOnTheWayIsLost) {
  queue(4);
  send(0);
  EXPECT_FALSE(window_.time_out(window_.first(), RoundTrip::first_timeout_ns - 1)) << "a probe";
  EXPECT_TRUE(window_.time_out(window_.first(), 5 * ms));
  EXPECT_EQ(window_.in_flight_bytes(), 0u);
  // A window allows at least two frames.
  EXPECT_EQ(send(5 * ms), (Numbers{100, 101}));
  EXPECT_TRUE(exhausted_);
  EXPECT_FALSE(window_.time_out(window_.first(), 5 * ms + 2 * RoundTrip::first_timeout_ns - 1))
      << "doubled";
  acknowledge(102, {0}, 6 * ms);
  EXPECT_EQ(send(6 * ms), (Numbers{102, 103}));
  // A late acknowledgement of the first transmission must not be used to measure the round-trip
  // time.
  EXPECT_EQ(window_.first().round_trip().smoothed_ns(), 0u);
}

// The first round trip is longer than the first timeout, so the acknowledgement of the first copy
// seems to be one of the second copy.
TEST_F(SendWindowTest, AnAcknowledgementOfARepeatedFrameDoesNotShortenTheTimeout) {
  queue(1);
  send(0);
  constexpr uint64_t first_timeout = RoundTrip::first_timeout_ns;
  EXPECT_TRUE(window_.time_out(window_.first(), first_timeout));
  send(first_timeout);
  EXPECT_TRUE(acknowledge(101, {0}, first_timeout + 1).progress);
  queue(1);
  send(10 * first_timeout);
  EXPECT_FALSE(window_.time_out(window_.first(), 12 * first_timeout - 1)) << "nothing was measured";
  EXPECT_TRUE(acknowledge(102, {0}, 10 * first_timeout + ms).progress);
  queue(1);
  send(20 * first_timeout);
  EXPECT_FALSE(window_.time_out(window_.first(), 20 * first_timeout + 3 * ms - 1))
      << "of the round trip";
  EXPECT_TRUE(window_.time_out(window_.first(), 20 * first_timeout + 3 * ms));
}

// No later frame reveals that the last frames of a message were lost.
TEST_F(SendWindowTest, AProbeTellsWhichOfTheLastFramesAreLost) {
  queue(1);
  send(0);
  acknowledge(101, {0}, 100'000);
  queue(4);
  send(ms, 4);
  const uint64_t probe_ns = window_.deadline_ns();
  EXPECT_LE(probe_ns, ms + 300'000) << "about two round trips";
  EXPECT_FALSE(window_.time_out(window_.first(), probe_ns)) << "nothing counts as lost";
  const uint32_t probe = window_.first().losses().probe_number();
  queue(1);
  EXPECT_EQ(send(probe_ns + 1), (Numbers{105}));
  EXPECT_GT(window_.deadline_ns(), probe_ns) << "not again at once";
  static_cast<void>(window_.take_answer(probe));
  EXPECT_EQ(acknowledge(102, {0b1}, probe_ns + 100'000).newly_lost, 2u) << "102 and 104, not 105";
  EXPECT_EQ(send(probe_ns + 100'000), (Numbers{102, 104}));
  static_cast<void>(window_.take_answer(probe));
  EXPECT_EQ(acknowledge(102, {0b1}, probe_ns + 100'001).newly_lost, 0u) << "an answer counts once";
}

TEST_F(SendWindowTest, ProbesBecomeRareWithoutProgress) {
  queue(1);
  send(0);
  acknowledge(101, {0}, 10'000);
  queue(4);
  send(ms, 4);
  unsigned probes = 0;
  unsigned timeouts = 0;
  for (uint64_t now = ms; now < 1000 * ms; now = window_.deadline_ns()) {
    if (now < window_.deadline_ns()) continue;
    ++(window_.time_out(window_.first(), now) ? timeouts : probes);
    send(now);
  }
  EXPECT_GT(probes, 0u);
  EXPECT_GE(timeouts, 8u) << "the timeout is not put off";
  EXPECT_LE(probes, 12u + timeouts) << "one between two timeouts";
}

TEST_F(SendWindowTest, TheTimeoutFollowsTheRoundTripsWithinItsBounds) {
  for (uint64_t i = 0; i < 50; ++i) {
    queue(1);
    send(i * 10 * ms);
    acknowledge(101 + static_cast<uint32_t>(i), {0}, i * 10 * ms + 100'000);
  }
  EXPECT_NEAR(static_cast<double>(window_.first().round_trip().smoothed_ns()), 100'000, 1000);
  EXPECT_EQ(window_.first().round_trip().timeout_ns(0), ms) << "not below the shortest";
  EXPECT_EQ(window_.first().round_trip().timeout_ns(3), 8 * ms);
  EXPECT_EQ(window_.first().round_trip().timeout_ns(60), RoundTrip::longest_timeout_ns);
  for (uint64_t i = 0; i < 50; ++i) {
    queue(1);
    send(i * 100 * ms);
    acknowledge(151 + static_cast<uint32_t>(i), {0}, i * 100 * ms + 30 * ms);
  }
  EXPECT_GE(window_.first().round_trip().timeout_ns(0), 30 * ms);
}

TEST_F(SendWindowTest, TheWindowOfThePeerBoundsWhatIsOnTheWay) {
  constexpr uint64_t peer = 10'000;
  open(peer);
  queue(60);
  uint32_t acknowledged = 100;
  for (unsigned round = 0; round < 10; ++round) {
    acknowledged += static_cast<uint32_t>(send(round * ms).size());
    EXPECT_LE(window_.in_flight_bytes(), peer);
    acknowledge(acknowledged, {0}, round * ms + 50'000);
  }
  EXPECT_TRUE(window_.empty()) << "all frames must be sent";
  // If the peer has room for less than a frame, it gets one frame at a time.
  open(10);
  queue(2);
  EXPECT_EQ(send(0).size(), 1u);
}

// So the acknowledgement of one part of the window comes while the next ones are on the way.
TEST_F(SendWindowTest, TwoFramesOfAWindowWantAnAcknowledgement) {
  FrameBuffer* frames[64];
  const auto wanted = [&](unsigned count) {
    unsigned wanted = 0;
    queue(count);
    const unsigned sent =
        window_.collect(window_.first(), window_.window_bytes(), frames, count, exhausted_);
    EXPECT_EQ(sent, count);
    for (unsigned i = 0; i < sent; ++i) wanted += window_.wants_ack(window_.first(), *frames[i]);
    window_.mark_sent(window_.first(), frames, sent, 0);
    return wanted;
  };
  EXPECT_EQ(wanted(16), 2u);
  acknowledge(116, {0}, 0);
  // Messages that are answered one by one need none.
  for (uint32_t i = 117; i < 200; ++i) {
    EXPECT_EQ(wanted(1), 0u);
    acknowledge(i, {0}, 0);
  }
}

// A loss reduces the window by its share, by half at most. Arrivals let it grow again.
TEST(CongestionTest, LossesCostTheirShare) {
  Congestion congestion;
  congestion.open(64 << 20, 1000, queue_delay_ns);
  for (unsigned i = 0; i < 6; ++i) {
    congestion.delivered(congestion.window_bytes());
    congestion.round_ended();
  }
  const uint64_t grown = congestion.window_bytes();
  EXPECT_EQ(grown, 2'000u << 6) << "doubled in every round";
  congestion.lost(grown / 100);
  congestion.round_ended();
  EXPECT_EQ(congestion.window_bytes(), grown / 2) << "nothing arrived";
  const uint64_t before = congestion.window_bytes();
  congestion.delivered(before * 99 / 100);
  congestion.lost(before / 100);
  const uint64_t grown_by_a_frame = congestion.window_bytes();
  EXPECT_LE(grown_by_a_frame, before + 1000) << "no doubling after a loss";
  congestion.round_ended();
  EXPECT_NEAR(static_cast<double>(congestion.window_bytes()),
              static_cast<double>(grown_by_a_frame) * 0.99, 100);
}

TEST(CongestionTest, LongRoundTripsMeanAQueue) {
  Congestion congestion;
  congestion.open(1 << 20, 1000, queue_delay_ns);
  for (unsigned i = 0; i < 100; ++i) {
    congestion.measured(50'000, 0);
    congestion.delivered(20'000);
    congestion.round_ended();
  }
  EXPECT_EQ(congestion.window_bytes(), 1u << 20) << "the most there can be";
  for (unsigned i = 0; i < 3; ++i) {
    congestion.measured(5'000'000, 0);
    congestion.delivered(1000);
    congestion.round_ended();
  }
  EXPECT_LT(congestion.window_bytes(), 1u << 19);
  for (unsigned i = 0; i < 100; ++i) congestion.timed_out();
  EXPECT_EQ(congestion.window_bytes(), 2000u) << "never less than two frames";
}

TEST(CongestionTest, TheFirstQueueEndsTheDoubling) {
  Congestion congestion;
  congestion.open(64 << 20, 1000, queue_delay_ns);
  congestion.measured(20'000, 0);
  congestion.delivered(congestion.window_bytes());
  congestion.round_ended();
  const uint64_t doubled = congestion.window_bytes();
  EXPECT_EQ(doubled, 4'000u);
  congestion.measured(1'000'000, 0);
  congestion.delivered(doubled);
  EXPECT_LE(congestion.window_bytes(), doubled + 1000);
}

TEST(CongestionTest, ALinkMayPermitALongerQueue) {
  for (const uint64_t permitted_ns : {queue_delay_ns, 10 * queue_delay_ns}) {
    Congestion congestion;
    congestion.open(1 << 20, 1000, permitted_ns);
    for (unsigned i = 0; i < 10; ++i) {
      congestion.measured(20'000, 0);
      congestion.delivered(congestion.window_bytes());
      congestion.round_ended();
    }
    const uint64_t before = congestion.window_bytes();
    congestion.measured(20'000 + 5 * queue_delay_ns, 0);
    congestion.round_ended();
    EXPECT_EQ(congestion.window_bytes() == before, permitted_ns > queue_delay_ns);
  }
}

// Of two senders with the same queue, the one with the larger window reduces it.
TEST(CongestionTest, SmallWindowsMayCauseALongerQueue) {
  Congestion small;
  Congestion large;
  small.open(64 << 20, 1000, queue_delay_ns);
  large.open(64 << 20, 1000, queue_delay_ns);
  for (unsigned i = 0; i < 6; ++i) large.delivered(large.window_bytes());
  const uint64_t small_before = small.window_bytes();
  const uint64_t large_before = large.window_bytes();
  for (Congestion* congestion : {&small, &large}) {
    congestion->measured(20'000, 0);
    congestion->round_ended();
    congestion->measured(20'000 + queue_delay_ns + 10'000, 0);
    congestion->round_ended();
  }
  EXPECT_EQ(small.window_bytes(), small_before);
  EXPECT_LT(large.window_bytes(), large_before);
}

TEST(ReceiveWindowTest, EarlyFramesWaitInOrder) {
  FramePool pool;
  ASSERT_TRUE(pool.open(mtu, 1 << 20));
  ReceiveWindow window;
  window.open(UINT32_MAX - 1);
  const auto keep = [&](uint32_t sequence) {
    ASSERT_EQ(window.place_of(sequence), ReceiveWindow::Place::out_of_order) << sequence;
    FrameBuffer* frame = pool.acquire(100);
    frame->sequence = sequence;
    window.keep(frame);
  };
  keep(UINT32_MAX);
  keep(3);
  keep(0);
  keep(70);
  EXPECT_EQ(window.place_of(3), ReceiveWindow::Place::duplicate);
  EXPECT_EQ(window.place_of(UINT32_MAX - 2), ReceiveWindow::Place::duplicate);
  EXPECT_EQ(window.place_of(UINT32_MAX - 1), ReceiveWindow::Place::next);
  EXPECT_EQ(window.place_of(UINT32_MAX - 1 + selective_reach), ReceiveWindow::Place::beyond);
  uint64_t words[1 + most_selective_words];
  EXPECT_EQ(window.selective_words(words), 2u);
  EXPECT_EQ(words[0], 0b10011u);
  EXPECT_EQ(words[1], uint64_t{1} << (71 - 64));
  EXPECT_EQ(window.kept_bytes(), 400u);
  EXPECT_EQ(window.take_expected(), nullptr);
  window.advance();
  for (const uint32_t sequence : {UINT32_MAX, 0u}) {
    FrameBuffer* frame = window.take_expected();
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->sequence, sequence);
    pool.release(frame);
    window.advance();
  }
  EXPECT_EQ(window.take_expected(), nullptr) << "1 and 2 are missing";
  pool.release_chain(window.take_all());
  EXPECT_EQ(pool.used_bytes(), 0u);
}

TEST(FramePoolTest, EachSizeHasItsPart) {
  FramePool pool;
  ASSERT_TRUE(pool.open(9000, 1 << 20));
  std::vector<FrameBuffer*> small;
  while (FrameBuffer* frame = pool.acquire(100)) small.push_back(frame);
  EXPECT_GT(small.size(), 100u);
  EXPECT_LE(pool.used_bytes(), 1u << 20);
  for (FrameBuffer* frame : small) pool.release(frame);
  EXPECT_EQ(pool.used_bytes(), 0u);
  FrameBuffer* large = pool.acquire(9000);
  ASSERT_NE(large, nullptr) << "what small ones once took is not lost to large ones";
  pool.release(large);
}

// The test vector of the paper: key 00..0f, input 00..0e.
TEST(CookieTest, SipHashGivesThePublishedValue) {
  const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  unsigned char input[15];
  for (unsigned i = 0; i < sizeof input; ++i) input[i] = static_cast<unsigned char>(i);
  EXPECT_EQ(siphash(key, input, sizeof input), 0xa129ca6149be45e5u);
}

TEST(CookieTest, GoodForWhomItWasMadeAndForAWhile) {
  const CookieMaker maker;
  const CookieMaker other;
  LinkAddress here;
  LinkAddress elsewhere;
  elsewhere.bytes[0] = std::byte{1};
  HandshakeBody body{};
  body.number = 7;
  const uint64_t now = 1'000'000'000'000;
  const uint64_t cookie = maker.make(here, body, 3, now);
  HandshakeBody later = body;
  later.cookie = cookie;
  later.proof[3] = 9;
  EXPECT_TRUE(maker.is_good(cookie, here, later, 3, now));
  EXPECT_TRUE(maker.is_good(cookie, here, later, 3, now + 10'000'000'000));
  EXPECT_FALSE(maker.is_good(cookie, here, later, 3, now + 30'000'000'000));
  EXPECT_FALSE(maker.is_good(cookie, elsewhere, later, 3, now));
  EXPECT_FALSE(maker.is_good(cookie + 1, here, later, 3, now));
  EXPECT_FALSE(other.is_good(cookie, here, later, 3, now));
  EXPECT_FALSE(maker.is_good(cookie, here, later, 4, now)) << "another connection followed";
  later.number = 8;
  EXPECT_FALSE(maker.is_good(cookie, here, later, 3, now));
}

// A path that loses long frames, between processes that seldom run: probes are answered later than
// the next ones go.
TEST_F(SendWindowTest, ANarrowPathIsFoundThoughAnswersAreLate) {
  constexpr uint64_t round_trip_ns = 40 * ms;
  struct Answer {
    uint64_t at_ns;
    uint32_t number;
  };
  std::deque<Answer> answers;
  queue(20);
  uint64_t now = ms;
  send(now);
  while (now < 5'000 * ms && window_.mtu().frame_bytes() == mtu) {
    const uint64_t deadline_ns = window_.deadline_ns();
    if (answers.empty() || deadline_ns < answers.front().at_ns) {
      now = std::max(now, deadline_ns);
      if (window_.time_out(window_.first(), now))
        send(now);
      else
        answers.push_back({now + round_trip_ns, window_.first().losses().probe_number()});
      continue;
    }
    now = answers.front().at_ns;
    static_cast<void>(window_.take_answer(answers.front().number));
    answers.pop_front();
    EXPECT_TRUE(acknowledge(100, {0}, now).valid);
    if (window_.mtu().is_due(now)) static_cast<void>(window_.mtu().go_on(now));
    send(now);
  }
  EXPECT_LT(window_.mtu().frame_bytes(), mtu);
  EXPECT_LT(now, 2'000 * ms);
}

}  // namespace
}  // namespace lintel
