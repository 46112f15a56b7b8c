// Calls that end the use of an entry, a portal table entry or a descriptor, while messages are in
// progress.
#include <portals4.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "bare_target_support.h"

namespace lintel {
namespace {

using test::must;
using test::wait_until;

class EndingCallsTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, pt_index, &index));
    ptl_me_t entry{};
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_ME_OP_PUT;
    entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    must(PtlMEAppend(ni_, pt_index, &entry, PTL_PRIORITY_LIST, nullptr, &entry_));
    const ptl_md_t description{&memory_, sizeof memory_, 0, PTL_EQ_NONE, PTL_CT_NONE};
    must(PtlMDBind(ni_, &description, &descriptor_));
  }
  [[nodiscard]] NetworkInterface& interface() const { return *interface_of(decode_handle(ni_)); }

  // A round of polling that has delivered a message and released its locks may still have to count
  // it.
  void expect_return_after_round(const std::function<int()>& call) {
    std::atomic<bool> returned{false};
    std::thread caller;
    physical().poller().exclusively([&] {
      physical().poller().token().begin_round();
      caller = std::thread([&] {
        EXPECT_EQ(call(), PTL_OK);
        returned = true;
      });
      EXPECT_FALSE(wait_until([&] { return returned.load(); }, test::quiet_time));
      physical().poller().token().end_round();
    });
    caller.join();
  }
  void expect_refusal_after_poll(int refusal, const std::function<int()>& call) {
    const uint64_t polls = physical().poller().polls();
    EXPECT_TRUE(wait_until([&] {
      EXPECT_EQ(call(), refusal);
      return HasFailure() || physical().poller().polls() != polls;
    }));
  }

  static constexpr ptl_pt_index_t pt_index = 3;
  ptl_handle_me_t entry_{};
  ptl_handle_md_t descriptor_{};
  uint64_t memory_ = 0;
};

// spec 3.7.3
TEST_F(EndingCallsTest, DisablingAPortalWaitsForCounts) {
  expect_return_after_round([&] { return PtlPTDisable(ni_, pt_index); });
}

// spec 3.12.3
TEST_F(EndingCallsTest, UnlinkingAnEntryWaitsForCounts) {
  expect_return_after_round([&] { return PtlMEUnlink(entry_); });
}

// A thread outside any round of polling has posted an event and has yet to count.
// spec 3.14.2
TEST_F(EndingCallsTest, FreeingACounterWaitsForAnnouncedCounts) {
  ptl_handle_ct_t handle{};
  must(PtlCTAlloc(ni_, &handle));
  std::atomic<bool> returned{false};
  std::thread caller;
  {
    const CountAnnouncement announcement(interface().find_counter(handle));
    caller = std::thread([&] {
      EXPECT_EQ(PtlCTFree(handle), PTL_OK);
      returned = true;
    });
    EXPECT_FALSE(wait_until([&] { return returned.load(); }, test::quiet_time));
  }
  caller.join();
}

// An operation in progress ends only if a thread polls.
TEST_F(EndingCallsTest, WhatIsInUseIsRefusedAfterAPoll) {
  MemoryDescriptor& descriptor = *interface().find_descriptor(descriptor_);
  descriptor.pending.fetch_add(1);
  expect_refusal_after_poll(PTL_IN_USE, [&] { return PtlMDRelease(descriptor_); });
  descriptor.pending.fetch_sub(1);
  EXPECT_EQ(PtlMDRelease(descriptor_), PTL_OK);

  PortalEntry& portal = *interface().portal(pt_index);
  ListEntry& entry = *interface().entry_slot(decode_handle(entry_).index);
  const auto change_operations = [&](uint32_t change) {
    std::lock_guard guard(portal.lock);
    entry.operations += change;
    portal.operations += change;
  };
  change_operations(1);
  expect_refusal_after_poll(PTL_IN_USE, [&] { return PtlMEUnlink(entry_); });
  expect_refusal_after_poll(PTL_PT_IN_USE, [&] { return PtlPTFree(ni_, pt_index); });
  change_operations(static_cast<uint32_t>(-1));
  EXPECT_EQ(PtlMEUnlink(entry_), PTL_OK);
  EXPECT_EQ(PtlPTFree(ni_, pt_index), PTL_OK);
}

}  // namespace
}  // namespace lintel
