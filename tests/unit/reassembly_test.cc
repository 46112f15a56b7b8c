// Assembly of messages from frames: lengths, shortage of buffers, order of progress.
#include "reliable/reassembly.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace lintel::test {
namespace {

constexpr uint32_t longest = 4000;

class ReassemblyTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reassembly_.open(longest, 64 * 1024)); }
  bool append(HalfMessage& half, uint32_t length, uint64_t now_ns) {
    const std::vector<std::byte> bytes(length, std::byte{7});
    return reassembly_.append(half, bytes.data(), length, now_ns);
  }
  Reassembly reassembly_;
};

TEST_F(ReassemblyTest, AMessageIsFinishedWhenAllOfItHasCome) {
  HalfMessage half;
  ASSERT_TRUE(reassembly_.begin(half, 300, 1));
  EXPECT_TRUE(append(half, 200, 2));
  EXPECT_EQ(reassembly_.finish(half), nullptr);
  EXPECT_TRUE(append(half, 100, 3));
  FrameBuffer* const whole = reassembly_.finish(half);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->length, 300u);
  EXPECT_EQ(std::vector<std::byte>(whole->data(), whole->data() + 300),
            std::vector<std::byte>(300, std::byte{7}));
  EXPECT_EQ(half.buffer, nullptr);
  EXPECT_EQ(reassembly_.oldest(), nullptr);
  reassembly_.pool().release(whole);
  EXPECT_EQ(reassembly_.used_bytes(), 0u);
}

TEST_F(ReassemblyTest, MoreBytesThanAnnouncedAreRefused) {
  HalfMessage half;
  ASSERT_TRUE(reassembly_.begin(half, 300, 1));
  EXPECT_TRUE(append(half, 299, 1));
  EXPECT_FALSE(append(half, 2, 1));
}

TEST_F(ReassemblyTest, TheOldestIsTheOneWithoutProgressForLongest) {
  HalfMessage a, b, c;
  for (HalfMessage* half : {&a, &b, &c}) ASSERT_TRUE(reassembly_.begin(*half, longest, 1));
  EXPECT_EQ(reassembly_.oldest(), &a);
  EXPECT_TRUE(append(a, 10, 2));
  EXPECT_EQ(reassembly_.oldest(), &b);
  reassembly_.drop(b);
  EXPECT_EQ(reassembly_.oldest(), &c);
  reassembly_.drop(c);
  EXPECT_EQ(reassembly_.oldest(), &a);
  EXPECT_EQ(a.progress_ns, 2u);
  reassembly_.drop(a);
  reassembly_.drop(a);
  EXPECT_EQ(reassembly_.oldest(), nullptr);
  EXPECT_EQ(reassembly_.used_bytes(), 0u);
}

TEST_F(ReassemblyTest, TheBufferOfAShortMessageServesALongOne) {
  std::vector<HalfMessage> halves(100);
  size_t begun = 0;
  while (reassembly_.begin(halves[begun], 300, 1)) ++begun;
  EXPECT_GE(begun, 10u);
  EXPECT_LE(begun, 64u * 1024 / longest);
  reassembly_.drop(*reassembly_.oldest());
  EXPECT_TRUE(reassembly_.begin(halves[begun], longest, 1));
}

}  // namespace
}  // namespace lintel::test
