#include "core/operations/send_queues.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "connected_peer.h"
#include "util/clock.h"

namespace lintel::test {
namespace {

class SendQueuesTest : public ::testing::Test {
 protected:
  static NetworkInterface* some_interface() {
    static char place;
    return reinterpret_cast<NetworkInterface*>(&place);
  }
  PollFlag work_due_;
  SendQueues queues_{work_due_};
  Peer one_;
  Peer other_;
  Answer answers_[3];
};

TEST_F(SendQueuesTest, ItemsLeaveInTheOrderInWhichTheyCame) {
  for (Answer& answer : answers_) queues_.enqueue(one_, answer);
  EXPECT_EQ(one_.queue_counts.length, 3u);
  EXPECT_EQ(queues_.queued.get(), 3u);
  for (Answer& answer : answers_) {
    EXPECT_EQ(one_.queue.head, &answer);
    queues_.remove(one_, *one_.queue.head);
  }
  EXPECT_EQ(one_.queue.head, nullptr);
  queues_.enqueue(one_, answers_[1]);
  EXPECT_EQ(one_.queue.head, &answers_[1]);
}

// Requests to portal table entries of a peer that hold messages.
class StoppedEntriesTest : public SendQueuesTest {
 protected:
  StoppedEntriesTest() {
    EXPECT_TRUE(queues_.open());
    one_.set_failed(false);
    for (Operation& each : requests_) each.header = {};
  }
  Operation& to(uint16_t portal) {
    Operation& request = requests_[made_++];
    request.header.pt_index = portal;
    return request;
  }
  void set_stopped(uint16_t portal, bool stopped) {
    MessageHeader header{};
    header.pt_index = portal;
    header.modes = stopped ? holds_requests : 0;
    queues_.set_stopped(one_, header);
  }
  // Takes the first item, as a flush does.
  QueuedSend* take() {
    QueuedSend* first = queues_.first(one_);
    while (first != nullptr && queues_.stops(one_, *first)) first = queues_.first(one_);
    if (first != nullptr) queues_.remove(one_, *first);
    return first;
  }
  Operation requests_[8];
  unsigned made_ = 0;
};

TEST_F(StoppedEntriesTest, RequestsWaitUntilTheEntryGoesOn) {
  set_stopped(5, true);
  EXPECT_TRUE(one_.diverts);
  Operation& first = to(5);
  Operation& other = to(6);
  Operation& second = to(5);
  for (Operation* each : {&first, &other, &second}) queues_.enqueue(one_, *each);
  EXPECT_EQ(one_.queue_counts.length, 3u);
  EXPECT_EQ(take(), &other);
  EXPECT_EQ(take(), nullptr);
  EXPECT_EQ(queues_.stopped.get(), 2u);
  set_stopped(5, false);
  EXPECT_FALSE(one_.diverts);
  EXPECT_TRUE(queues_.any()) << "the poller has to send them";
  EXPECT_EQ(take(), &first);
  EXPECT_EQ(take(), &second);
  EXPECT_EQ(take(), nullptr);
  EXPECT_EQ(one_.queue_counts.length, 0u);
}

TEST_F(StoppedEntriesTest, TheOrderIsThatOfTheCalls) {
  Operation& first = to(5);
  queues_.enqueue(one_, first);
  set_stopped(5, true);
  EXPECT_EQ(take(), nullptr);
  queues_.enqueue(one_, answers_[0]);
  Operation& second = to(5);  // behind the answer
  queues_.enqueue(one_, second);
  set_stopped(5, false);
  EXPECT_EQ(take(), &first);
  EXPECT_EQ(take(), &answers_[0]);
  EXPECT_EQ(take(), &second);
  queues_.enqueue(one_, answers_[1]);
  EXPECT_EQ(take(), &answers_[1]);
}

TEST_F(StoppedEntriesTest, AnEntryIsToldApartByItsInterface) {
  MessageHeader header{};
  header.pt_index = 5;
  header.flags = 1;
  header.modes = holds_requests;
  queues_.set_stopped(one_, header);
  Operation& request = to(5);
  queues_.enqueue(one_, request);
  EXPECT_EQ(take(), &request);
}

TEST_F(StoppedEntriesTest, APeerThatFailsLeavesNone) {
  set_stopped(5, true);
  set_stopped(6, true);
  Operation& first = to(5);
  Operation& second = to(6);
  queues_.enqueue(one_, first);
  queues_.enqueue(one_, second);
  unsigned taken = 0;
  for (QueuedSend* item = queues_.take_all(one_); item != nullptr; item = item->next_queued)
    ++taken;
  EXPECT_EQ(taken, 2u);
  EXPECT_EQ(one_.queue_counts.length, 0u);
  EXPECT_EQ(one_.queue.stopped.first, nullptr);
  set_stopped(5, false);  // a late message changes nothing
  EXPECT_EQ(take(), nullptr);
}

TEST_F(StoppedEntriesTest, TheNumberOfRequestsIsLimited) {
  set_stopped(5, true);
  std::vector<Operation> many(StoppedEntries::most_requests);
  for (Operation& request : many) {
    request.header = requests_[0].header;
    request.header.pt_index = 5;
    EXPECT_FALSE(queues_.has_too_many(one_, request.header));
    queues_.enqueue(one_, request);
  }
  EXPECT_TRUE(queues_.has_too_many(one_, many[0].header));
  EXPECT_FALSE(queues_.has_too_many(one_, requests_[0].header));
}

TEST_F(SendQueuesTest, APeerIsListedOnceUntilItIsFlushed) {
  EXPECT_FALSE(queues_.any());
  queues_.enqueue(one_, answers_[0]);
  queues_.enqueue(one_, answers_[1]);
  EXPECT_TRUE(queues_.any());
  EXPECT_EQ(queues_.take_listed(), &one_);
  EXPECT_EQ(one_.queue_counts.next_with_queue, nullptr);
  EXPECT_FALSE(queues_.any());
  queues_.begin_flush(one_);
  queues_.remove(one_, *one_.queue.head);
  queues_.end_flush(one_);
  EXPECT_EQ(queues_.take_listed(), &one_) << "something is left";
  queues_.begin_flush(one_);
  queues_.remove(one_, *one_.queue.head);
  queues_.end_flush(one_);
  EXPECT_EQ(queues_.take_listed(), nullptr);
}

TEST_F(SendQueuesTest, AllListedPeersAreTakenTogether) {
  queues_.enqueue(one_, answers_[0]);
  queues_.enqueue(other_, answers_[1]);
  Peer* const first = queues_.take_listed();
  EXPECT_EQ(first, &other_);
  EXPECT_EQ(first->queue_counts.next_with_queue, &one_);
}

// The poller tests for listed peers only after it has taken the report of work, and without a lock.
TEST_F(SendQueuesTest, APollerThatSeesWorkDueSeesAListedPeer) {
  // On a busy machine a round may take two time slices, so fewer rounds are made.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::atomic<uint32_t> last{200'000};
  std::atomic<uint32_t> flushed{0};
  std::thread sender([&] {
    for (uint32_t round = 1; round <= last.load(std::memory_order_relaxed); ++round) {
      {
        std::lock_guard guard(one_.send_lock);
        queues_.enqueue(one_, answers_[0]);
      }
      while (flushed.load(std::memory_order_acquire) != round) sched_yield();
    }
  });
  uint32_t unseen = 0;
  for (uint32_t round = 1; round <= last.load(std::memory_order_relaxed); ++round) {
    for (unsigned looks = 1; !work_due_.take(); ++looks)
      looks % 128 == 0 ? static_cast<void>(sched_yield()) : spin_hint();
    if (!queues_.any()) ++unseen;
    while (queues_.take_listed() == nullptr) sched_yield();
    std::lock_guard guard(one_.send_lock);
    queues_.begin_flush(one_);
    queues_.remove(one_, *one_.queue.head);
    queues_.end_flush(one_);
    if (std::chrono::steady_clock::now() > end) last.store(round, std::memory_order_relaxed);
    flushed.store(round, std::memory_order_release);
  }
  sender.join();
  EXPECT_EQ(unseen, 0u);
}

TEST_F(SendQueuesTest, AFailedPeerGivesUpAllItems) {
  queues_.enqueue(one_, answers_[0]);
  queues_.enqueue(one_, answers_[1]);
  EXPECT_EQ(queues_.take_all(one_), &answers_[0]);
  EXPECT_EQ(answers_[0].next_queued, &answers_[1]);
  EXPECT_EQ(one_.queue_counts.length, 0u);
  queues_.enqueue(one_, answers_[2]);
  EXPECT_EQ(one_.queue.head, &answers_[2]);
}

TEST_F(SendQueuesTest, WhatAnInterfaceQueuedGoesWithIt) {
  Operation request;
  request.interface = some_interface();
  Transfer transfer;
  transfer.place.interface = some_interface();
  Transfer of_another;
  queues_.enqueue(one_, request);
  queues_.enqueue(one_, answers_[0]);
  queues_.enqueue(one_, of_another);
  queues_.enqueue(one_, transfer);
  queues_.drop_all_of(one_, *some_interface());
  queues_.enqueue(one_, answers_[1]);
  EXPECT_EQ(one_.queue_counts.length, 3u);
  EXPECT_EQ(one_.queue.head, &answers_[0]);
  EXPECT_EQ(answers_[0].next_queued, &of_another);
  EXPECT_EQ(of_another.next_queued, &answers_[1]);
}

// Answers and data pass requests that are held; the order of requests is kept.
TEST_F(SendQueuesTest, OnlyRequestsAreHeld) {
  Operation requests[4];
  queues_.enqueue(one_, requests[0]);
  queues_.enqueue(one_, answers_[0]);
  queues_.enqueue(one_, requests[1]);
  queues_.hold_requests(one_);
  queues_.enqueue(one_, requests[2]);
  queues_.enqueue(one_, answers_[1]);
  queues_.hold_requests(one_);
  EXPECT_EQ(one_.queue_counts.length, 5u);
  EXPECT_NE(one_.queue.head, nullptr) << "a request that comes now must not overtake";
  for (Answer* const answer : {&answers_[0], &answers_[1]}) {
    EXPECT_EQ(queues_.first(one_), &requests[0]);
    EXPECT_EQ(queues_.first_not_held(one_), answer);
    queues_.remove(one_, *answer);
  }
  EXPECT_EQ(queues_.first_not_held(one_), nullptr);
  EXPECT_NE(one_.queue.head, nullptr);
  queues_.enqueue(one_, answers_[2]);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(queues_.first(one_), &requests[i]);
    queues_.remove(one_, requests[i]);
  }
  // None is held any more.
  queues_.enqueue(one_, requests[3]);
  EXPECT_EQ(queues_.first(one_), &answers_[2]);
  queues_.remove(one_, answers_[2]);
  EXPECT_EQ(queues_.first(one_), &requests[3]);
  queues_.remove(one_, requests[3]);
  EXPECT_EQ(one_.queue.head, nullptr);
  EXPECT_EQ(one_.queue_counts.length, 0u);
}

TEST_F(SendQueuesTest, HeldRequestsEndWithTheirPeerAndTheirInterface) {
  Operation requests[3];
  requests[1].interface = some_interface();
  for (Operation& request : requests) queues_.enqueue(one_, request);
  queues_.hold_requests(one_);
  queues_.enqueue(one_, answers_[0]);
  queues_.drop_all_of(one_, *some_interface());
  EXPECT_EQ(one_.queue_counts.length, 3u);
  EXPECT_EQ(queues_.take_all(one_), &requests[0]);
  EXPECT_EQ(requests[0].next_queued, &requests[2]);
  EXPECT_EQ(requests[2].next_queued, &answers_[0]);
  EXPECT_EQ(answers_[0].next_queued, nullptr);
  EXPECT_EQ(one_.queue.head, nullptr);

  queues_.enqueue(other_, requests[1]);
  queues_.hold_requests(other_);
  queues_.drop_all_of(other_, *some_interface());
  EXPECT_EQ(other_.queue.head, nullptr);
  queues_.enqueue(other_, answers_[1]);
  EXPECT_EQ(queues_.first(other_), &answers_[1]);
}

}  // namespace
}  // namespace lintel::test
