// Assertions: what holds passes; what does not ends the process where assertions are built in, and
// is never evaluated elsewhere.
#include "util/assert.h"

#include <gtest/gtest.h>

namespace {

TEST(AssertTest, AConditionThatHoldsPasses) {
  const int frames = 3;
  LINTEL_ASSERT(frames == 3);
}

#ifdef LINTEL_ASSERTIONS

TEST(AssertDeathTest, AFailedAssertionNamesConditionAndPlace) {
  const int frames = 3;
  EXPECT_DEATH(LINTEL_ASSERT(frames < 3),
               "assert_test.cc:[0-9]+: the assertion 'frames < 3' failed");
}

#else

TEST(AssertTest, WithoutAssertionsTheConditionIsNotEvaluated) {
  int evaluations = 0;
  LINTEL_ASSERT(++evaluations < 0);
  EXPECT_EQ(evaluations, 0);
}

#endif

}  // namespace
