// The parts that decide when a reliable transport has work: silence of peers, delayed
// acknowledgements, the table and timers of connections, and the quiet link.
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "reliable/connection_table.h"
#include "reliable/connection_timers.h"
#include "reliable/quiet_link.h"
#include "unit/reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr uint64_t second_ns = 1'000'000'000;
constexpr ProcessId self_id{1, 1};
constexpr ProcessId peer_id{2, 2};

void fail(Connection& connection) {
  connection.life.establish(1, 1, true);
  connection.life.fail();
}

TEST(PeerSilence, LastsUntilThePeerIsHeard) {
  PeerSilence silence;
  silence.heard(1000);
  EXPECT_EQ(silence.lasts_ns(1500), 500u);
  EXPECT_EQ(silence.lasts_ns(900), 0u) << "another thread may have looked at the clock later";
  EXPECT_EQ(silence.awaited_ns(1500), 0u) << "no answer is due";
  silence.await(2000);
  silence.await(3000);
  EXPECT_EQ(silence.awaited_ns(5000), 3000u);
  silence.probed(4000);
  EXPECT_EQ(silence.last_sign_ns(), 4000u);
  silence.heard(6000);
  EXPECT_EQ(silence.awaited_ns(7000), 0u);
  EXPECT_EQ(silence.last_sign_ns(), 6000u);
}

TEST(PeerSilence, ReportsOfTheNetworkCountWhenTheyAreManyAndOld) {
  PeerSilence silence;
  for (uint8_t i = 1; i < PeerSilence::least_reports; ++i) silence.report_unreachable(i);
  EXPECT_FALSE(silence.is_unreachable(true, 10 * second_ns));
  silence.report_unreachable(10);
  EXPECT_FALSE(silence.is_unreachable(false, second_ns / 2));
  EXPECT_TRUE(silence.is_unreachable(true, second_ns / 2)) << "the kernel's own word";
  EXPECT_TRUE(silence.is_unreachable(false, 2 * second_ns));
  silence.heard(2 * second_ns);
  EXPECT_FALSE(silence.is_unreachable(true, 10 * second_ns));
}

TEST(PendingAcknowledgement, GoesWithinTheDelayOfTheFirstArrival) {
  PendingAcknowledgement pending;
  EXPECT_TRUE(pending.arrived(100, 1'000'000, 50'000));
  EXPECT_FALSE(pending.arrived(200, 1'020'000, 50'000));
  EXPECT_EQ(pending.deadline_ns(), 1'050'000u);
  EXPECT_EQ(pending.bytes(), 300u);
  EXPECT_EQ(pending.age(1'020'000 + 3 * PendingAcknowledgement::age_unit_ns), 3u);
  EXPECT_EQ(pending.age(second_ns), 255u);
  EXPECT_EQ(pending.age(1'000'000), 0u);
  pending.sent();
  EXPECT_EQ(pending.bytes(), 0u);
  EXPECT_EQ(pending.deadline_ns(), UINT64_MAX);
}

TEST(ConnectionStack, HoldsEachConnectionOnce) {
  Connection a;
  Connection b;
  ConnectionStack<&Connection::touched> stack;
  stack.push(a);
  stack.push(b);
  stack.push(a);
  EXPECT_EQ(&stack.pop(), &b);
  stack.push(b);
  EXPECT_EQ(&stack.pop(), &b);
  EXPECT_EQ(&stack.pop(), &a);
  EXPECT_TRUE(stack.is_empty());
}

TEST(ConnectionTable, FindsByProcessAndByNumber) {
  ConnectionTable table;
  ASSERT_TRUE(table.open(4));
  EXPECT_EQ(table.find(peer_id), nullptr);
  Connection* const connection = table.find_or_make(peer_id);
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(table.find_or_make(peer_id), connection);
  EXPECT_EQ(table.find(peer_id), connection);
  EXPECT_EQ(connection->peer, peer_id);
  EXPECT_EQ(table.by_number(connection->life.number()), connection);
  EXPECT_EQ(table.by_number(connection->life.number() + 1), nullptr) << "never handed out";
  EXPECT_EQ(table.size(), 1u);
}

TEST(ConnectionTable, AFailedConnectionBecomesIdleUnderAnotherNumber) {
  ConnectionTable table;
  ASSERT_TRUE(table.open(4));
  Connection& connection = *table.find_or_make(peer_id);
  const uint64_t number = connection.life.number();
  fail(connection);
  EXPECT_EQ(table.find_or_make(peer_id), &connection);
  EXPECT_TRUE(connection.life.is(ConnectionState::idle));
  EXPECT_NE(connection.life.number(), number);
  EXPECT_EQ(table.by_number(number), &connection) << "the caller compares";
}

TEST(ConnectionTable, AConnectionThatHasEndedGivesItsPlaceToAnother) {
  ConnectionTable table;
  ASSERT_TRUE(table.open(1));
  Connection& connection = *table.find_or_make(peer_id);
  EXPECT_EQ(table.find_or_make(self_id), nullptr);
  fail(connection);
  EXPECT_EQ(table.find_or_make(self_id), nullptr) << "no failure has been reported yet";
  table.note_end(connection);
  EXPECT_EQ(table.find_or_make(self_id), &connection);
  EXPECT_EQ(connection.peer, self_id);
  EXPECT_EQ(table.find(peer_id), nullptr);
  EXPECT_EQ(table.find_or_make(peer_id), nullptr);
}

TEST(ConnectionTable, AConnectionThatIsOpenedAgainKeepsItsPlace) {
  ConnectionTable table;
  ASSERT_TRUE(table.open(1));
  Connection& connection = *table.find_or_make(peer_id);
  fail(connection);
  table.note_end(connection);
  EXPECT_EQ(table.find_or_make(peer_id), &connection);
  EXPECT_EQ(table.find_or_make(self_id), nullptr);
}

class ConnectionTimersTest : public testing::Test {
 protected:
  // The connections that run() passes to its callback. `next` contains the times that it returns.
  std::vector<Connection*> run(std::map<Connection*, uint64_t> next) {
    std::vector<Connection*> seen;
    timers_.run([&](Connection& connection) {
      seen.push_back(&connection);
      const auto found = next.find(&connection);
      if (found != next.end()) return found->second;
      ConnectionTimers::done(connection);
      return ConnectionTimers::never;
    });
    return seen;
  }
  PollerWakeup wakeup_;
  ConnectionTimers timers_{wakeup_};
  Connection a_;
  Connection b_;
};

TEST_F(ConnectionTimersTest, AreDueAtTheEarliestTime) {
  EXPECT_EQ(timers_.earliest_ns(), ConnectionTimers::never);
  timers_.set(a_, 500);
  timers_.set(b_, 300);
  timers_.set(a_, 400);
  EXPECT_FALSE(timers_.is_due(299));
  EXPECT_TRUE(timers_.is_due(300));
  EXPECT_EQ(run({{&a_, 900}, {&b_, 700}}).size(), 2u);
  EXPECT_EQ(timers_.earliest_ns(), 700u);
}

TEST_F(ConnectionTimersTest, AConnectionWithoutTimersIsNotLookedAtUntilItHasOneAgain) {
  timers_.set(a_, 500);
  timers_.set(b_, 500);
  EXPECT_EQ(run({{&b_, 900}}).size(), 2u);
  EXPECT_EQ(run({{&b_, 900}}), std::vector<Connection*>{&b_});
  timers_.set(a_, 600);
  EXPECT_TRUE(timers_.has_new());
  EXPECT_EQ(run({}).size(), 2u);
  EXPECT_TRUE(timers_.is_empty());
}

TEST_F(ConnectionTimersTest, ATimerThatIsSetMeanwhileIsNotLost) {
  timers_.set(a_, 500);
  timers_.run([&](Connection& connection) {
    ConnectionTimers::done(connection);
    timers_.set(b_, 200);
    timers_.set(a_, 600);
    return ConnectionTimers::never;
  });
  EXPECT_EQ(timers_.earliest_ns(), 200u);
  EXPECT_EQ(run({}).size(), 2u);
}

TEST_F(ConnectionTimersTest, WakeThePollerOnlyForAnEarlierTime) {
  timers_.set(a_, 500);
  wakeup_.reset();
  timers_.set(b_, 600);
  EXPECT_FALSE(wakeup_.is_set());
  timers_.set(b_, 400);
  EXPECT_TRUE(wakeup_.is_set());
}

class QuietLinkTest : public testing::Test {
 protected:
  QuietLinkTest() { settings_.clock = virtual_clock; }
  MemoryNetwork network_;
  MemoryLink link_{network_, self_id, 1472, 1 << 16, false};
  ReliableSettings settings_;
  PollerWakeup wakeup_;
  ConnectionTimers timers_{wakeup_};
  QuietLink quiet_{link_, settings_, wakeup_, timers_};
};

TEST_F(QuietLinkTest, WithoutADescriptorItIsAskedLessAndLessOftenButAlways) {
  quiet_.asked(1, virtual_now_ns);
  EXPECT_TRUE(quiet_.is_worth_asking());
  EXPECT_TRUE(quiet_.arm());
  EXPECT_EQ(quiet_.sleep_limit_ns(), QuietLink::shortest_pause_ns);
  virtual_now_ns += second_ns;
  quiet_.asked(0, virtual_now_ns);
  EXPECT_TRUE(quiet_.is_worth_asking());
  EXPECT_EQ(quiet_.sleep_limit_ns(), link_.properties().longest_pause_ns);
}

TEST_F(QuietLinkTest, NobodySleepsBeyondATimer) {
  quiet_.asked(1, virtual_now_ns);
  Connection connection;
  timers_.set(connection, virtual_now_ns + 10'000);
  EXPECT_EQ(quiet_.sleep_limit_ns(), 10'000);
  virtual_now_ns += 20'000;
  EXPECT_EQ(quiet_.sleep_limit_ns(), 0);
}

// A link with a descriptor that becomes readable when a frame arrives.
class EventLink final : public PacketLink {
 public:
  EventLink() { properties_.descriptor = eventfd(0, EFD_NONBLOCK); }
  ~EventLink() override { close(descriptor()); }
  void announce_frame() { EXPECT_EQ(eventfd_write(descriptor(), 1), 0); }

  ResolveStatus resolve(ProcessId, Route&, std::string*) noexcept override {
    return ResolveStatus::unreachable;
  }
  bool adopt(ProcessId, const LinkAddress&, Route&) noexcept override { return false; }
  unsigned send(const OutboundFrame*, unsigned) noexcept override { return 0; }
  unsigned receive(InboundFrame*, unsigned) noexcept override { return 0; }
  bool arm() noexcept override { return true; }
  LinkCounters counters() const noexcept override { return {}; }
  std::string describe() const override { return {}; }
};

class WatchedLinkTest : public testing::Test {
 protected:
  WatchedLinkTest() {
    settings_.clock = virtual_clock;
    quiet_.watch(doorbell_);
    quiet_.asked(1, virtual_now_ns);
  }
  void ask_without_frames_after(uint64_t ns) {
    virtual_now_ns += ns;
    EXPECT_TRUE(quiet_.is_worth_asking());
    quiet_.asked(0, virtual_now_ns);
  }
  EventLink link_;
  Doorbell doorbell_;
  ReliableSettings settings_;
  PollerWakeup wakeup_;
  ConnectionTimers timers_{wakeup_};
  QuietLink quiet_{link_, settings_, wakeup_, timers_};
};

TEST_F(WatchedLinkTest, IsNotAskedWhenNothingHasComeForAWhileUntilSomethingDoes) {
  ask_without_frames_after(settings_.quiet_after_ns / 2);
  EXPECT_TRUE(quiet_.is_worth_asking());
  ask_without_frames_after(settings_.quiet_after_ns);
  EXPECT_FALSE(quiet_.is_worth_asking());
  EXPECT_TRUE(quiet_.arm()) << "a thread may sleep";
  EXPECT_LT(quiet_.sleep_limit_ns(), 0) << "without a time limit";
  link_.announce_frame();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!quiet_.is_worth_asking() && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_TRUE(quiet_.is_worth_asking());
}

TEST_F(WatchedLinkTest, IsAskedWhileAConnectionHasATimer) {
  Connection connection;
  timers_.set(connection, virtual_now_ns + second_ns);
  timers_.for_each([](Connection&) {});
  ask_without_frames_after(2 * settings_.quiet_after_ns);
  EXPECT_TRUE(quiet_.is_worth_asking());
}

TEST_F(WatchedLinkTest, IsAskedAgainWhenATimerIsSet) {
  ask_without_frames_after(2 * settings_.quiet_after_ns);
  EXPECT_FALSE(quiet_.is_worth_asking());
  Connection connection;
  timers_.set(connection, virtual_now_ns + second_ns);
  EXPECT_FALSE(quiet_.arm());
  EXPECT_TRUE(quiet_.is_worth_asking());
}

}  // namespace
}  // namespace lintel::test
