#include "core/operations/answer_sender.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "connected_peer.h"
#include "core/operations/peer.h"

namespace lintel::test {
namespace {

class AnswerSenderTest : public ::testing::Test {
 protected:
  static constexpr uint32_t long_replies = 4;
  // Another peer gets as many as one.
  AnswerSenderTest() { EXPECT_TRUE(sender_.open(2 * long_replies)); }
  // Queues replies with a long payload; returns how many of them keep it.
  unsigned queue_long(ConnectedPeer& to, unsigned count) {
    std::vector<std::byte> payload(largest_reply_bytes);
    const Piece piece{payload.data(), payload.size()};
    const uint32_t before = to.peer.queue.long_answers;
    to.transport.status = SendStatus::queue_full;
    for (unsigned i = 0; i < count; ++i) sender_.send(to.peer, reply(), &piece, 1);
    return to.peer.queue.long_answers - before;
  }
  static MessageHeader reply() {
    MessageHeader header{};
    header.kind = MessageKind::reply;
    return header;
  }
  ConnectedPeer to_;
  PollFlag work_due_;
  SendQueues queues_{work_due_};
  RefusedRequests refused_;
  AnswerSender sender_{queues_, refused_};
};

TEST_F(AnswerSenderTest, OneAcknowledgementTravelsInTheHeader) {
  sender_.flush_acknowledgements(to_.peer);
  EXPECT_TRUE(to_.transport.sent.empty());
  sender_.acknowledge_exactly(to_.peer, 7);
  EXPECT_TRUE(to_.transport.sent.empty());
  sender_.flush_acknowledgements(to_.peer);
  ASSERT_EQ(to_.transport.sent.size(), 1u);
  EXPECT_EQ(to_.transport.sent[0].header.kind, MessageKind::ack_batch);
  EXPECT_EQ(to_.transport.sent[0].header.cookie, 7u);
  EXPECT_TRUE(to_.transport.sent[0].payload.empty());
}

TEST_F(AnswerSenderTest, SeveralTravelTogetherAndAFullBatchGoesAtOnce) {
  for (uint32_t cookie = 0; cookie < ack_batch_capacity; ++cookie)
    sender_.acknowledge_exactly(to_.peer, cookie);
  ASSERT_EQ(to_.transport.sent.size(), 1u);
  const auto& payload = to_.transport.sent[0].payload;
  ASSERT_EQ(payload.size(), ack_batch_capacity * sizeof(uint32_t));
  for (uint32_t i = 0; i < ack_batch_capacity; ++i) {
    uint32_t cookie;
    std::memcpy(&cookie, payload.data() + i * sizeof cookie, sizeof cookie);
    EXPECT_EQ(cookie, i);
  }
  sender_.flush_acknowledgements(to_.peer);
  EXPECT_EQ(to_.transport.sent.size(), 1u);
}

TEST_F(AnswerSenderTest, WhatFindsNoRoomIsQueuedWithItsPayload) {
  std::byte halves[2][4] = {{std::byte{1}}, {std::byte{2}}};
  const Piece pieces[] = {{halves[0], 4}, {halves[1], 4}};
  to_.transport.status = SendStatus::queue_full;
  sender_.send(to_.peer, reply(), pieces, 2);
  to_.transport.status = SendStatus::sent;
  sender_.send(to_.peer, reply(), nullptr, 0);
  EXPECT_TRUE(to_.transport.sent.empty()) << "nothing overtakes";
  EXPECT_EQ(to_.peer.queue_counts.length, 2u);
  halves[0][0] = std::byte{9};

  auto& answer = static_cast<Answer&>(*to_.peer.queue.head);
  ASSERT_EQ(answer.kind, QueuedSend::Kind::answer);
  EXPECT_TRUE(sender_.send_queued(to_.peer, answer));
  ASSERT_EQ(to_.transport.sent.size(), 1u);
  EXPECT_EQ(to_.transport.sent[0].payload[0], std::byte{1});
  EXPECT_EQ(to_.transport.sent[0].payload[4], std::byte{2});
}

TEST_F(AnswerSenderTest, AQueuedAnswerWaitsUntilThereIsRoom) {
  to_.transport.status = SendStatus::connecting;
  sender_.send(to_.peer, reply(), nullptr, 0);
  auto& answer = static_cast<Answer&>(*to_.peer.queue.head);
  EXPECT_FALSE(sender_.send_queued(to_.peer, answer));
  to_.transport.status = SendStatus::peer_failed;
  EXPECT_TRUE(sender_.send_queued(to_.peer, answer)) << "no operation waits for it any more";
}

TEST_F(AnswerSenderTest, LongAndShortPayloadsWaitAlike) {
  std::vector<std::byte> payload(largest_reply_bytes);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
  to_.transport.status = SendStatus::queue_full;
  const size_t lengths[] = {short_answer_bytes, short_answer_bytes + 1, largest_reply_bytes};
  for (const size_t length : lengths) {
    const Piece piece{payload.data(), length};
    sender_.send(to_.peer, reply(), &piece, 1);
  }
  to_.transport.status = SendStatus::sent;
  for (const size_t length : lengths) {
    auto& answer = static_cast<Answer&>(*to_.peer.queue.head);
    queues_.remove(to_.peer, *to_.peer.queue.head);
    EXPECT_TRUE(sender_.send_queued(to_.peer, answer));
    const auto& sent = to_.transport.sent.back().payload;
    ASSERT_EQ(sent.size(), length);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), payload.begin()));
  }
}

// A process that stops taking answers may have started so many operations before.
TEST_F(AnswerSenderTest, AMillionAnswersWait) {
  constexpr uint32_t million = 1u << 20;
  to_.transport.status = SendStatus::queue_full;
  for (uint32_t i = 0; i < million; ++i) sender_.send(to_.peer, reply(), nullptr, 0);
  EXPECT_EQ(refused_.messages.get(), 0u);
  EXPECT_EQ(to_.peer.queue_counts.length, million);
}

// Its operation ends all the same.
TEST_F(AnswerSenderTest, AReplyWhosePayloadFindsNoRoomSaysThatItFailed) {
  std::vector<std::byte> payload(short_answer_bytes + 1);
  const Piece piece{payload.data(), payload.size()};
  MessageHeader header = reply();
  header.set_length(payload.size());
  header.remote_offset = 24;
  to_.transport.status = SendStatus::queue_full;
  for (header.cookie = 0; header.cookie <= long_replies; ++header.cookie)
    sender_.send(to_.peer, header, &piece, 1);
  EXPECT_EQ(refused_.messages.get(), 1u);
  to_.transport.status = SendStatus::sent;
  for (uint32_t cookie = 0; cookie <= long_replies; ++cookie) {
    ASSERT_NE(to_.peer.queue.head, nullptr);
    auto& answer = static_cast<Answer&>(*to_.peer.queue.head);
    queues_.remove(to_.peer, *to_.peer.queue.head);
    EXPECT_TRUE(sender_.send_queued(to_.peer, answer));
    const ScriptedTransport::Sent& sent = to_.transport.sent.back();
    const bool whole = cookie < long_replies;
    EXPECT_EQ(sent.header.kind, MessageKind::reply);
    EXPECT_EQ(sent.header.cookie, cookie);
    EXPECT_EQ(sent.header.remote_offset, 24u);
    EXPECT_EQ(sent.header.fail(), whole ? PTL_NI_OK : PTL_NI_UNDELIVERABLE);
    EXPECT_EQ(sent.header.length(), whole ? payload.size() : 0);
    EXPECT_EQ(sent.payload.size(), sent.header.length());
  }
  // There is room again.
  to_.transport.status = SendStatus::queue_full;
  sender_.send(to_.peer, header, &piece, 1);
  EXPECT_EQ(static_cast<Answer&>(*to_.peer.queue.head).header.fail(), PTL_NI_OK);
  EXPECT_EQ(refused_.messages.get(), 1u);
}

TEST_F(AnswerSenderTest, APeerThatTakesNoAnswersLeavesRoomForTheOthers) {
  EXPECT_EQ(queue_long(to_, 100), long_replies);
  ConnectedPeer second;
  ConnectedPeer third;
  EXPECT_EQ(queue_long(second, 100), long_replies / 2);
  EXPECT_EQ(queue_long(third, 1), 1u);
  // The next is for whoever has none.
  EXPECT_EQ(queue_long(third, 1), 0u);
  ConnectedPeer fourth;
  EXPECT_EQ(queue_long(fourth, 1), 1u);
  EXPECT_EQ(sender_.long_answers(), 2 * long_replies);
}

TEST_F(AnswerSenderTest, OnePeerGetsNoMoreThanItsShareOfALargePool) {
  AnswerSender large(queues_, refused_);
  ASSERT_TRUE(large.open());
  std::vector<std::byte> payload(short_answer_bytes + 1);
  const Piece piece{payload.data(), payload.size()};
  to_.transport.status = SendStatus::queue_full;
  for (unsigned i = 0; i < most_long_answers_of_peer + 10; ++i)
    large.send(to_.peer, reply(), &piece, 1);
  EXPECT_EQ(to_.peer.queue.long_answers, most_long_answers_of_peer);
  EXPECT_EQ(refused_.messages.get(), 10u);
}

TEST_F(AnswerSenderTest, WhatAPeerThatIsGoneHeldIsGivenBack) {
  const auto resident_bytes = [] {
    std::ifstream file("/proc/self/statm");
    uint64_t pages = 0;
    file >> pages >> pages;
    return pages * 4096;
  };
  AnswerSender large(queues_, refused_);
  ASSERT_TRUE(large.open());
  std::vector<std::byte> payload(largest_reply_bytes);
  const Piece piece{payload.data(), payload.size()};
  to_.transport.status = SendStatus::queue_full;
  const auto hold_most = [&] {
    for (unsigned i = 0; i < most_long_answers_of_peer; ++i)
      large.send(to_.peer, reply(), &piece, 1);
  };
  const auto lose_the_peer = [&] {
    for (QueuedSend* item = queues_.take_all(to_.peer); item != nullptr;) {
      QueuedSend* const next = item->next_queued;
      large.release(to_.peer, static_cast<Answer&>(*item));
      item = next;
    }
    large.give_back();
  };
  // Sanitizers keep an eighth of what was used once.
  hold_most();
  lose_the_peer();
  const uint64_t before = resident_bytes();
  hold_most();
  EXPECT_GT(resident_bytes(), before + most_long_answers_of_peer * largest_reply_bytes / 2);
  lose_the_peer();
  EXPECT_LT(resident_bytes(), before + most_long_answers_of_peer * largest_reply_bytes / 8);
  EXPECT_EQ(large.long_answers(), 0u);
  EXPECT_EQ(to_.peer.queue.answers, 0u);
}

TEST_F(AnswerSenderTest, AFailedPeerIsNotAnswered) {
  to_.peer.failed = true;
  sender_.send(to_.peer, reply(), nullptr, 0);
  EXPECT_TRUE(to_.transport.sent.empty());
  EXPECT_EQ(to_.peer.queue_counts.length, 0u);
}

TEST_F(AnswerSenderTest, ThePollerIsToldOfAnswersToTheOwnProcess) {
  PollFlag sends;
  to_.peer.route.in_process_sends = &sends;
  sender_.send(to_.peer, reply(), nullptr, 0);
  EXPECT_TRUE(sends.take());
  EXPECT_FALSE(sends.is_set());
}

}  // namespace
}  // namespace lintel::test
