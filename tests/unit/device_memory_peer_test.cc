// Long messages with memory of a device and a peer whose messages a test makes up: windows of data,
// messages that are not expected, a peer or an interface that goes while the device copies.
#include <portals4.h>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "core/operations/staging_buffers.h"
#include "support/memory.h"
#include "test_memory_kind.h"
#include "unit/entry_for_all.h"
#include "util/clock.h"

namespace lintel {
namespace {

using test::expect_pattern;
using test::must;
using test::TestMemoryKind;
using test::wait_until;

constexpr uint64_t window = StagedStream::most_blocks * StagingBuffers::buffer_bytes;

class DeviceMemoryPeerTest : public test::BareTargetTest {
 protected:
  static void TearDownTestSuite() { TestMemoryKind::leave(); }
  static constexpr size_t bytes = 4 << 20;

  void SetUp() override {
    BareTargetTest::SetUp();
    kind_.reset();
    device_ = kind_.allocate(bytes);
    must(PtlEQAlloc(ni_, 64, &events_));
    const ptl_md_t description{device_, bytes, 0, events_, PTL_CT_NONE};
    must(PtlMDBind(ni_, &description, &md_));
    test::fill(pattern_, 9);
  }
  void TearDown() override {
    kind_.end_all();
    BareTargetTest::TearDown();
    kind_.free(device_);
  }

  // As if it had come from the peer.
  void deliver(const MessageHeader& header, const std::byte* payload = nullptr,
               uint64_t length = 0) {
    const InboundMessage message{header, payload, static_cast<uint32_t>(length)};
    physical().poller().exclusively(
        [&] { physical().on_messages(*peer().route.link, &message, 1); });
  }
  void expect_refused(const MessageHeader& header, const std::byte* payload = nullptr,
                      uint64_t length = 0) {
    const uint64_t before = physical().refused_requests.messages.get();
    deliver(header, payload, length);
    EXPECT_EQ(physical().refused_requests.messages.get(), before + 1);
  }
  void fail_peer() {
    Link& link = *peer().route.link;
    physical().poller().exclusively([&] { physical().on_peer_failed(link); });
  }
  void poll(unsigned rounds = 20) {
    for (unsigned i = 0; i < rounds; ++i)
      physical().poller().exclusively([&] { physical().poller().poll_once(); });
  }
  ptl_event_t expect(ptl_event_kind_t kind, ptl_ni_fail_t fail = PTL_NI_OK) {
    return test::expect_event(events_, kind, fail);
  }
  void expect_no_event() {
    ptl_event_t event;
    EXPECT_EQ(PtlEQGet(events_, &event), PTL_EQ_EMPTY);
  }

  static MessageHeader message_of(MessageKind kind, uint32_t cookie, uint64_t offset = 0,
                                  uint64_t length = 0, uint8_t modes = 0) {
    MessageHeader header{};
    header.kind = kind;
    header.cookie = cookie;
    header.remote_offset = offset;
    header.modes = modes;
    header.set_length(length);
    return header;
  }
  // Data for a get, or for a put.
  void send_data(uint32_t cookie, uint64_t offset, uint64_t length, uint8_t modes,
                 uint8_t flags = 0) {
    MessageHeader header = message_of(MessageKind::data, cookie, offset, length, modes);
    header.flags = flags;
    deliver(header, &pattern_[offset], length);
  }

  // Starts a get into the device; returns its cookie.
  uint32_t get(uint64_t length) {
    must(PtlGet(md_, 0, length, target(), 0, 0, 0, nullptr));
    const MessageHeader& request = received(1).front().header;
    EXPECT_NE(request.modes & get_in_windows, 0);
    EXPECT_EQ(received(1).front().payload.size(), 0u);
    return request.cookie;
  }
  void offer(uint32_t cookie, uint64_t length) {
    MessageHeader header = message_of(MessageKind::data, cookie, 0, 0, data_for_reply);
    header.match_bits = 77;
    header.hdr_data = length;
    deliver(header);
  }
  MessageHeader reply_to(uint32_t cookie, uint64_t length) {
    MessageHeader header = message_of(MessageKind::reply, cookie, 0, length);
    header.flags = flag_remote_memory;
    return header;
  }
  // Starts a put of the peer to an entry in the device; returns the cookie of its transfer.
  uint32_t accept_put(uint64_t length) {
    must(PtlPTAlloc(ni_, 0, events_, PTL_PT_ANY, &index_));
    const ptl_me_t entry =
        test::entry_for_all(device_, bytes, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    must(PtlMEAppend(ni_, index_, &entry, PTL_PRIORITY_LIST, nullptr, &entry_));
    MessageHeader header{};
    header.set(MessageKind::put,
               flag_remote_memory | interface_of(decode_handle(ni_))->request_flags(), 0,
               MessageHeader::modes_of(PTL_INT8_T, PTL_ACK_REQ), 0, index_, length);
    header.cookie = 5;
    deliver(header);
    const auto& requests = received(1);
    EXPECT_EQ(requests.front().header.kind, MessageKind::data_request);
    EXPECT_EQ(requests.front().header.length(), std::min(length, window));
    return static_cast<uint32_t>(requests.front().header.match_bits);
  }

  TestMemoryKind& kind_ = TestMemoryKind::in_use();
  std::byte* device_ = nullptr;
  ptl_handle_eq_t events_{};
  ptl_handle_md_t md_{};
  ptl_pt_index_t index_ = 0;
  ptl_handle_me_t entry_{};
  std::vector<std::byte> pattern_ = std::vector<std::byte>(bytes);
};

TEST_F(DeviceMemoryPeerTest, AGetAsksForDataAsThereIsRoom) {
  constexpr uint64_t length = window + 1000;
  const uint32_t cookie = get(length);
  offer(cookie, length);
  EXPECT_EQ(received(2)[1].header.kind, MessageKind::data_request);
  EXPECT_EQ(received(2)[1].header.length(), window);
  EXPECT_EQ(received(2)[1].header.cookie, 77u);
  kind_.holds = true;
  send_data(cookie, 0, window, data_for_reply);
  poll();
  EXPECT_EQ(sink_.total, 2u);
  kind_.end_copy(1);
  poll();
  EXPECT_EQ(sink_.total, 2u) << "the first block is missing";
  kind_.end_copy(0);
  poll();
  EXPECT_EQ(received(3)[2].header.remote_offset, window);
  EXPECT_EQ(received(3)[2].header.length(), 1000u);
  send_data(cookie, window, 1000, data_for_reply);
  deliver(reply_to(cookie, length));
  poll();
  expect_no_event();
  expect_refused(reply_to(cookie, length));
  EXPECT_EQ(PtlMDRelease(md_), PTL_IN_USE);
  kind_.end_all();
  EXPECT_EQ(expect(PTL_EVENT_REPLY).mlength, length);
  expect_pattern({kind_.inside(device_), length}, 9);
  EXPECT_EQ(PtlMDRelease(md_), PTL_OK);
}

TEST_F(DeviceMemoryPeerTest, WhatAGetDoesNotExpectIsRefused) {
  const uint32_t cookie = get(100'000);
  const auto data = [&](uint64_t offset, uint64_t length) {
    return message_of(MessageKind::data, cookie, offset, length, data_for_reply);
  };
  expect_refused(data(0, 8), pattern_.data(), 8);  // not asked for
  MessageHeader too_long = data(0, 0);
  too_long.hdr_data = 100'001;
  expect_refused(too_long);
  expect_refused(data(0, 0));  // an offer of nothing
  offer(cookie, 50'000);
  MessageHeader again = data(0, 0);
  again.hdr_data = 50'000;
  expect_refused(again);
  expect_refused(data(50'000, 8), pattern_.data(), 8);
  expect_refused(data(49'999, 2), pattern_.data(), 2);
  send_data(cookie, 0, 50'000, data_for_reply);
  deliver(reply_to(cookie, 50'000));
  EXPECT_EQ(expect(PTL_EVENT_REPLY).mlength, 50'000u);
}

TEST_F(DeviceMemoryPeerTest, AReplyWithoutItsDataFails) {
  const uint32_t cookie = get(100'000);
  offer(cookie, 100'000);
  send_data(cookie, 0, 99'999, data_for_reply);
  deliver(reply_to(cookie, 100'000));
  expect(PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
  EXPECT_EQ(PtlMDRelease(md_), PTL_OK);
}

TEST_F(DeviceMemoryPeerTest, AGetWhosePeerDiesEndsWithItsLastCopy) {
  const uint32_t cookie = get(600'000);
  offer(cookie, 600'000);
  kind_.holds = true;
  send_data(cookie, 0, 300'000, data_for_reply);
  EXPECT_EQ(kind_.under_way(), 1u);
  fail_peer();
  poll();
  expect_no_event();
  EXPECT_EQ(PtlMDRelease(md_), PTL_IN_USE);
  kind_.end_all();
  expect(PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
  EXPECT_EQ(PtlMDRelease(md_), PTL_OK);
  EXPECT_EQ(physical().staging().streams(), 0u);
}

TEST_F(DeviceMemoryPeerTest, APutIsSentWindowByWindow) {
  test::fill({kind_.inside(device_), bytes}, 9);
  must(PtlPut(md_, 0, 700'000, PTL_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  const uint32_t cookie = received(1).front().header.cookie;
  const auto request = [&](uint64_t offset, uint64_t length) {
    MessageHeader header = message_of(MessageKind::data_request, cookie, offset, length);
    header.match_bits = 33;
    return header;
  };
  kind_.holds = true;
  deliver(request(0, 300'000));
  deliver(request(300'000, 100'000));         // continues the first one
  expect_refused(request(300'000, 100'000));  // the same again
  expect_refused(request(400'000, 300'001));
  expect_refused(message_of(MessageKind::ack, cookie, 0, 700'000));
  poll();
  EXPECT_EQ(sink_.total, 1u);
  std::vector<std::byte> arrived;
  const auto take = [&] {
    return wait_until([&] {
      kind_.end_all();
      poll(1);
      target_->poll(sink_, 64);
      arrived.clear();
      for (const auto& message : sink_.by_link.begin()->second)
        if (message.header.kind == MessageKind::data) {
          EXPECT_EQ(message.header.remote_offset, arrived.size());
          EXPECT_EQ(message.header.cookie, 33u);
          arrived.insert(arrived.end(), message.payload.begin(), message.payload.end());
        }
      return !sink_.by_link.begin()->second.empty() &&
             (sink_.by_link.begin()->second.back().header.flags & flag_last) != 0;
    });
  };
  EXPECT_TRUE(take());
  EXPECT_EQ(arrived.size(), 400'000u);
  deliver(request(400'000, 300'000));
  EXPECT_TRUE(wait_until([&] { return take() && arrived.size() == 700'000; }));
  expect_pattern(arrived, 9);
  deliver(message_of(MessageKind::ack, cookie, 0, 700'000));
  expect(PTL_EVENT_SEND);
  expect(PTL_EVENT_ACK);
  EXPECT_EQ(physical().staging().streams(), 0u);
}

TEST_F(DeviceMemoryPeerTest, APutWhosePeerDiesDoesNotWaitForCopiesIntoBuffers) {
  must(PtlPut(md_, 0, 700'000, PTL_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  const uint32_t cookie = received(1).front().header.cookie;
  kind_.holds = true;
  deliver(message_of(MessageKind::data_request, cookie, 0, 700'000));
  EXPECT_NE(kind_.under_way(), 0u);
  fail_peer();
  expect(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
  EXPECT_EQ(PtlMDRelease(md_), PTL_OK);
  EXPECT_EQ(physical().staging().streams(), 1u);
  kind_.end_all();
  poll();
  EXPECT_EQ(physical().staging().streams(), 0u);
}

// A network hands up data before an earlier last message of a window that it has lost.
TEST_F(DeviceMemoryPeerTest, TheLastMessageOfAWindowMayArriveBehindDataOfTheNext) {
  constexpr uint64_t length = window + 500'000;
  const uint32_t cookie = accept_put(length);
  send_data(cookie, 0, window - 100, 0);
  poll();
  ASSERT_GE(sink_.total, 1u);
  const auto& requests = received(2);
  EXPECT_EQ(requests[1].header.remote_offset, window);
  send_data(cookie, window, 100'000, 0);
  send_data(cookie, window - 100, 100, 0, flag_last);
  poll();
  send_data(cookie, window + 100'000, 400'000, 0, flag_last);
  EXPECT_EQ(expect(PTL_EVENT_PUT).mlength, length);
  expect_pattern({kind_.inside(device_), length}, 9);
}

TEST_F(DeviceMemoryPeerTest, APutWhoseInitiatorDiesEndsWithItsLastCopy) {
  const uint32_t cookie = accept_put(600'000);
  kind_.holds = true;
  send_data(cookie, 0, 300'000, 0);
  EXPECT_EQ(kind_.under_way(), 1u);
  fail_peer();
  poll();
  expect_no_event();
  EXPECT_EQ(PtlMEUnlink(entry_), PTL_IN_USE);
  kind_.end_all();
  expect(PTL_EVENT_PUT, PTL_NI_UNDELIVERABLE);
  EXPECT_EQ(PtlMEUnlink(entry_), PTL_OK);
  EXPECT_EQ(physical().staging().streams(), 0u);
}

TEST_F(DeviceMemoryPeerTest, APutWhoseCopyFailsEndsWhenAllDataAreThere) {
  const uint32_t cookie = accept_put(600'000);
  kind_.fails = true;
  send_data(cookie, 0, 300'000, 0);
  poll();
  expect_no_event();
  kind_.fails = false;
  send_data(cookie, 300'000, 300'000, 0, flag_last);
  expect(PTL_EVENT_PUT, PTL_NI_SEGV);
}

TEST_F(DeviceMemoryPeerTest, AnInitiatorThatCannotReadItsMemoryEndsThePut) {
  const uint32_t cookie = accept_put(600'000);
  send_data(cookie, 0, 300'000, 0);
  MessageHeader fault = message_of(MessageKind::data, cookie, 300'000);
  fault.flags = flag_last;
  fault.operation = PTL_NI_SEGV;
  deliver(fault);
  expect(PTL_EVENT_PUT, PTL_NI_SEGV);
}

TEST_F(DeviceMemoryPeerTest, AnInterfaceClosesWhenNoCopyWritesAnyMore) {
  const uint32_t cookie = accept_put(600'000);
  kind_.holds = true;
  send_data(cookie, 0, 300'000, 0);
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    must(PtlNIFini(ni_));
    closed = true;
  });
  EXPECT_FALSE(wait_until([&] { return closed.load(); }, test::quiet_time));
  kind_.end_all();
  closer.join();
  must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                 nullptr, &ni_));
}

TEST_F(DeviceMemoryPeerTest, APeerIsToldOfFreedMemoryThatItKnows) {
  kind_.exports = true;
  std::byte* const freed = kind_.allocate(bytes);
  const ptl_md_t description{freed, bytes, 0, events_, PTL_CT_NONE};
  ptl_handle_md_t md;
  must(PtlMDBind(ni_, &description, &md));
  DeviceAllocation allocation;
  ASSERT_TRUE(kind_.describe(freed, &allocation));
  for (const ptl_handle_md_t of : {md_, md, md})
    must(PtlPut(of, 0, 700'000, PTL_NO_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  EXPECT_EQ(received(3)[2].payload.size(), sizeof(DeviceDescription));
  EXPECT_EQ(kind_.exported, 2u) << "one for each allocation";
  kind_.free(freed);
  EXPECT_TRUE(wait_until([&] {
    physical().poller().check_peers_if_due(now_ns());
    poll(1);
    target_->poll(sink_, 64);
    return sink_.total == 4;
  }));
  const MessageHeader& told = received(4)[3].header;
  EXPECT_EQ(told.kind, MessageKind::freed);
  EXPECT_EQ(told.operation, kind_.number());
  EXPECT_EQ(told.match_bits, allocation.id);
}

TEST_F(DeviceMemoryPeerTest, APeerThatFreesMemoryEndsMappingsOfItsOwn) {
  MessageHeader freed = message_of(MessageKind::freed, 0);
  freed.operation = kind_.number();
  freed.match_bits = 5;
  deliver(freed);
  EXPECT_EQ(kind_.forgotten,
            (std::vector{std::pair{static_cast<uint32_t>(getpid()), uint64_t{5}}}));
  freed.operation = 99;
  expect_refused(freed);
  EXPECT_EQ(kind_.forgotten.size(), 1u);
}

// What a request says about memory of a device is not trusted.
TEST_F(DeviceMemoryPeerTest, DescriptionsThatAreNotTrueAreNotUsed) {
  accept_put(100'000);
  kind_.exports = true;
  MemoryRegion region;
  ASSERT_TRUE(region.open(device_, bytes, false, false));
  DeviceDescription good;
  DeviceExports exports;
  ASSERT_TRUE(describe_device(exports, region, 0, 100'000, &good));
  const auto process = static_cast<uint32_t>(getpid());
  DeviceImport import = DeviceImport::open(good, process, 100'000);
  EXPECT_TRUE(import.is_open());
  EXPECT_EQ(import.address(0), device_);
  import.close();
  EXPECT_FALSE(DeviceImport::open(good, process + 1, 100'000).is_open());
  EXPECT_FALSE(DeviceImport::open(good, 0, 100'000).is_open());
  EXPECT_FALSE(DeviceImport::open(good, process, bytes + 1).is_open());
  using Fault = void (*)(DeviceDescription&);
  constexpr Fault faults[] = {
      [](DeviceDescription& d) { d.allocation.kind = 99; },
      [](DeviceDescription& d) { d.allocation.handle_bytes = 65; },
      [](DeviceDescription& d) { d.allocation.reserved[1] = 1; },
      [](DeviceDescription& d) { ++d.allocation.id; },
      [](DeviceDescription& d) { d.allocation.base -= 4096; },
      [](DeviceDescription& d) { d.allocation.base += bytes; },
      [](DeviceDescription& d) { d.offset = bytes - 99'999; },
      [](DeviceDescription& d) { d.offset = UINT64_MAX; },
      [](DeviceDescription& d) {
        d.allocation.length = UINT64_MAX;
        d.offset = bytes - 8;
      },
  };
  for (const Fault fault : faults) {
    DeviceDescription bad = good;
    fault(bad);
    EXPECT_FALSE(DeviceImport::open(bad, process, 100'000).is_open()) << &fault - faults;
  }
  region.close();
}

}  // namespace
}  // namespace lintel
