#include "core/progress/poller.h"

#include <gtest/gtest.h>

#include "core/progress/passing_policy.h"
#include "core/progress/wait.h"
#include "scripted_transport.h"
#include "support/quiet_sink.h"

namespace lintel::test {
namespace {

class ScriptedWork final : public PolledWork {
 public:
  unsigned advance() noexcept override {
    ++advances;
    return 1;
  }
  bool is_ready() const noexcept override { return ready; }
  bool sends_wait() const noexcept override { return blocked; }
  bool has_peers() const noexcept override { return connected; }
  bool awaits_peers() const noexcept override { return awaiting; }
  void check_peers() noexcept override { ++checks; }
  void wake_awaited_peers() noexcept override { ++wakes; }

  unsigned advances = 0;
  unsigned checks = 0;
  unsigned wakes = 0;
  bool ready = false;
  bool blocked = false;
  bool connected = false;
  bool awaiting = false;
};

constexpr uint64_t check_interval_ns = 1'000'000;

class PollerTest : public ::testing::Test {
 protected:
  PollerTest() {
    local_.offers.in_process = true;
    EXPECT_TRUE(poller_.transports().add(local_));
    EXPECT_TRUE(poller_.transports().add(net_));
    poller_.open(doorbell_, true, check_interval_ns);
  }
  QuietSink sink_;
  ScriptedWork work_;
  ScriptedTransport local_;
  ScriptedTransport net_;
  Doorbell doorbell_;
  Poller poller_{sink_, work_};
};

TEST_F(PollerTest, ARoundPollsAndCountsWhatCame) {
  net_.arrived = 3;
  EXPECT_EQ(poller_.poll_once(), 3u);
  EXPECT_EQ(&poller_.transports().current(), &net_);
  EXPECT_EQ(poller_.poll_once(), 0u);
  EXPECT_EQ(poller_.polls(), 2u);
  EXPECT_EQ(poller_.polls_with_work(), 1u);
  EXPECT_EQ(poller_.token().rounds(), 4u);
}

TEST_F(PollerTest, TheOwnProcessIsPolledAfterASend) {
  poller_.poll_once();
  EXPECT_EQ(local_.polls, 0u);
  poller_.transports().in_process_sends().set();
  local_.arrived = 1;
  EXPECT_EQ(poller_.poll_once(), 1u);
  poller_.poll_once();
  EXPECT_EQ(local_.polls, 1u);
}

TEST_F(PollerTest, TheOwnProcessIsPolledAgainIfTheBudgetWasTooSmall) {
  poller_.transports().in_process_sends().set();
  local_.arrived = 32;
  EXPECT_EQ(poller_.poll_once(), 32u);
  EXPECT_EQ(local_.polls, 1u);
  poller_.poll_once();
  poller_.poll_once();
  EXPECT_EQ(local_.polls, 2u);
}

TEST_F(PollerTest, AKickPollsOnceUnlessMessagesToSelfOrWorkAreLeft) {
  net_.arrived = 1;
  poller_.kick();
  EXPECT_EQ(net_.polls, 1u);
  poller_.transports().in_process_sends().set();
  local_.arrived = 32;
  poller_.kick();
  EXPECT_EQ(local_.polls, 2u);
}

TEST_F(PollerTest, WorkIsDoneWhenItIsDue) {
  poller_.poll_once();
  EXPECT_EQ(work_.advances, 0u);
  poller_.work_due().set();
  EXPECT_EQ(poller_.poll_once(), 1u);
  poller_.poll_once();
  EXPECT_EQ(work_.advances, 1u);
}

TEST_F(PollerTest, AKickPollsUnlessAnotherThreadDoes) {
  poller_.kick();
  EXPECT_EQ(net_.polls, 1u);
  EXPECT_EQ(poller_.polls(), 1u);
  ASSERT_TRUE(poller_.token().try_acquire());
  poller_.kick();
  EXPECT_EQ(net_.polls, 1u);
}

TEST_F(PollerTest, AMessageToSelfIsDeliveredAtOnceUnlessOthersAreUnderWay) {
  ASSERT_TRUE(poller_.begin_delivery_to_self());
  EXPECT_FALSE(poller_.begin_delivery_to_self());
  EXPECT_EQ(poller_.token().rounds() % 2, 1u);
  poller_.end_delivery_to_self();
  EXPECT_EQ(poller_.token().rounds() % 2, 0u);
  EXPECT_EQ(net_.polls, 0u);
  poller_.transports().in_process_sends().set();
  EXPECT_FALSE(poller_.begin_delivery_to_self());
  EXPECT_TRUE(poller_.token().try_acquire());
}

TEST_F(PollerTest, WhoOnlyDeliversToSelfPollsOthersNowAndThen) {
  for (unsigned i = 0; i < 64; ++i) {
    ASSERT_TRUE(poller_.begin_delivery_to_self());
    poller_.end_delivery_to_self();
  }
  EXPECT_GE(net_.polls, 3u);
  EXPECT_LE(net_.polls, 8u);
}

TEST_F(PollerTest, BeforeASleepItWakesTheProgressOfPeersThatAnOperationWaitsFor) {
  EXPECT_TRUE(poller_.prepare_sleep());
  EXPECT_EQ(work_.wakes, 0u);
  work_.awaiting = true;
  EXPECT_TRUE(poller_.prepare_sleep());
  EXPECT_EQ(work_.wakes, 1u);
  work_.ready = true;
  EXPECT_FALSE(poller_.prepare_sleep());
  EXPECT_EQ(work_.wakes, 1u);
}

TEST(PolledTransportsTest, MessagesOfPeersThatWakeNoThreadNeedTicks) {
  QuietSink sink;
  ScriptedTransport waking;
  ScriptedTransport socket;
  waking.offers.wakes_progress = true;
  socket.offers.polls_by_system_call = true;
  PolledTransports transports;
  ASSERT_TRUE(transports.add(waking) && transports.add(socket));
  socket.arrived = 1;
  EXPECT_EQ(transports.poll(sink), 1u);
  EXPECT_TRUE(transports.take_needs_ticks());
  waking.arrived = 1;
  EXPECT_EQ(transports.poll(sink), 1u);
  EXPECT_FALSE(transports.take_needs_ticks());
  // Messages of this transport wake no thread.
  ScriptedTransport port;
  ASSERT_TRUE(transports.add(port));
  static_cast<void>(transports.take_needs_ticks());
  EXPECT_TRUE(transports.take_needs_ticks());
}

// Shared memory in front of a network.
class BusyTransportTest : public ::testing::Test {
 protected:
  BusyTransportTest() {
    near_.offers.wakes_progress = true;
    EXPECT_TRUE(transports_.add(near_));
    EXPECT_TRUE(transports_.add(net_));
  }
  // Number of rounds that polled the network, when each round brings `messages` from near by.
  unsigned rounds_of_net(unsigned rounds, unsigned messages) {
    const unsigned before = net_.polls;
    for (unsigned i = 0; i < rounds; ++i) {
      near_.arrived = messages;
      EXPECT_EQ(transports_.poll(sink_), messages);
    }
    return net_.polls - before;
  }
  QuietSink sink_;
  ScriptedTransport near_;
  ScriptedTransport net_;
  PolledTransports transports_;
};

TEST_F(BusyTransportTest, OthersArePolledAfterEveryFewMessagesOfTheFirst) {
  EXPECT_EQ(rounds_of_net(90, 1), 6u);
  EXPECT_GE(rounds_of_net(90, 32), 40u);
}

TEST_F(BusyTransportTest, OthersArePolledInEachRoundWhenTheFirstBringsNothingMore) {
  EXPECT_EQ(rounds_of_net(1, 1), 1u);
  EXPECT_EQ(rounds_of_net(32, 0), 0u);
  EXPECT_EQ(rounds_of_net(10, 0), 10u);
}

TEST_F(BusyTransportTest, MessagesOfOthersLeaveNoneOut) {
  for (unsigned i = 1; i <= 20; ++i) {
    net_.arrived = 1;
    EXPECT_EQ(transports_.poll(sink_), 1u);
    EXPECT_EQ(near_.polls, i);
  }
}

struct ScriptedWait {
  unsigned& looks;
  unsigned over_at;
  unsigned& ends;
  bool is_over_unasked = false;
  [[nodiscard]] bool begin() const noexcept {
    looks = 0;
    return over_at != 0;
  }
  [[nodiscard]] bool is_over() const noexcept { return ++looks == over_at; }
  [[nodiscard]] bool end() const noexcept {
    ++ends;
    return is_over_unasked;
  }
};

TEST_F(PollerTest, ABriefPollEndsWhenTheWaitIsOverOrAfterAFewRounds) {
  unsigned looks = 0;
  unsigned ends = 0;
  net_.arrived = 1;
  EXPECT_TRUE(poller_.poll_briefly(ScriptedWait{looks, 1, ends}));
  EXPECT_EQ(net_.polls, 1u);
  EXPECT_FALSE(poller_.poll_briefly(ScriptedWait{looks, 2, ends}));
  EXPECT_EQ(looks, 1u) << "rounds without work are followed by one look";
  EXPECT_EQ(net_.polls, 9u);
  EXPECT_TRUE(poller_.poll_briefly(ScriptedWait{looks, 1, ends})) << "the last look counts";
  EXPECT_EQ(ends, 3u);
  ASSERT_TRUE(poller_.token().try_acquire());
  EXPECT_FALSE(poller_.poll_briefly(ScriptedWait{looks, 1, ends})) << "another thread polls";
  EXPECT_EQ(ends, 3u);
  poller_.token().release();
  const unsigned polls = net_.polls;
  EXPECT_FALSE(poller_.poll_briefly(ScriptedWait{looks, 0, ends})) << "it does not begin";
  EXPECT_EQ(ends, 3u);
  EXPECT_EQ(net_.polls, polls);
}

// The end of a peer counts as no work, and its event goes to the thread that waits.
TEST_F(PollerTest, ARoundWithoutWorkMayEndAWait) {
  unsigned looks = 0;
  unsigned ends = 0;
  PassingPolls passing(poller_);
  std::atomic<uint64_t> round_seen{0};
  EXPECT_TRUE(passing.poll_now(ScriptedWait{looks, 1, ends, true}));
  EXPECT_EQ(looks, 0u) << "no round had work";
  EXPECT_TRUE(passing.poll(round_seen, ScriptedWait{looks, 1, ends, true}));
  EXPECT_TRUE(poller_.poll_briefly(ScriptedWait{looks, 2, ends, true}));
  EXPECT_EQ(ends, 3u);
  EXPECT_FALSE(passing.poll_now(ScriptedWait{looks, 1, ends, false}));
}

TEST_F(PollerTest, ItSleepsOnlyIfTransportsAndWorkAgree) {
  EXPECT_TRUE(poller_.prepare_sleep());
  EXPECT_FALSE(net_.armed_for_senders);
  work_.blocked = true;
  EXPECT_TRUE(poller_.prepare_sleep());
  EXPECT_TRUE(net_.armed_for_senders);
  work_.ready = true;
  EXPECT_FALSE(poller_.prepare_sleep());
  work_.ready = false;
  net_.arms = false;
  EXPECT_FALSE(poller_.prepare_sleep());
  poller_.wake();
  EXPECT_EQ(net_.disarms, 1u);
  EXPECT_EQ(local_.disarms, 1u);
}

// An operation that starts while it sleeps may wait for a peer that dies.
TEST_F(PollerTest, TimersAndPeersLimitItsSleep) {
  EXPECT_LT(poller_.sleep_limit_ns(), 0);
  work_.connected = true;
  EXPECT_EQ(poller_.sleep_limit_ns(), static_cast<int64_t>(check_interval_ns));
  net_.limit_ns = 10;
  EXPECT_EQ(poller_.sleep_limit_ns(), 10);
  work_.connected = false;
  net_.limit_ns = 2 * check_interval_ns;
  EXPECT_EQ(poller_.sleep_limit_ns(), static_cast<int64_t>(2 * check_interval_ns));
}

TEST_F(PollerTest, PeersAreCheckedAtATimeWhoeverPolls) {
  for (unsigned i = 0; i < 10'000; ++i) poller_.poll_once();
  EXPECT_EQ(work_.checks, 0u);
  const uint64_t before = now_ns();
  poller_.check_peers_if_due(before);
  poller_.poll_once();
  EXPECT_EQ(work_.checks, 1u);
  poller_.check_peers_if_due(before + check_interval_ns - 1);
  poller_.poll_once();
  EXPECT_EQ(work_.checks, 1u);
  while (now_ns() < before + 100 * check_interval_ns && work_.checks == 1) {
    poller_.check_peers_if_due(now_ns());
    poller_.poll_once();
  }
  EXPECT_EQ(work_.checks, 2u);
}

// Without a progress thread nobody else looks at the clock.
TEST_F(PollerTest, LooksInPassingCheckPeersWhereNoThreadDoes) {
  PassingPolls passing(poller_);
  static_cast<void>(passing.poll());
  static_cast<void>(passing.poll());
  EXPECT_EQ(work_.checks, 0u);
  passing.check_peers();
  static_cast<void>(passing.poll());
  static_cast<void>(passing.poll());
  EXPECT_EQ(work_.checks, 1u);
}

TEST_F(PollerTest, ALookInPassingPollsOnceUnlessAnotherThreadPolls) {
  PassingPolls passing(poller_);
  EXPECT_FALSE(passing.poll());
  EXPECT_EQ(net_.polls, 1u);
  EXPECT_FALSE(passing.poll());
  EXPECT_EQ(net_.polls, 2u);
  net_.arrived = 1;
  EXPECT_TRUE(passing.poll());
  ASSERT_TRUE(poller_.token().try_acquire());
  EXPECT_FALSE(passing.poll());
  EXPECT_TRUE(poller_.token().wanted());
}

TEST_F(PollerTest, LooksAtAllThatIsAwaitedAreNotSpared) {
  ScriptedTransport costly;
  costly.offers.polls_by_system_call = true;
  costly.offers.wakes_progress = false;
  ASSERT_TRUE(poller_.transports().add(costly));
  PassingPolls passing(poller_);
  costly.arrived = 1;
  EXPECT_TRUE(passing.poll());
  EXPECT_FALSE(passing.poll());
  EXPECT_EQ(costly.polls, 1u);
  EXPECT_FALSE(passing.poll_now());
  EXPECT_EQ(costly.polls, 2u);
}

TEST_F(PollerTest, AQueueIsPolledForUnlessAnotherLookHasPolledSince) {
  PassingPolls passing(poller_);
  std::atomic<uint64_t> one{0}, other{0};
  const auto look = [&passing](std::atomic<uint64_t>& seen) {
    return !passing.spares(seen) && passing.poll(seen, AnyWork{});
  };
  EXPECT_FALSE(look(one));
  const unsigned polls = net_.polls;
  EXPECT_FALSE(look(other));
  EXPECT_EQ(net_.polls, polls);
  EXPECT_FALSE(look(other));
  EXPECT_GT(net_.polls, polls);
}

// It waits for longer than it polls without work, but it always finds some.
TEST_F(PollerTest, AWaitingThreadThatFindsWorkDoesNotSleep) {
  ProcessorLoad load;
  WaitPolicy policy{load};
  policy.use({.spin_ns = 1});
  net_.arms = true;
  const auto next_message = [&] {
    net_.arrived = 1;
    return net_.polls >= 1000;
  };
  net_.arrived = 1;
  EXPECT_TRUE(wait_until(poller_, policy, next_message, now_ns() + 10'000'000'000));
  EXPECT_EQ(poller_.counters.sleeps.get(), 0u);
}

TEST_F(PollerTest, AWaitingThreadPollsUntilTheConditionHolds) {
  ProcessorLoad load;
  WaitPolicy policy{load};
  EXPECT_TRUE(wait_until(
      poller_, policy, [&] { return net_.polls >= 100; }, UINT64_MAX));
  EXPECT_TRUE(poller_.token().try_acquire());
  poller_.token().release();
  EXPECT_FALSE(wait_until(
      poller_, policy, [] { return false; }, now_ns() + 200'000));
}

}  // namespace
}  // namespace lintel::test
