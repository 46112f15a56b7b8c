// The token that one thread at a time holds while it polls.
#include "core/progress/poll_token.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "util/futex.h"

namespace lintel {
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

}  // namespace
}  // namespace lintel
