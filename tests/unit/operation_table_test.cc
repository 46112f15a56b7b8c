#include "core/operations/operation_table.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "connected_peer.h"

namespace lintel::test {
namespace {

class OperationTableTest : public ::testing::Test {
 protected:
  OperationTableTest() { EXPECT_TRUE(table_.open()); }
  Operation& start(Peer& peer) {
    Operation& operation = *table_.allocate(peer);
    operation.peer.store(&peer);
    peer.count_as_started();
    return operation;
  }
  OperationTable table_;
  ConnectedPeer one_;
  ConnectedPeer other_;
};

TEST_F(OperationTableTest, ACookieNamesItsOperationUntilThatEnds) {
  Operation& operation = start(one_.peer);
  const uint32_t cookie = table_.cookie_of(operation);
  EXPECT_EQ(table_.find(cookie), &operation);
  table_.end(operation);
  EXPECT_EQ(table_.find(cookie), nullptr);
  EXPECT_FALSE(one_.peer.has_outstanding());
}

TEST_F(OperationTableTest, ACookieOfThePastDoesNotNameTheNextUserOfItsSlot) {
  Operation& operation = start(one_.peer);
  const uint32_t cookie = table_.cookie_of(operation);
  table_.end(operation);
  table_.return_ended(one_.peer);
  EXPECT_EQ(&start(one_.peer), &operation);
  EXPECT_EQ(table_.find(cookie), nullptr);
  EXPECT_EQ(table_.find(table_.cookie_of(operation)), &operation);
}

TEST_F(OperationTableTest, GenerationsStartAgainAfterTheLast) {
  Operation& operation = start(one_.peer);
  operation.generation = 0x7f;
  const uint32_t last = table_.cookie_of(operation);
  EXPECT_EQ(last & awaited_put_cookie, 0u);
  EXPECT_EQ(table_.find(last), &operation);
  table_.end(operation);
  table_.return_ended(one_.peer);
  EXPECT_EQ(&start(one_.peer), &operation);
  EXPECT_EQ(operation.generation, 0);
  EXPECT_EQ(table_.find(last), nullptr);
  EXPECT_EQ(table_.find(table_.cookie_of(operation)), &operation);
}

TEST_F(OperationTableTest, ACookieOfAnIndexThatWasNeverUsedNamesNothing) {
  EXPECT_EQ(table_.find(0), nullptr);
  EXPECT_EQ(table_.find(UINT32_MAX), nullptr);
}

TEST_F(OperationTableTest, CookiesLeaveTheUppermostBitToAwaitedPuts) {
  for (unsigned use = 0; use < 300; ++use) {
    Operation& operation = start(one_.peer);
    EXPECT_EQ(table_.cookie_of(operation) & awaited_put_cookie, 0u);
    table_.end(operation);
    table_.return_ended(one_.peer);
  }
}

TEST_F(OperationTableTest, EndedOperationsGoBackToTheirPeer) {
  Operation& first = start(one_.peer);
  Operation& second = start(one_.peer);
  table_.end(first);
  table_.end(second);
  EXPECT_NE(&start(one_.peer), &first) << "not before the end of the burst";
  table_.return_ended(one_.peer);
  EXPECT_NE(&start(other_.peer), &first);
  EXPECT_EQ(&start(one_.peer), &second);
  EXPECT_EQ(&start(one_.peer), &first);
}

TEST_F(OperationTableTest, WhatWasNeverSentServesAnyPeer) {
  Operation& operation = start(one_.peer);
  table_.discard(operation);
  EXPECT_EQ(&start(other_.peer), &operation);
}

TEST_F(OperationTableTest, ForEachVisitsThoseThatHaveNotEnded) {
  Operation& first = start(one_.peer);
  Operation& second = start(other_.peer);
  table_.end(first);
  std::vector<Operation*> visited;
  table_.for_each([&](Operation& operation) { visited.push_back(&operation); });
  EXPECT_EQ(visited, std::vector<Operation*>{&second});
}

TEST_F(OperationTableTest, TheCopyOfAPayloadKeepsItsBytes) {
  char buffer[] = "before";
  MemoryDescriptor descriptor;
  ASSERT_TRUE(descriptor.region.open(buffer, sizeof buffer, false, false));
  Operation& operation = start(one_.peer);
  operation.copied = false;
  EXPECT_EQ(table_.copy_of(operation), nullptr);
  operation.put = {&descriptor, 0};
  operation.put_offset = 0;
  operation.header = {};
  operation.header.set_length(sizeof buffer);
  table_.copy_payload(operation);
  buffer[0] = 'x';
  EXPECT_STREQ(reinterpret_cast<const char*>(table_.copy_of(operation)), "before");
}

// One thread starts operations; another one ends them and returns their slots.
TEST_F(OperationTableTest, SlotsPassBetweenSenderAndPoller) {
  constexpr unsigned rounds = 20'000;
  std::atomic<Operation*> handed{nullptr};
  std::thread poller([&] {
    for (unsigned i = 0; i < rounds; ++i) {
      Operation* operation;
      while ((operation = handed.exchange(nullptr)) == nullptr) std::this_thread::yield();
      table_.end(*operation);
      if (i % 7 == 0) table_.return_ended(one_.peer);
    }
  });
  for (unsigned i = 0; i < rounds; ++i) {
    Operation& operation = start(one_.peer);
    handed = &operation;
    while (handed.load() != nullptr) std::this_thread::yield();
  }
  poller.join();
  EXPECT_FALSE(one_.peer.has_outstanding());
}

}  // namespace
}  // namespace lintel::test
