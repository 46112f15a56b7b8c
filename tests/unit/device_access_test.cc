// Memory of devices over a transport that may access it: what it cannot register goes through
// buffers, and what these do not reach goes in messages.
#include <portals4.h>

#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/library/library.h"
#include "core/objects/network_interface.h"
#include "core/operations/staging_buffers.h"
#include "scripted_transport.h"
#include "support/deadlines.h"
#include "support/memory.h"
#include "support/objects.h"
#include "test_memory_kind.h"
#include "unit/entry_for_all.h"

namespace lintel {
namespace {

using test::expect_pattern;
using test::must;
using test::ScriptedTransport;
using test::TestMemoryKind;
using Access = ScriptedTransport::Access;

constexpr uint32_t interface_number = 7;
constexpr ProcessId own_id{1, 70};
constexpr ProcessId peer_id{1, 71};

std::unique_ptr<Transport> next_transport;

OpenedTransports open_transports(uint32_t, uint32_t) {
  OpenedTransports opened;
  opened.transports.push_back(std::move(next_transport));
  opened.id = own_id;
  opened.status = OpenStatus::opened;
  return opened;
}

class DeviceAccessTest : public testing::Test {
 protected:
  static constexpr size_t bytes = 1 << 20;

  static void SetUpTestSuite() { must(PtlInit()); }
  static void TearDownTestSuite() { TestMemoryKind::leave(); }
  void SetUp() override {
    kind_.reset();
    device_ = kind_.allocate(bytes);
    auto transport = std::make_unique<ScriptedTransport>();
    transport_ = transport.get();
    transport_->offers.remote_access = transport_->offers.remote_asynchronous = true;
    transport_->offers.accesses_accelerators = true;
    next_transport = std::move(transport);
    must(open_interface(interface_number, slot_matching, own_id.pid, nullptr, open_transports,
                        &interface_));
    must(PtlEQAlloc(interface_->handle(), 64, &events_));
    const ptl_md_t description{device_, bytes, 0, events_, PTL_CT_NONE};
    must(PtlMDBind(interface_->handle(), &description, &md_));
  }
  void TearDown() override {
    must(close_interface(interface_->handle()));
    kind_.free(device_);
  }

  [[nodiscard]] PhysicalInterface& physical() { return interface_->physical(); }
  [[nodiscard]] Link& link() { return *physical().peers().find_or_connect(peer_id)->route.link; }
  [[nodiscard]] const DeviceWays::Traffic& way(DeviceWay way) {
    return physical().staging().ways().of(way);
  }
  template <typename Action>
  void exclusively(const Action& action) {
    physical().poller().exclusively(action);
  }
  std::vector<ScriptedTransport::Sent> sent() {
    std::vector<ScriptedTransport::Sent> copy;
    exclusively([&] { copy = transport_->sent; });
    return copy;
  }
  std::vector<Access> accesses() {
    std::vector<Access> copy;
    exclusively([&] { copy = transport_->accesses; });
    return copy;
  }
  void end_access(const Access& access) {
    uint64_t length = 0;
    for (const Piece& piece : access.local) length += piece.length;
    Link& from = link();
    exclusively([&] {
      physical().on_remote_done(from, access.token, {RemoteStatus::done, length});
    });
  }
  ptl_event_t expect(ptl_event_kind_t kind) { return test::expect_event(events_, kind, PTL_NI_OK); }
  void put() {
    ptl_process_t target;
    target.phys = {peer_id.nid, peer_id.pid};
    must(PtlPut(md_, 0, bytes, PTL_ACK_REQ, target, 0, 0, 0, nullptr, 0));
  }
  // The peer puts its memory into the device, or gets it from there.
  void receive(MessageKind kind) {
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface_->handle(), 0, events_, PTL_PT_ANY, &index));
    const ptl_me_t entry = test::entry_for_all(
        device_, bytes, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t handle;
    must(PtlMEAppend(interface_->handle(), index, &entry, PTL_PRIORITY_LIST, nullptr, &handle));
    MessageHeader header{};
    header.set(kind, flag_remote_memory | interface_->request_flags(), 0,
               MessageHeader::modes_of(PTL_INT8_T, PTL_ACK_REQ), 0, index, bytes);
    const RemoteMemory theirs{0x1000, bytes, 9};
    const InboundMessage message{header, reinterpret_cast<const std::byte*>(&theirs),
                                 sizeof theirs};
    Link& from = link();
    exclusively([&] { physical().on_messages(from, &message, 1); });
  }

  TestMemoryKind& kind_ = TestMemoryKind::in_use();
  ScriptedTransport* transport_ = nullptr;
  NetworkInterface* interface_ = nullptr;
  std::byte* device_ = nullptr;
  ptl_handle_eq_t events_{};
  ptl_handle_md_t md_{};
};

TEST_F(DeviceAccessTest, MemoryOfAPutIsExposed) {
  put();
  const auto messages = sent();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].header.modes & names_device, 0);
  ASSERT_EQ(messages[0].payload.size(), sizeof(RemoteMemory));
  RemoteMemory told{};
  std::memcpy(&told, messages[0].payload.data(), sizeof told);
  EXPECT_EQ(told.address, reinterpret_cast<uint64_t>(device_));
  EXPECT_EQ(told.length, bytes);
}

TEST_F(DeviceAccessTest, WhatCannotBeExposedIsSentOnRequest) {
  transport_->exposes = false;
  test::fill({kind_.inside(device_), bytes}, 3);
  put();
  auto messages = sent();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0].payload.empty());
  MessageHeader request{};
  request.kind = MessageKind::data_request;
  request.cookie = messages[0].header.cookie;
  request.set_length(bytes);
  const InboundMessage message{request, nullptr, 0};
  Link& from = link();
  exclusively([&] { physical().on_messages(from, &message, 1); });
  std::vector<std::byte> arrived;
  for (int round = 0; round < 10'000 && arrived.size() < bytes; ++round) {
    exclusively([&] { physical().poller().poll_once(); });
    arrived.clear();
    for (const auto& each : sent())
      if (each.header.kind == MessageKind::data)
        arrived.insert(arrived.end(), each.payload.begin(), each.payload.end());
  }
  expect_pattern(arrived, 3);
  EXPECT_EQ(way(DeviceWay::staged).messages.get(), 1u);
  EXPECT_EQ(way(DeviceWay::staged).bytes.get(), bytes);
}

TEST_F(DeviceAccessTest, TheNetworkAccessesTheDevice) {
  for (const MessageKind kind : {MessageKind::put, MessageKind::get}) {
    receive(kind);
    const Access access = accesses().back();
    EXPECT_EQ(access.write, kind == MessageKind::get);
    ASSERT_EQ(access.local.size(), 1u);
    EXPECT_EQ(access.local[0].base, device_);
    EXPECT_EQ(access.local[0].length, bytes);
    end_access(access);
    EXPECT_EQ(expect(kind == MessageKind::get ? PTL_EVENT_GET : PTL_EVENT_PUT).mlength, bytes);
  }
  EXPECT_EQ(accesses().size(), 2u);
  EXPECT_EQ(way(DeviceWay::accessed).messages.get(), 2u);
  EXPECT_EQ(physical().staging().streams(), 0u);
}

// The network reads into buffers of the host, from which the device copies.
TEST_F(DeviceAccessTest, WhatCannotBeRegisteredGoesThroughBuffers) {
  std::vector<std::byte> theirs(bytes);
  test::fill(theirs, 4);
  transport_->access = [this](const Access& access) {
    return access.local[0].base < device_ || access.local[0].base >= device_ + bytes;
  };
  receive(MessageKind::put);
  size_t ended = 1;
  for (int round = 0; round < 10'000 && ended < 5; ++round) {
    exclusively([&] { physical().poller().poll_once(); });
    for (const auto all = accesses(); ended < all.size(); ++ended) {
      ASSERT_EQ(all[ended].local[0].length, StagingBuffers::buffer_bytes);
      std::memcpy(all[ended].local[0].base, &theirs[all[ended].remote[0].address - 0x1000],
                  StagingBuffers::buffer_bytes);
      end_access(all[ended]);
    }
  }
  EXPECT_EQ(expect(PTL_EVENT_PUT).mlength, bytes);
  expect_pattern({kind_.inside(device_), bytes}, 4);
  EXPECT_EQ(way(DeviceWay::staged).messages.get(), 1u);
}

TEST_F(DeviceAccessTest, WhatIsNotReachedAtAllGoesInMessages) {
  transport_->access = [](const Access&) { return false; };
  receive(MessageKind::put);
  EXPECT_EQ(accesses().size(), 2u);
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(sent()[0].header.kind, MessageKind::data_request);
}

}  // namespace
}  // namespace lintel
