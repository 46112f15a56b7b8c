// The token that one thread at a time holds while it polls.
#include "core/progress/poll_token.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "support/deadlines.h"
#include "util/asymmetric_fence.h"
#include "util/doorbell.h"
#include "util/futex.h"

namespace lintel::test {
namespace {

TEST(PollToken, OneHolder) {
  PollToken token;
  EXPECT_TRUE(token.try_acquire());
  EXPECT_FALSE(token.try_acquire());
  token.release();
  EXPECT_TRUE(token.try_acquire());
}

TEST(PollToken, AnExclusiveHolderIsAnnouncedAndThenAlone) {
  PollToken token;
  WaitGate gate;
  ASSERT_TRUE(token.try_acquire());
  std::atomic<bool> alone{false};
  std::thread other([&] {
    const PollToken::Exclusive hold(token, gate);
    alone = true;
  });
  while (!token.exclusively_wanted()) std::this_thread::yield();
  EXPECT_FALSE(alone);
  token.release();
  other.join();
  EXPECT_TRUE(alone);
  EXPECT_FALSE(token.exclusively_wanted());
  EXPECT_TRUE(token.try_acquire());
}

TEST(PollToken, IsWantedByThoseWhoWaitAndInPassing) {
  PollToken token;
  token.want();
  token.want();
  token.want_no_more();
  EXPECT_TRUE(token.wanted());
  token.want_no_more();
  EXPECT_FALSE(token.wanted());
  token.want_in_passing();
  EXPECT_TRUE(token.wanted());
  token.forget_passing_wants();
  EXPECT_FALSE(token.wanted());
}

TEST(PollToken, AHandoffEndsTheWaitForIt) {
  PollToken token;
  const uint32_t seen = token.handoffs();
  std::thread leaver([&] { token.hand_off(); });
  token.await_handoff(seen, futex_no_timeout);
  leaver.join();
  EXPECT_NE(token.handoffs(), seen);
  token.await_handoff(seen, futex_no_timeout);  // already handed off: returns at once
}

TEST(PollToken, TheEndOfARoundIsAwaited) {
  PollToken token;
  token.finish_round();  // no round is running
  token.begin_round();
  std::atomic<bool> ending{false};
  std::thread poller([&] {
    ending = true;
    token.end_round();
  });
  token.finish_round();
  EXPECT_TRUE(ending);
  EXPECT_EQ(token.rounds(), 2u);
  poller.join();
}

// Announcing a sleep and ringing the doorbell: no message is missed by a sleeping thread.

// If a sleeping thread misses a message, it sleeps until the deadline.
TEST(AsymmetricFenceTest, NoMessageIsSleptThrough) {
  register_asymmetric_fence();
  constexpr uint32_t messages = 40'000;
  Doorbell doorbell;
  alignas(64) std::atomic<uint32_t> sent{0};
  alignas(64) std::atomic<uint32_t> received{0};
  uint32_t slept_through = 0;
  std::thread sleeper([&] {
    const int64_t deadline_ns = std::chrono::nanoseconds(wait_deadline).count();
    for (uint32_t seen_messages = 0; seen_messages < messages;) {
      const uint32_t seen = doorbell.announce_sleep();
      if (sent.load(std::memory_order_relaxed) == seen_messages) {
        doorbell.sleep(seen, deadline_ns);
        if (sent.load() != seen_messages && doorbell.rings.load() == seen) ++slept_through;
      }
      seen_messages = sent.load();
      received.store(seen_messages);
    }
  });
  for (uint32_t i = 1; i <= messages; ++i) {
    sent.store(i, std::memory_order_relaxed);
    doorbell.ring_if_sleeping();
    // For every second message, the receiver is about to sleep, or asleep, when the next message
    // comes.
    if (i % 2 == 0)
      while (received.load() != i) {
      }
  }
  sleeper.join();
  EXPECT_EQ(slept_through, 0u);
}

}  // namespace
}  // namespace lintel::test
