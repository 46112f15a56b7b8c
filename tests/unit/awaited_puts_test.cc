// Records of puts whose acknowledgement is awaited.
#include "core/operations/awaited_puts.h"

#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/objects/network_interface.h"

namespace lintel {
namespace {

class AwaitedPutsTest : public ::testing::Test {
 protected:
  AwaitedPutsTest() {
    EXPECT_TRUE(rings.open(2));
    puts.open(rings);
    handle = descriptor.handle.begin(0);
  }

  AwaitedPuts::Put put(uint64_t length, ptl_ack_req_t requested = PTL_CT_ACK_REQ) {
    return {reference_to(&descriptor), length, requested, &handle, 7};
  }
  uint32_t add(uint64_t length, ptl_ack_req_t requested = PTL_CT_ACK_REQ) {
    uint32_t cookie = 0;
    EXPECT_TRUE(puts.add(put(length, requested), cookie));
    return cookie;
  }
  // Ends the put. False: there was none.
  bool end(uint32_t cookie) {
    AwaitedPuts::Record* const record = puts.find(cookie);
    if (record != nullptr) AwaitedPuts::end(*record);
    return record != nullptr;
  }

  Arena<AwaitedPuts::Ring> rings;
  AwaitedPuts puts;
  MemoryDescriptor descriptor;
  uint64_t handle = 0;
};

TEST_F(AwaitedPutsTest, EachEndsOnce) {
  const uint32_t first = add(8);
  const uint32_t second = add(8);
  EXPECT_NE(first, second);
  EXPECT_NE(first & awaited_put_cookie, 0u);
  EXPECT_EQ(puts.find(second)->resolve(), &descriptor);
  EXPECT_TRUE(end(second));
  EXPECT_TRUE(end(first));
  EXPECT_FALSE(end(first));
  EXPECT_FALSE(end(second));
}

TEST_F(AwaitedPutsTest, ThereIsNoneBeforeTheFirst) {
  EXPECT_EQ(puts.find(awaited_put_cookie), nullptr);
}

TEST_F(AwaitedPutsTest, ARecordHasWhatTheAcknowledgementReports) {
  EventQueueObject queue;
  descriptor.event_queue = &queue;
  for (const ptl_ack_req_t requested : {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) {
    for (const uint64_t length : {uint64_t{0}, uint64_t{8192}, AwaitedPuts::most_bytes}) {
      const AwaitedPuts::Record* const record = puts.find(add(length, requested));
      ASSERT_NE(record, nullptr);
      EXPECT_EQ(record->length(), length);
      EXPECT_EQ(record->requested(), requested);
      EXPECT_EQ(record->user_ptr(), &handle);
      EXPECT_EQ(record->remote_offset(), 7u);
    }
  }
}

TEST_F(AwaitedPutsTest, ATooLongOneHasNoRecord) {
  uint32_t cookie = 0;
  EXPECT_FALSE(puts.add(put(AwaitedPuts::most_bytes + 1), cookie));
}

TEST_F(AwaitedPutsTest, AReleasedDescriptorIsNotNamedAnyMore) {
  const uint32_t cookie = add(8);
  ASSERT_TRUE(descriptor.handle.end(handle));
  const AwaitedPuts::Record* const record = puts.find(cookie);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(&record->descriptor(), &descriptor);
  EXPECT_EQ(record->resolve(), nullptr);
}

TEST_F(AwaitedPutsTest, AFullRingRefusesUntilTheOldestIsTaken) {
  std::vector<uint32_t> cookies;
  for (uint32_t i = 0; i < AwaitedPuts::capacity; ++i) cookies.push_back(add(8));
  uint32_t cookie = 0;
  EXPECT_FALSE(puts.add(put(8), cookie));
  EXPECT_TRUE(end(cookies[1]));
  EXPECT_FALSE(puts.add(put(8), cookie)) << "records are used in order";
  EXPECT_TRUE(end(cookies[0]));
  EXPECT_TRUE(puts.add(put(8), cookie));
}

// A cookie contains 31 of the 32 bits of the number.
TEST_F(AwaitedPutsTest, NumbersWrap) {
  for (const uint32_t limit : {awaited_put_cookie, 0u}) {
    puts.open(rings, limit - 2 * AwaitedPuts::capacity);
    std::deque<uint32_t> cookies;
    for (uint32_t i = 0; i < 4 * AwaitedPuts::capacity; ++i) {
      if (cookies.size() == AwaitedPuts::capacity) {
        uint32_t cookie = 0;
        ASSERT_FALSE(puts.add(put(8), cookie));
        ASSERT_TRUE(end(cookies.front()));
        cookies.pop_front();
      }
      const uint32_t cookie = add(8);
      ASSERT_NE(cookie & awaited_put_cookie, 0u) << "it would name an operation";
      ASSERT_TRUE(puts.take_back(cookie));
      ASSERT_EQ(add(8), cookie);
      cookies.push_back(cookie);
    }
    for (const uint32_t cookie : cookies) {
      EXPECT_TRUE(end(cookie));
      EXPECT_FALSE(end(cookie));
    }
  }
}

TEST_F(AwaitedPutsTest, TheLastOneCanBeTakenBack) {
  const uint32_t cookie = add(8);
  EXPECT_TRUE(puts.take_back(cookie));
  EXPECT_FALSE(end(cookie));
  EXPECT_EQ(add(8), cookie);
  EXPECT_TRUE(end(cookie));
  EXPECT_FALSE(puts.take_back(cookie)) << "it was acknowledged before";
}

TEST_F(AwaitedPutsTest, ThoseThatEndTogetherAreGone) {
  const uint32_t first = add(1);
  const uint32_t second = add(2);
  const uint32_t third = add(3);
  unsigned seen = 0;
  puts.end_if([&](const AwaitedPuts::Record& record) {
    ++seen;
    return record.length() < 3;
  });
  EXPECT_EQ(seen, 3u);
  EXPECT_FALSE(end(first));
  EXPECT_FALSE(end(second));
  EXPECT_TRUE(end(third));
}

// The acknowledgement of a put whose interface has gone must not end a later put.
TEST_F(AwaitedPutsTest, ThoseWithoutInterfaceStayUntilTheyAreAcknowledged) {
  SharedCounter dropped;
  MemoryDescriptor instead;
  instead.dropped = &dropped;
  const uint32_t first = add(8);
  puts.disown_if([&](const AwaitedPuts::Record& record) { return record.resolve() != nullptr; },
                 instead);
  for (uint32_t i = 1; i < AwaitedPuts::capacity; ++i) EXPECT_TRUE(end(add(8)));
  uint32_t cookie = 0;
  EXPECT_FALSE(puts.add(put(8), cookie));
  const AwaitedPuts::Record* const record = puts.find(first);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->resolve(), nullptr);
  EXPECT_EQ(record->descriptor().dropped, &dropped);
  EXPECT_TRUE(end(first));
  EXPECT_TRUE(puts.add(put(8), cookie));
}

TEST_F(AwaitedPutsTest, WithoutARingThereIsNoRoom) {
  AwaitedPuts others[3];
  uint32_t cookie = 0;
  for (AwaitedPuts& other : others) other.open(rings);
  EXPECT_TRUE(others[0].add(put(8), cookie));
  EXPECT_TRUE(others[1].add(put(8), cookie));
  EXPECT_FALSE(others[2].add(put(8), cookie));
  AwaitedPuts unopened;
  EXPECT_FALSE(unopened.add(put(8), cookie));
}

}  // namespace
}  // namespace lintel
