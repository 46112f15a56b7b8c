// What a pause of the process leaves out of the silence of its peers.
#include <gtest/gtest.h>

#include "reliable/peer_silence.h"

namespace lintel {
namespace {

constexpr uint64_t second = 1'000'000'000;
constexpr uint64_t timeout_ns = 10 * second;
constexpr uint64_t counted_ns = timeout_ns / 16;

TEST(OwnPausesTest, ALittleLatenessIsNone) {
  const OwnPauses pauses(timeout_ns);
  EXPECT_FALSE(pauses.is_pause(counted_ns));
  EXPECT_TRUE(pauses.is_pause(counted_ns + 1));
  EXPECT_FALSE(OwnPauses(second / 10).is_pause(second / 10)) << "a busy machine is no pause";
}

TEST(OwnPausesTest, AfterOnePeersGetTheFullTimeAgain) {
  OwnPauses pauses(timeout_ns);
  const OwnPauses::Extension extension = pauses.end(60 * second, 100 * second);
  EXPECT_TRUE(extension.full_time);
  EXPECT_EQ(extension.moved(35 * second, 100 * second), 100 * second);
}

// A process that polls for a second, then computes for a minute, and so on.
TEST(OwnPausesTest, ManyOfThemDoNotMakeADeadPeerLiveForEver) {
  OwnPauses pauses(timeout_ns);
  uint64_t now_ns = 100 * second;
  static_cast<void>(pauses.end(60 * second, now_ns));
  const uint64_t first_ns = now_ns;
  uint64_t awaited_since_ns = now_ns;
  unsigned rounds = 0;
  for (; now_ns - awaited_since_ns <= timeout_ns && rounds < 100; ++rounds) {
    now_ns += 61 * second;
    const OwnPauses::Extension extension = pauses.end(60 * second, now_ns);
    awaited_since_ns = extension.moved(awaited_since_ns, now_ns);
    EXPECT_LE(awaited_since_ns, now_ns);
    EXPECT_FALSE(extension.full_time) << rounds;
  }
  EXPECT_EQ(rounds, timeout_ns / (second + counted_ns) + 1) << (now_ns - first_ns) / second;
}

TEST(OwnPausesTest, AfterTheTimeoutInBetweenThereIsAFullOneAgain) {
  OwnPauses pauses(timeout_ns);
  static_cast<void>(pauses.end(60 * second, 100 * second));
  EXPECT_FALSE(pauses.end(20 * second, 125 * second).full_time) << "attentive for 5 s";
  EXPECT_FALSE(pauses.end(20 * second, 149 * second).full_time) << "for 9 s";
  EXPECT_TRUE(pauses.end(20 * second, 170 * second).full_time) << "for 10 s";
}

}  // namespace
}  // namespace lintel
