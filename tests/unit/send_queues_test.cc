#include "core/operations/send_queues.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

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
  request.kind = QueuedSend::Kind::request;
  request.interface = some_interface();
  Transfer transfer;
  transfer.kind = QueuedSend::Kind::transfer_data;
  transfer.place.interface = some_interface();
  Transfer of_another;
  of_another.kind = QueuedSend::Kind::transfer_data;
  answers_[0].kind = answers_[1].kind = QueuedSend::Kind::answer;
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
  for (Operation& request : requests) request.kind = QueuedSend::Kind::request;
  for (Answer& answer : answers_) answer.kind = QueuedSend::Kind::answer;
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
  for (Operation& request : requests) request.kind = QueuedSend::Kind::request;
  requests[1].interface = some_interface();
  answers_[0].kind = QueuedSend::Kind::answer;
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
