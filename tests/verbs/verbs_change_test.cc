// The change from datagrams to a queue pair, interrupted after each of its steps. No message waits
// for an answer. Messages that overtake the last datagram wait for their turn.
#include "verbs_test_support.h"

namespace lintel::test {
namespace {

class VerbsChangeTest : public test::VerbsTest {
 protected:
  // After this number of steps, the queue pair carries all messages.
  static constexpr unsigned enough_steps = 24;

  // Connects them; neither has requested a queue pair yet.
  static void meet(VerbsProcess& one, VerbsProcess& other) {
    Link* const link = one.connect(other);
    ASSERT_TRUE(run_until({&one, &other}, [&] {
      static_cast<void>(one.send(*link, 0, {}, flag_unreliable));
      return !other.arrived.empty();
    }));
    step(one, other, 2);
    other.arrived.clear();
  }
  static void step(VerbsProcess& one, VerbsProcess& other, unsigned steps) {
    for (unsigned i = 0; i < steps; ++i) (i % 2 == 0 ? one : other).poll();
  }
  static bool has_queue_pairs() {
    const auto numbers = fake_verbs::queue_pairs(IBV_QPT_RC);
    return numbers.size() == 2 && fake_verbs::state_of(numbers[0]) == IBV_QPS_RTS &&
           fake_verbs::state_of(numbers[1]) == IBV_QPS_RTS;
  }
};

// If a process makes no further calls (PTL_PROGRESS=caller), all that it has sent still arrives.
TEST_F(VerbsChangeTest, ItsEndsMayFallSilentAtAnyStep) {
  for (const bool offers : {true, false}) {
    bool changed = false;
    for (unsigned steps = 0; steps < enough_steps; ++steps) {
      SCOPED_TRACE(std::to_string(steps) +
                   (offers ? " steps, the one that offers" : " steps, the other one"));
      start();
      VerbsProcess one, other;
      meet(one, other);
      Stream there(one, other);
      Stream back(other, one);
      ASSERT_TRUE(there.send_one());
      step(one, other, steps);
      Stream& last = offers ? there : back;
      const uint64_t goal = last.sent() + 1;
      ASSERT_TRUE(last.send_one());
      ASSERT_TRUE(run_until({offers ? &other : &one}, [&] {
        last.check();
        return last.received() == goal;
      }));
      changed = has_queue_pairs();
    }
    EXPECT_TRUE(changed);
  }
}

// The last message of the peer arrives after the completions of this round were polled, and before
// the datagram that closes the connection.
TEST_F(VerbsChangeTest, TheLastMessageOfAPeerThatLeavesIsHandedUp) {
  VerbsProcess from, to;
  Stream stream(from, to);
  ASSERT_TRUE(run_until({&from, &to}, [&] {
    stream.send_one();
    stream.check();
    return has_queue_pairs();
  }));
  ASSERT_TRUE(stream.pass(300));
  ASSERT_TRUE(stream.send_one());
  to.at_next_message = [&] {
    EXPECT_TRUE(stream.send_one());
    from.transport.reset();
  };
  ASSERT_TRUE(run_until({&to}, [&] { return to.failed != 0; }));
  stream.check();
  EXPECT_EQ(stream.received(), stream.sent());
}

enum class Fate : uint8_t { none, first_fails, second_fails, sender_dies };
constexpr const char* fate_names[] = {"None", "FirstQueuePairFails", "SecondQueuePairFails",
                                      "SenderDies"};

class VerbsOvertakingTest : public VerbsChangeTest, public testing::WithParamInterface<Fate> {};

INSTANTIATE_TEST_SUITE_P(Fates, VerbsOvertakingTest,
                         testing::Values(Fate::none, Fate::first_fails, Fate::second_fails,
                                         Fate::sender_dies),
                         [](const testing::TestParamInfo<Fate>& tested) {
                           return std::string(fate_names[static_cast<unsigned>(tested.param)]);
                         });

// The last datagram is lost repeatedly, and more messages than there are buffers overtake it. Then
// the queue pair fails.
TEST_P(VerbsOvertakingTest, MessagesThatOvertakeTheLastDatagramAreKept) {
  unsigned times_kept = 0;
  for (unsigned steps = 0; steps < enough_steps; ++steps) {
    SCOPED_TRACE(std::to_string(steps) + " steps");
    start();
    VerbsProcess from;
    const uint32_t datagrams_of_sender = fake_verbs::queue_pairs(IBV_QPT_UD).at(0);
    VerbsProcess to;
    meet(from, to);
    Stream stream(from, to);
    ASSERT_TRUE(stream.send_one());
    step(from, to, steps);
    stream.check();
    const uint64_t before = stream.received();
    fake_verbs::lose_datagrams(
        [=](const fake_verbs::Datagram& datagram) { return datagram.from == datagrams_of_sender; });
    for (int i = 0; i < 200; ++i) {
      from.poll();
      stream.send_one();
      to.poll();
      stream.check();
    }
    const bool kept = fake_verbs::waiting_for_receivers() != 0 && stream.received() == before;
    if (kept) ++times_kept;  // all receive buffers are occupied
    const auto numbers = fake_verbs::queue_pairs(IBV_QPT_RC);
    if (kept && GetParam() == Fate::sender_dies) {
      Stream back(to, from);
      ASSERT_TRUE(back.send_one());
      from.transport.reset();
      ASSERT_TRUE(run_until({&to}, [&] { return to.failed != 0; }));
      EXPECT_TRUE(to.arrived.empty());
      fake_verbs::lose_datagrams({});
      break;
    }
    if (GetParam() == Fate::first_fails && !numbers.empty())
      fake_verbs::raise_queue_pair_event(numbers.front(), IBV_EVENT_QP_FATAL);
    if (GetParam() == Fate::second_fails && !numbers.empty())
      fake_verbs::raise_queue_pair_event(numbers.back(), IBV_EVENT_QP_FATAL);
    fake_verbs::lose_datagrams({});
    ASSERT_TRUE(stream.pass(300));
    EXPECT_EQ(from.failed + to.failed, 0u);
  }
  EXPECT_GT(times_kept, 0u);
}

}  // namespace
}  // namespace lintel::test
