// Streams of long frames: what the receiver does during a burst.
#include <gtest/gtest.h>

#include "reliable_test_support.h"

namespace lintel::test {
namespace {

class ReliableStream : public ConnectedPair {
 protected:
  ReliableStream() : ConnectedPair(false) {}
};

TEST_F(ReliableStream, PartsOfABurstAreAcknowledgedBeforeItsEnd) {
  constexpr unsigned messages = 17;
  for (unsigned i = 0; i < 200; ++i)  // the window grows
    send_surely(first_, link_, all_, numbered_put(i), numbered_bytes(i, 8000));
  run_for(all_, 5'000'000);
  second_.messages.clear();
  for (unsigned i = 0; i < messages; ++i)
    ASSERT_EQ(first_.send(link_, numbered_put(i), numbered_bytes(i, 8000)), SendStatus::sent);
  const uint64_t before = second_.transport().counters().acks_sent;
  ASSERT_TRUE(run_until(all_, [&] { return !second_.messages.empty(); }));
  EXPECT_EQ(second_.messages.size(), messages) << "all in one burst";
  EXPECT_GE(second_.transport().counters().acks_sent - before, 2u);
}

}  // namespace
}  // namespace lintel::test
