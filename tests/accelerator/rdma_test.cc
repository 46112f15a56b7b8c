// Puts and gets between memory of accelerators over RDMA devices: two interfaces of this process,
// over stand-ins for the driver and for libibverbs.
#include <portals4.h>

#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

#include "core/library/library.h"
#include "core/objects/network_interface.h"
#include "support/accelerator.h"
#include "support/deadlines.h"
#include "support/fake_verbs/fake_verbs.h"
#include "support/memory.h"
#include "support/objects.h"

namespace lintel {
namespace {

using test::Accelerator;
using test::DeviceBuffer;
using test::expect_pattern;
using test::must;

constexpr ptl_interface_t verbs_interface = 5;

class AcceleratorRdmaTest : public testing::Test {
 protected:
  static constexpr size_t bytes = 3 << 20;

  static void SetUpTestSuite() {
    setenv("PTL_TRANSPORT", "verbs", 1);
    setenv("PTL_LOG_LEVEL", "error", 1);
    setenv("PTL_MODULE_PATH", LINTEL_MODULE_DIRECTORY, 1);
    fake_verbs::reset();
    must(PtlInit());
  }
  void open(const fake_verbs::Settings& settings) {
    fake_verbs::reset(settings);
    accelerator_ = &Accelerator::load("cuda");
    for (const bool target : {false, true}) {
      ptl_handle_ni_t& interface = interfaces_[target];
      must(PtlNIInit(target ? verbs_interface : 0, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
                     nullptr, nullptr, &interface));
      must(PtlEQAlloc(interface, 64, &events_[target]));
      memory_[target].emplace(*accelerator_, bytes);
    }
    must(PtlGetPhysId(interfaces_[1], &target_));
    ptl_pt_index_t index;
    must(PtlPTAlloc(interfaces_[1], 0, events_[1], 0, &index));
    ptl_me_t entry{};
    entry.start = memory_[1]->data();
    entry.length = bytes;
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
    ptl_handle_me_t handle;
    must(PtlMEAppend(interfaces_[1], 0, &entry, PTL_PRIORITY_LIST, nullptr, &handle));
    const ptl_md_t description{memory_[0]->data(), bytes, 0, events_[0], PTL_CT_NONE};
    must(PtlMDBind(interfaces_[0], &description, &md_));
  }
  void TearDown() override {
    for (const ptl_handle_ni_t interface : interfaces_) must(PtlNIFini(interface));
    EXPECT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
    EXPECT_EQ(fake_verbs::violations(), std::vector<std::string>{});
    for (auto& memory : memory_) memory.reset();
  }

  [[nodiscard]] std::span<std::byte> view(bool target) {
    return {accelerator_->view(memory_[target]->data()), bytes};
  }
  void expect(bool target, ptl_event_kind_t kind) {
    ptl_event_t event{};
    unsigned which = 0;
    must(PtlEQPoll(&events_[target], 1, static_cast<ptl_time_t>(test::wait_deadline.count()),
                   &event, &which));
    EXPECT_EQ(event.type, kind);
    EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
  }
  void put_and_get() {
    test::fill(view(false), 1);
    must(PtlPut(md_, 0, bytes, PTL_ACK_REQ, target_, 0, 0, 0, nullptr, 0));
    expect(true, PTL_EVENT_PUT);
    expect(false, PTL_EVENT_SEND);
    expect(false, PTL_EVENT_ACK);
    expect_pattern(view(true), 1);
    test::fill(view(true), 2);
    must(PtlGet(md_, 0, bytes, target_, 0, 0, 0, nullptr));
    expect(false, PTL_EVENT_REPLY);
    expect(true, PTL_EVENT_GET);
    expect_pattern(view(false), 2);
  }
  [[nodiscard]] uint64_t messages(DeviceWay way) {
    return interface_of(decode_handle(interfaces_[1]))
        ->physical()
        .staging()
        .ways()
        .of(way)
        .messages.get();
  }

  Accelerator* accelerator_ = nullptr;
  ptl_handle_ni_t interfaces_[2]{};
  ptl_handle_eq_t events_[2]{};
  std::optional<DeviceBuffer> memory_[2];
  ptl_process_t target_{};
  ptl_handle_md_t md_{};
};

TEST_F(AcceleratorRdmaTest, TheDeviceAccessesWhatItRegistersByDmabuf) {
  open({.dmabuf = true, .peer_memory = false});
  // The first messages may travel as datagrams, until queue pairs are connected.
  for (int round = 0; round < 20; ++round) put_and_get();
  EXPECT_GE(messages(DeviceWay::accessed), 30u);
  EXPECT_GE(fake_verbs::done(IBV_WR_RDMA_READ), 15u);
  EXPECT_GE(fake_verbs::done(IBV_WR_RDMA_WRITE), 15u);
}

TEST_F(AcceleratorRdmaTest, WhatItDoesNotRegisterIsStaged) {
  open({.dmabuf = false, .peer_memory = false});
  for (int round = 0; round < 5; ++round) put_and_get();
  EXPECT_EQ(messages(DeviceWay::accessed), 0u);
  EXPECT_GE(messages(DeviceWay::staged), 10u);
  // Each allocation is tried once with each interface.
  EXPECT_LE(fake_verbs::calls("ibv_reg_dmabuf_mr"), 2u);
}

// Only one side is memory that the device registers.
TEST_F(AcceleratorRdmaTest, RegistrationThatFailsAtTimes) {
  open({.dmabuf = true, .peer_memory = false});
  for (int round = 0; round < 20; ++round) {
    fake_verbs::fail_call("ibv_reg_dmabuf_mr", ENOMEM);
    put_and_get();
  }
}

}  // namespace
}  // namespace lintel
