// Refusals that the run-time library asks for.
#include "util/awaited_process.h"

#include <gtest/gtest.h>

namespace lintel {
namespace {

TEST(RefusalsTest, TheLastFewAreKnown) {
  EXPECT_EQ(refusal_of(900, 1), nullptr);
  const char* const why = "another key";
  note_refusal(900, 1, why);
  note_refusal(901, 1, "another user");
  EXPECT_EQ(refusal_of(900, 1), why);
  EXPECT_EQ(refusal_of(900, 2), nullptr);
  // One that repeats takes no second place.
  for (int i = 0; i < 100; ++i) note_refusal(900, 1, why);
  EXPECT_STREQ(refusal_of(901, 1), "another user");
  for (uint32_t pid = 10; pid < 40; ++pid) note_refusal(900, pid, why);
  EXPECT_EQ(refusal_of(900, 1), nullptr);
  EXPECT_EQ(refusal_of(900, 39), why);
}

}  // namespace
}  // namespace lintel
