// Which answers an operation accepts: those of its own kind, from its own peer, after its first
// message was sent (spec 4.2.2). All others are counted and change nothing.
#include "core/operations/initiator_answers.h"

#include <portals4.h>

#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"

namespace lintel {
namespace {

using test::must;
using test::wait_until;

constexpr uint64_t eager_bytes = 2048;
constexpr uint64_t memory_bytes = uint64_t{1} << 20;

class InitiatorAnswersTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    must(PtlEQAlloc(ni_, 16384, &events_));
    const ptl_md_t description{memory_.data(), memory_.size(), 0, events_, PTL_CT_NONE};
    must(PtlMDBind(ni_, &description, &md_));
  }

  void put(uint64_t length) {
    must(PtlPut(md_, 0, length, PTL_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  }
  void fetch() {
    must(PtlFetchAtomic(md_, 0, md_, 64, 8, target(), 0, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T));
  }
  void get() { must(PtlGet(md_, 0, 8, target(), 0, 0, 0, nullptr)); }

  // Puts until some puts wait in the send queue, since the target receives none.
  unsigned fill_lane() {
    unsigned puts = 0;
    while (peer().queue_counts.length.load() == 0 && puts < 10000) {
      put(eager_bytes);
      ++puts;
    }
    EXPECT_NE(peer().queue_counts.length.load(), 0u);
    return puts;
  }
  // The cookie of the operation at `place` in the queue, counted from its head.
  uint32_t queued_cookie(unsigned place) {
    std::lock_guard guard(peer().send_lock);
    QueuedSend* item = peer().queue.head;
    for (; place != 0; --place) item = item->next_queued;
    EXPECT_EQ(item->kind, QueuedSend::Kind::request);
    return physical().initiator().operations().cookie_of(static_cast<Operation&>(*item));
  }

  static MessageHeader answer_of(MessageKind kind, uint32_t cookie, uint64_t length = 0) {
    MessageHeader header{};
    header.kind = kind;
    header.cookie = cookie;
    header.set_length(length);
    return header;
  }
  // Delivers the message as if it had come from the target.
  void deliver(const MessageHeader& header) {
    static constexpr std::byte payload[8]{};
    const auto length = static_cast<uint32_t>(
        header.kind == MessageKind::reply || header.kind == MessageKind::data ? header.length()
                                                                              : 0);
    const InboundMessage message{header, payload, length};
    physical().poller().exclusively(
        [&] { physical().on_messages(*peer().route.link, &message, 1); });
  }
  void expect_refused(const MessageHeader& header) {
    const uint64_t before = physical().refused_requests.messages.get();
    deliver(header);
    EXPECT_EQ(physical().refused_requests.messages.get(), before + 1)
        << "kind " << static_cast<unsigned>(header.kind);
  }
  void expect_all_answers_refused(uint32_t cookie) {
    expect_refused(answer_of(MessageKind::ack, cookie));
    expect_refused(answer_of(MessageKind::ack_batch, cookie));
    expect_refused(answer_of(MessageKind::reply, cookie, 8));
    MessageHeader data = answer_of(MessageKind::data, cookie, 8);
    data.modes = data_for_reply;
    expect_refused(data);
    expect_refused(answer_of(MessageKind::data_request, cookie, 8));
  }
  ptl_event_t next_event() {
    ptl_event_t event{};
    unsigned which = 0;
    EXPECT_EQ(PtlEQPoll(&events_, 1, static_cast<ptl_time_t>(test::wait_deadline.count()), &event,
                        &which),
              PTL_OK);
    return event;
  }

  ptl_handle_md_t md_{};
  ptl_handle_eq_t events_{};
  std::vector<std::byte> memory_ = std::vector<std::byte>(memory_bytes);
};

TEST_F(InitiatorAnswersTest, AnOperationThatIsStillQueuedTakesNone) {
  const unsigned filling = fill_lane();
  put(memory_bytes);  // its memory would be exposed
  get();
  fetch();
  const unsigned waiting = peer().queue_counts.length.load();
  ASSERT_GE(waiting, 4u);
  for (unsigned place = 0; place < waiting; ++place) {
    SCOPED_TRACE(place);
    expect_all_answers_refused(queued_cookie(place));
  }
  ASSERT_EQ(peer().queue_counts.length.load(), waiting);
  ASSERT_FALSE(HasFailure()) << "the queue may be a cycle";

  // All of them are still sent in order, and end when they are answered.
  const unsigned requests = filling + 3;
  const auto& received = this->received(requests);
  ASSERT_EQ(received.size(), requests);
  EXPECT_EQ(received[requests - 3].header.kind, MessageKind::put);
  EXPECT_EQ(received[requests - 2].header.kind, MessageKind::get);
  EXPECT_EQ(received[requests - 1].header.kind, MessageKind::fetch_atomic);
  for (const auto& request : received) {
    const bool put = request.header.kind == MessageKind::put;
    deliver(answer_of(put ? MessageKind::ack : MessageKind::reply, request.header.cookie,
                      put ? request.header.length() : 8));
  }
  unsigned sent = 0;
  unsigned acknowledged = 0;
  unsigned replied = 0;
  while (sent + acknowledged + replied < 2 * (filling + 1) + 1 + 2 && !HasFailure()) {
    const ptl_event_t event = next_event();
    EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
    sent += event.type == PTL_EVENT_SEND ? 1 : 0;
    acknowledged += event.type == PTL_EVENT_ACK ? 1 : 0;
    replied += event.type == PTL_EVENT_REPLY ? 1 : 0;
  }
  EXPECT_EQ(sent, filling + 2);
  EXPECT_EQ(acknowledged, filling + 1);
  EXPECT_EQ(replied, 2u);
  EXPECT_EQ(PtlMDRelease(md_), PTL_OK);
}

TEST_F(InitiatorAnswersTest, WhatIsAnsweredByAReplyTakesNoAcknowledgement) {
  fetch();
  get();
  const auto& requests = received(2);
  for (const auto& request : requests) {
    expect_refused(answer_of(MessageKind::ack, request.header.cookie));
    expect_refused(answer_of(MessageKind::ack_batch, request.header.cookie));
    deliver(answer_of(MessageKind::reply, request.header.cookie, 8));
  }
  EXPECT_EQ(next_event().type, PTL_EVENT_SEND);
  EXPECT_EQ(next_event().type, PTL_EVENT_REPLY);
  EXPECT_EQ(next_event().type, PTL_EVENT_REPLY);
  EXPECT_EQ(PtlMDRelease(md_), PTL_OK);
}

TEST_F(InitiatorAnswersTest, DataOutsideOfTheMemoryOfAGetAreRefused) {
  get();
  const uint32_t cookie = received(1).front().header.cookie;
  MessageHeader data = answer_of(MessageKind::data, cookie, 8);
  data.modes = data_for_reply;
  for (const uint64_t offset : {uint64_t{1}, uint64_t{8}, uint64_t{9}, memory_bytes, UINT64_MAX}) {
    SCOPED_TRACE(offset);
    data.remote_offset = offset;
    expect_refused(data);
  }
  data.remote_offset = 0;
  const uint64_t before = physical().refused_requests.messages.get();
  deliver(data);
  MessageHeader reply = answer_of(MessageKind::reply, cookie, 8);
  reply.flags = flag_remote_memory;
  deliver(reply);
  EXPECT_EQ(physical().refused_requests.messages.get(), before);
  EXPECT_EQ(next_event().type, PTL_EVENT_REPLY);
  EXPECT_EQ(PtlMDRelease(md_), PTL_OK);
}

// All puts to the peer are acknowledged. One acknowledgement arrives before the sending thread has
// counted the put.
TEST_F(InitiatorAnswersTest, APeerThatLeavesWithNothingOutstandingHasNotFailed) {
  const uint64_t failed = physical().peers_failed.get();
  Peer& peer = this->peer();
  const DescriptorReference put =
      reference_to(interface_of(decode_handle(ni_))->find_descriptor(md_));
  std::thread poller;
  {
    std::lock_guard guard(peer.send_lock);
    uint32_t cookie = 0;
    ASSERT_TRUE(peer.awaited_puts.add({put, 0, PTL_CT_ACK_REQ, nullptr, 0}, cookie));
    deliver(answer_of(MessageKind::ack_batch, cookie));
    poller = std::thread([&] {
      physical().poller().exclusively([&] { physical().on_peer_failed(*peer.route.link); });
    });
    EXPECT_FALSE(
        wait_until([&] { return physical().peers_failed.get() != failed; }, test::quiet_time));
    peer.count_as_started();
  }
  poller.join();
  EXPECT_EQ(physical().peers_failed.get(), failed);
}

// An operation that has been published while the transport's send() has not returned.
class BetweenSendAndReturn : public InitiatorAnswersTest {
 protected:
  void SetUp() override {
    InitiatorAnswersTest::SetUp();
    std::lock_guard guard(peer().send_lock);
    operation_ = physical().initiator().operations().allocate(peer());
    operation_->interface = interface_of(decode_handle(ni_));
    operation_->stage.store(Operation::Stage::sending);
    operation_->peer.store(&peer());
  }
  // The answer arrives now. `then` runs in the sending thread, which holds the send lock.
  template <typename Then>
  void answer_before(Then&& then) {
    const uint32_t cookie = physical().initiator().operations().cookie_of(*operation_);
    Peer& peer = this->peer();
    std::atomic<bool> answering{false};
    std::thread poller;
    {
      std::lock_guard guard(peer.send_lock);
      poller = std::thread([&] {
        answering = true;
        deliver(answer_of(MessageKind::ack, cookie));
      });
      EXPECT_TRUE(wait_until([&] { return answering.load(); }));
      then();
    }
    poller.join();
  }

  Operation* operation_ = nullptr;
};

TEST_F(BetweenSendAndReturn, TheAnswerIsTakenIfItWasSent) {
  const uint32_t ended = peer().operations.ended.load();
  const uint64_t refused = physical().refused_requests.messages.get();
  answer_before([&] { operation_->stage.store(Operation::Stage::sent); });
  EXPECT_EQ(peer().operations.ended.load(), ended + 1);
  EXPECT_EQ(physical().refused_requests.messages.get(), refused);
  peer().operations.started.fetch_add(1);
}

TEST_F(BetweenSendAndReturn, TheAnswerIsRefusedIfItWasQueued) {
  const uint32_t ended = peer().operations.ended.load();
  const uint64_t refused = physical().refused_requests.messages.get();
  answer_before([&] { operation_->stage.store(Operation::Stage::queued); });
  EXPECT_EQ(peer().operations.ended.load(), ended);
  EXPECT_EQ(physical().refused_requests.messages.get(), refused + 1);
  physical().initiator().operations().discard(*operation_);
}

TEST_F(BetweenSendAndReturn, TheAnswerIsRefusedIfItCouldNotBeSent) {
  const uint64_t refused = physical().refused_requests.messages.get();
  answer_before([&] { physical().initiator().operations().discard(*operation_); });
  EXPECT_EQ(physical().refused_requests.messages.get(), refused + 1);
}

}  // namespace
}  // namespace lintel
