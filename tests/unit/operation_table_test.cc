#include "core/operations/operation_table.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "connected_peer.h"
#include "core/operations/peer.h"
#include "core/operations/transfer_table.h"

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

class TransferTableTest : public ::testing::Test {
 protected:
  TransferTableTest() { EXPECT_TRUE(table_.open()); }
  Transfer& start(ConnectedPeer& to, uint32_t release_mark = 0) {
    Transfer& transfer = *table_.allocate(to.peer);
    transfer.peer.store(&to.peer);
    transfer.release.mark = release_mark;
    transfer.place.interface = nullptr;
    ++to.peer.long_messages.transfers;
    return transfer;
  }
  // The pointer is only compared.
  static NetworkInterface* some_interface() {
    static char place;
    return reinterpret_cast<NetworkInterface*>(&place);
  }
  ConnectedPeer one_;
  ConnectedPeer other_;
  PollFlag work_due_;
  TransferTable table_{work_due_};
};

TEST_F(TransferTableTest, ACookieNamesItsTransferUntilThatIsReleased) {
  Transfer& transfer = start(one_);
  const uint32_t cookie = table_.cookie_of(transfer);
  EXPECT_EQ(table_.find(cookie), &transfer);
  table_.release(transfer);
  EXPECT_EQ(table_.find(cookie), nullptr);
  EXPECT_EQ(one_.peer.long_messages.transfers, 0u);
  EXPECT_EQ(&start(one_), &transfer);
  EXPECT_EQ(table_.find(cookie), nullptr);
}

// A place is reused with each of its 256 generations before a cookie is repeated.
TEST_F(TransferTableTest, GenerationsWrap) {
  std::vector<uint32_t> cookies;
  for (unsigned i = 0; i < 3 * 256; ++i) {
    Transfer& transfer = start(one_);
    const uint32_t cookie = table_.cookie_of(transfer);
    for (const uint32_t old : cookies) ASSERT_NE(table_.find(old), &transfer) << i;
    ASSERT_EQ(table_.find(cookie), &transfer) << i;
    cookies.push_back(cookie);
    if (cookies.size() == 256) cookies.erase(cookies.begin());
    table_.release(transfer);
  }
  Transfer& other = start(other_);
  EXPECT_EQ(table_.find(table_.cookie_of(other)), &other);
}

TEST_F(TransferTableTest, ActiveOnesAreTakenAtOnce) {
  Transfer& first = start(one_);
  Transfer& second = start(other_);
  EXPECT_FALSE(table_.has_active());
  table_.activate(first);
  table_.activate(second);
  EXPECT_TRUE(first.active);
  EXPECT_EQ(table_.take_active(), &second);
  EXPECT_EQ(second.next_active, &first);
  EXPECT_EQ(first.next_active, nullptr);
  EXPECT_FALSE(table_.has_active());
  EXPECT_FALSE(first.active);
}

TEST_F(TransferTableTest, MemoryIsReleasedInTheOrderSent) {
  Transfer& first = start(one_, 1);
  Transfer& second = start(one_, 2);
  Transfer& third = start(other_, 1);
  table_.await_release(first);
  table_.await_release(second);
  table_.await_release(third);
  EXPECT_TRUE(table_.awaits_release());
  EXPECT_FALSE(table_.anything_released());
  EXPECT_EQ(table_.take_released(), nullptr);

  one_.transport.released_mark = 1;
  EXPECT_TRUE(table_.anything_released());
  EXPECT_EQ(table_.take_released(), &first);
  EXPECT_EQ(table_.take_released(), nullptr);

  one_.transport.released_mark = 2;
  other_.transport.released_mark = 1;
  const Transfer* taken[] = {table_.take_released(), table_.take_released()};
  EXPECT_TRUE((taken[0] == &second && taken[1] == &third) ||
              (taken[0] == &third && taken[1] == &second));
  EXPECT_EQ(table_.take_released(), nullptr);
  EXPECT_FALSE(table_.awaits_release());
}

TEST_F(TransferTableTest, AnInterfaceThatGoesTakesItsTransfersAlong) {
  Transfer& active = start(one_);
  Transfer& waiting = start(one_, 1);
  Transfer& last = start(one_, 1);
  Transfer& stays = start(one_, 1);
  for (Transfer* transfer : {&active, &waiting, &last})
    transfer->place.interface = some_interface();
  table_.activate(active);
  table_.await_release(waiting);
  table_.await_release(stays);
  table_.await_release(last);
  table_.drop_all_of(*some_interface());
  EXPECT_FALSE(table_.has_active());
  EXPECT_EQ(one_.peer.long_messages.transfers, 1u);
  Transfer& later = start(one_, 1);
  table_.await_release(later);
  one_.transport.released_mark = 1;
  EXPECT_EQ(table_.take_released(), &stays);
  EXPECT_EQ(table_.take_released(), &later);
  EXPECT_EQ(table_.take_released(), nullptr);
}

TEST_F(TransferTableTest, OnePeerLeavesTransfersForTheOthers) {
  one_.peer.long_messages.transfers = most_transfers_of_peer;
  EXPECT_EQ(table_.allocate(one_.peer), nullptr);
  EXPECT_FALSE(table_.is_full());
  EXPECT_NE(table_.allocate(other_.peer), nullptr);
  --one_.peer.long_messages.transfers;
  EXPECT_NE(table_.allocate(one_.peer), nullptr);
}

}  // namespace
}  // namespace lintel::test
