// Records of puts whose acknowledgement only counts.
#include "core/operations/counted_puts.h"

#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/objects/network_interface.h"

namespace lintel {
namespace {

class CountedPutsTest : public ::testing::Test {
 protected:
  CountedPutsTest() {
    EXPECT_TRUE(rings.open(2));
    puts.open(rings);
    handle = descriptor.handle.begin(0);
  }

  Request request(uint64_t length, ptl_ack_req_t ack = PTL_CT_ACK_REQ) {
    Request request;
    request.header = {};
    request.header.set_length(length);
    request.header.modes = static_cast<uint8_t>(MessageHeader::modes_of(PTL_INT8_T, ack));
    request.put = reference_to(&descriptor);
    request.get = {};
    request.operand_bytes = 0;
    return request;
  }

  uint32_t add(uint64_t length, ptl_ack_req_t ack = PTL_CT_ACK_REQ) {
    uint32_t cookie = 0;
    EXPECT_TRUE(puts.add(request(length, ack), cookie));
    return cookie;
  }

  Arena<CountedPuts::Ring> rings;
  CountedPuts puts;
  MemoryDescriptor descriptor;
  uint64_t handle = 0;
};

TEST_F(CountedPutsTest, EachIsTakenOnce) {
  const uint32_t first = add(8);
  const uint32_t second = add(8);
  EXPECT_NE(first, second);
  EXPECT_NE(first & counted_put_cookie, 0u);
  EXPECT_EQ(puts.take(second).resolve(), &descriptor);
  EXPECT_EQ(puts.take(first).resolve(), &descriptor);
  EXPECT_EQ(puts.take(first).descriptor, nullptr);
  EXPECT_EQ(puts.take(second).descriptor, nullptr);
}

TEST_F(CountedPutsTest, NothingIsTakenBeforeTheFirst) {
  EXPECT_EQ(puts.take(counted_put_cookie).descriptor, nullptr);
}

TEST_F(CountedPutsTest, OneOrTheBytesThatTheTargetTook) {
  EXPECT_EQ(puts.take(add(100)).amount(100), 1u);
  descriptor.options = PTL_MD_EVENT_CT_BYTES;
  EXPECT_EQ(puts.take(add(100)).amount(60), 60u);
  EXPECT_EQ(puts.take(add(100)).amount(UINT32_MAX), 100u);
  // Spec 3.15.1: an operation completed acknowledgement does not contain the number of bytes.
  EXPECT_EQ(puts.take(add(100, PTL_OC_ACK_REQ)).amount(60), 1u);
}

TEST_F(CountedPutsTest, AReleasedDescriptorIsNotNamedAnyMore) {
  const uint32_t cookie = add(8);
  ASSERT_TRUE(descriptor.handle.end(handle));
  const CountedPuts::Put put = puts.take(cookie);
  EXPECT_NE(put.descriptor, nullptr);
  EXPECT_EQ(put.resolve(), nullptr);
}

TEST_F(CountedPutsTest, AFullRingRefusesUntilTheOldestIsTaken) {
  std::vector<uint32_t> cookies;
  for (uint32_t i = 0; i < CountedPuts::capacity; ++i) cookies.push_back(add(8));
  uint32_t cookie = 0;
  EXPECT_FALSE(puts.add(request(8), cookie));
  EXPECT_NE(puts.take(cookies[1]).descriptor, nullptr);
  EXPECT_FALSE(puts.add(request(8), cookie)) << "records are used in order";
  EXPECT_NE(puts.take(cookies[0]).descriptor, nullptr);
  EXPECT_TRUE(puts.add(request(8), cookie));
}

// A cookie contains 31 of the 32 bits of the number.
TEST_F(CountedPutsTest, NumbersWrap) {
  for (const uint32_t end : {counted_put_cookie, 0u}) {
    puts.open(rings, end - 2 * CountedPuts::capacity);
    std::deque<uint32_t> cookies;
    for (uint32_t i = 0; i < 4 * CountedPuts::capacity; ++i) {
      if (cookies.size() == CountedPuts::capacity) {
        uint32_t cookie = 0;
        ASSERT_FALSE(puts.add(request(8), cookie));
        ASSERT_EQ(puts.take(cookies.front()).resolve(), &descriptor);
        cookies.pop_front();
      }
      const uint32_t cookie = add(8);
      ASSERT_NE(cookie & counted_put_cookie, 0u) << "it would name an operation";
      ASSERT_TRUE(puts.take_back(cookie));
      ASSERT_EQ(add(8), cookie);
      cookies.push_back(cookie);
    }
    for (const uint32_t cookie : cookies) {
      EXPECT_EQ(puts.take(cookie).resolve(), &descriptor);
      EXPECT_EQ(puts.take(cookie).descriptor, nullptr);
    }
  }
}

TEST_F(CountedPutsTest, TheLastOneCanBeTakenBack) {
  const uint32_t cookie = add(8);
  EXPECT_TRUE(puts.take_back(cookie));
  EXPECT_EQ(puts.take(cookie).descriptor, nullptr);
  EXPECT_EQ(add(8), cookie);
  EXPECT_NE(puts.take(cookie).descriptor, nullptr);
  EXPECT_FALSE(puts.take_back(cookie)) << "it was acknowledged before";
}

TEST_F(CountedPutsTest, ThoseThatEndTogetherAreGone) {
  const uint32_t first = add(1);
  const uint32_t second = add(2);
  descriptor.options = PTL_MD_EVENT_CT_BYTES;
  const uint32_t third = add(3);
  unsigned seen = 0;
  puts.end_if([&](const CountedPuts::Put& put) {
    ++seen;
    return put.bytes == CountedPuts::count_one;
  });
  EXPECT_EQ(seen, 3u);
  EXPECT_EQ(puts.take(first).descriptor, nullptr);
  EXPECT_EQ(puts.take(second).descriptor, nullptr);
  EXPECT_NE(puts.take(third).descriptor, nullptr);
}

TEST_F(CountedPutsTest, WithoutARingThereIsNoRoom) {
  CountedPuts others[3];
  uint32_t cookie = 0;
  for (CountedPuts& other : others) other.open(rings);
  EXPECT_TRUE(others[0].add(request(8), cookie));
  EXPECT_TRUE(others[1].add(request(8), cookie));
  EXPECT_FALSE(others[2].add(request(8), cookie));
  CountedPuts unopened;
  EXPECT_FALSE(unopened.add(request(8), cookie));
}

}  // namespace
}  // namespace lintel
