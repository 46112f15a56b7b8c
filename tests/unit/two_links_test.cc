// A process connects by one transport while this one connects to it by another, so two links lead
// to one process. No message is lost, and the messages of each side use one link.
#include <portals4.h>

#include <array>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "core/library/library.h"
#include "core/operations/physical_interface.h"
#include "scripted_transport.h"
#include "support/objects.h"
#include "unit/entry_for_all.h"

namespace lintel::test {
namespace {

constexpr ProcessId peer_id{0x0a000001, 9};
constexpr ptl_pt_index_t pt_index = 3;
constexpr uint64_t bytes = 64;

// The near transport is tried first.
ScriptedTransport* near_transport = nullptr;
ScriptedTransport* far_transport = nullptr;

OpenedTransports open_scripted(uint32_t, uint32_t pid) {
  OpenedTransports opened;
  opened.id = {0x0a000001, pid};
  for (ScriptedTransport** transport : {&near_transport, &far_transport}) {
    opened.transports.push_back(std::make_unique<ScriptedTransport>());
    *transport = static_cast<ScriptedTransport*>(opened.transports.back().get());
  }
  near_transport->offers.name = "near";
  far_transport->offers.name = "far";
  opened.status = OpenStatus::opened;
  return opened;
}

class TwoLinksTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { must(PtlInit()); }

  void SetUp() override {
    NetworkInterface* interface = nullptr;
    must(open_interface(2, slot_matching, 5, nullptr, open_scripted, &interface));
    ni_ = interface->handle();
    physical_ = &interface->physical();
    must(PtlEQAlloc(ni_, 64, &events_));
    ptl_md_t descriptor{};
    descriptor.start = memory_.data();
    descriptor.length = memory_.size();
    descriptor.eq_handle = events_;
    descriptor.ct_handle = PTL_CT_NONE;
    must(PtlMDBind(ni_, &descriptor, &descriptor_));
    near_link_.peer = peer_id;
    // At first the near transport does not reach the peer.
    near_transport->reaches = false;
    far_transport->process = near_transport->process = 7;
  }
  void TearDown() override { must(PtlNIFini(ni_)); }

  void put() {
    ptl_process_t target{};
    target.phys = {peer_id.nid, peer_id.pid};
    must(PtlPut(descriptor_, 0, bytes, PTL_ACK_REQ, target, pt_index, 0, 0, nullptr, 0));
  }
  void round(ScriptedTransport& transport, std::function<void(MessageSink&)> what) {
    physical_->poller().exclusively([&] {
      transport.hand_up = std::move(what);
      physical_->poller().poll_once();
    });
  }
  void connect_near() {
    round(*near_transport,
          [&](MessageSink& sink) { near_link_.context = sink.on_new_link(near_link_); });
  }
  void deliver(ScriptedTransport& transport, Link& link, const MessageHeader& header,
               const void* payload = nullptr, uint32_t payload_bytes = 0) {
    const InboundMessage message{header, static_cast<const std::byte*>(payload), payload_bytes};
    round(transport, [&](MessageSink& sink) { sink.on_messages(link, &message, 1); });
  }
  [[nodiscard]] static MessageHeader acknowledgement_of(const MessageHeader& request) {
    MessageHeader header{};
    header.kind = MessageKind::ack;
    header.cookie = request.cookie;
    header.set_length(request.length());
    return header;
  }
  void append_entry() {
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(ni_, 0, events_, pt_index, &index));
    const ptl_me_t entry = test::entry_for_all(received_.data(), received_.size(),
                                               PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t handle{};
    must(PtlMEAppend(ni_, pt_index, &entry, PTL_PRIORITY_LIST, nullptr, &handle));
  }
  [[nodiscard]] static MessageHeader put_of(uint64_t length) {
    MessageHeader header{};
    header.set(MessageKind::put, slot_matching, 0, MessageHeader::modes_of(PTL_INT8_T, PTL_ACK_REQ),
               0, pt_index, length);
    return header;
  }
  // Types and results of the events posted so far.
  std::vector<std::pair<ptl_event_kind_t, ptl_ni_fail_t>> take_events() {
    std::vector<std::pair<ptl_event_kind_t, ptl_ni_fail_t>> taken;
    ptl_event_t event{};
    while (PtlEQGet(events_, &event) == PTL_OK) taken.emplace_back(event.type, event.ni_fail_type);
    return taken;
  }

  ptl_handle_ni_t ni_{};
  ptl_handle_eq_t events_{};
  ptl_handle_md_t descriptor_{};
  PhysicalInterface* physical_ = nullptr;
  Link near_link_;
  std::array<std::byte, bytes> memory_{};
  std::array<std::byte, 1 << 16> received_{};
};

using Events = std::vector<std::pair<ptl_event_kind_t, ptl_ni_fail_t>>;

TEST_F(TwoLinksTest, OperationsGoOnWhenTheirTargetConnectsByAnotherTransport) {
  put();
  ASSERT_EQ(far_transport->sent.size(), 1u);
  connect_near();
  EXPECT_EQ(take_events(), (Events{{PTL_EVENT_SEND, PTL_NI_OK}}));
  put();
  EXPECT_EQ(near_transport->sent.size(), 0u) << "one could overtake the other";
  ASSERT_EQ(far_transport->sent.size(), 2u);
  // The answers arrive over the peer's link.
  for (unsigned i = 0; i < 2; ++i)
    deliver(*near_transport, near_link_, acknowledgement_of(far_transport->sent[i].header));
  EXPECT_EQ(take_events(), (Events{{PTL_EVENT_SEND, PTL_NI_OK},
                                   {PTL_EVENT_ACK, PTL_NI_OK},
                                   {PTL_EVENT_ACK, PTL_NI_OK}}));
  EXPECT_EQ(physical_->peers_failed, 0u);
}

TEST_F(TwoLinksTest, WhatWaitsForATransportThatHasNotConnectedTravelsByTheOneThatHas) {
  far_transport->process = 0;
  far_transport->status = SendStatus::connecting;
  put();
  put();
  connect_near();
  round(*near_transport, [](MessageSink&) {});
  EXPECT_EQ(near_transport->sent.size(), 2u);
  EXPECT_EQ(far_transport->sent.size(), 0u);
  for (const auto& message : near_transport->sent)
    deliver(*near_transport, near_link_, acknowledgement_of(message.header));
  unsigned acknowledged = 0;
  for (const auto& [type, fail] : take_events()) {
    EXPECT_EQ(fail, PTL_NI_OK);
    if (type == PTL_EVENT_ACK) ++acknowledged;
  }
  EXPECT_EQ(acknowledged, 2u);
}

TEST_F(TwoLinksTest, WhatWaitsStaysIfTheOtherTransportCarriesLess) {
  far_transport->process = 0;
  far_transport->status = SendStatus::connecting;
  near_transport->offers.max_eager_bytes = far_transport->offers.max_eager_bytes - 1;
  put();
  connect_near();
  far_transport->process = 7;
  far_transport->status = SendStatus::sent;
  round(*far_transport, [](MessageSink&) {});
  EXPECT_EQ(near_transport->sent.size(), 0u);
  EXPECT_EQ(far_transport->sent.size(), 1u);
}

TEST_F(TwoLinksTest, OperationsEndWhenAnotherProcessConnectsWithTheAddress) {
  put();
  near_transport->process = 8;
  connect_near();
  EXPECT_EQ(take_events(),
            (Events{{PTL_EVENT_SEND, PTL_NI_OK}, {PTL_EVENT_ACK, PTL_NI_UNDELIVERABLE}}));
  put();
  EXPECT_EQ(near_transport->sent.size(), 1u);
  // Messages that the first process sent before its end must not answer operations of its
  // successor.
  append_entry();
  deliver(*far_transport, far_transport->links[peer_id.pid], put_of(0));
  EXPECT_EQ(physical_->refused_requests.messages, 1u);
  EXPECT_EQ(take_events(), (Events{{PTL_EVENT_SEND, PTL_NI_OK}}));
}

TEST_F(TwoLinksTest, DescribedMemoryIsNotReachedByTheOtherLink) {
  append_entry();
  far_transport->offers.remote_access = true;
  put();
  connect_near();
  const RemoteMemory memory{0x1000, 10'000, 1};
  MessageHeader header = put_of(memory.length);
  header.flags |= flag_remote_memory;
  deliver(*near_transport, near_link_, header, &memory, sizeof memory);
  ASSERT_EQ(far_transport->sent.size(), 2u);
  EXPECT_EQ(far_transport->sent[1].header.kind, MessageKind::data_request);
}

TEST_F(TwoLinksTest, TheEndOfEitherLinkIsThatOfThePeer) {
  put();
  connect_near();
  round(*near_transport, [&](MessageSink& sink) { sink.on_peer_failed(near_link_); });
  EXPECT_EQ(take_events(),
            (Events{{PTL_EVENT_SEND, PTL_NI_OK}, {PTL_EVENT_ACK, PTL_NI_UNDELIVERABLE}}));
  // The process at the other link may be alive, so its message is answered.
  append_entry();
  deliver(*far_transport, far_transport->links[peer_id.pid], put_of(0));
  EXPECT_EQ(take_events(), (Events{{PTL_EVENT_PUT, PTL_NI_OK}}));
  EXPECT_EQ(far_transport->sent.size(), 2u);
}

TEST_F(TwoLinksTest, TheOtherLinkServesAfterTheFirstHasFailed) {
  append_entry();
  put();
  connect_near();
  round(*far_transport,
        [&](MessageSink& sink) { sink.on_peer_failed(far_transport->links[peer_id.pid]); });
  take_events();
  deliver(*near_transport, near_link_, put_of(0));
  EXPECT_EQ(take_events(), (Events{{PTL_EVENT_PUT, PTL_NI_OK}}));
  EXPECT_EQ(near_transport->sent.size(), 1u);
}

// Like a lane that its owner recalls.
TEST_F(TwoLinksTest, ALinkThatNobodySendsByCanBeTakenFromSenders) {
  put();
  connect_near();
  bool taken = false;
  const auto take = [](Link&, void* flag) { *static_cast<bool*>(flag) = true; };
  round(*near_transport, [&](MessageSink& sink) {
    sink.on_peer_failed(near_link_);
    EXPECT_TRUE(sink.exclude_senders(far_transport->links[peer_id.pid], take, &taken));
  });
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace lintel::test
