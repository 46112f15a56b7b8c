// What a target makes of a request before it touches memory: whether an entry permits and accepts
// it, and how much of it the entry takes.
#include <portals4.h>

#include <cstring>

#include <gtest/gtest.h>

#include "bare_target_support.h"

namespace lintel {
namespace {

using test::must;

class TargetRequestTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    must(PtlGetPhysId(ni_, &self_));
    must(PtlEQAlloc(ni_, 64, &arrived_));
    must(PtlEQAlloc(ni_, 64, &replies_));
    must(PtlPTAlloc(ni_, 0, arrived_, PTL_PT_ANY, &index_));
    const ptl_md_t sent{source_, sizeof source_, 0, PTL_EQ_NONE, PTL_CT_NONE};
    must(PtlMDBind(ni_, &sent, &put_));
    const ptl_md_t got{result_, sizeof result_, 0, replies_, PTL_CT_NONE};
    must(PtlMDBind(ni_, &got, &get_));
  }
  ptl_handle_me_t append(unsigned options, ptl_size_t length) {
    ptl_me_t entry{};
    entry.start = memory_;
    entry.length = length;
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.match_id = self_;
    entry.options = PTL_ME_EVENT_LINK_DISABLE | options;
    ptl_handle_me_t handle;
    must(PtlMEAppend(ni_, index_, &entry, PTL_PRIORITY_LIST, memory_ + length, &handle));
    return handle;
  }
  static ptl_event_t next_event(ptl_handle_eq_t queue) {
    ptl_event_t event{};
    unsigned which = 0;
    must(
        PtlEQPoll(&queue, 1, static_cast<ptl_time_t>(test::wait_deadline.count()), &event, &which));
    return event;
  }
  ptl_event_t put(ptl_size_t length, ptl_size_t offset) {
    must(PtlPut(put_, 0, length, PTL_NO_ACK_REQ, self_, index_, 0, offset, nullptr, 0));
    return next_event(arrived_);
  }
  // The length of the first entry that can take it.
  ptl_size_t taken_by(ptl_size_t length, ptl_size_t offset) {
    const ptl_event_t event = put(length, offset);
    EXPECT_EQ(event.mlength, length);
    return static_cast<ptl_size_t>(static_cast<const std::byte*>(event.user_ptr) - memory_);
  }

  ptl_process_t self_{};
  ptl_handle_eq_t arrived_{};
  ptl_handle_eq_t replies_{};
  ptl_pt_index_t index_ = 0;
  ptl_handle_md_t put_{};
  ptl_handle_md_t get_{};
  std::byte source_[64] = {};
  std::byte result_[64] = {};
  std::byte memory_[64] = {};
};

// spec 3.11.1, 3.12.1, table 4-7
TEST_F(TargetRequestTest, WhatReadsAndWritesNeedsBothPermissions) {
  constexpr unsigned both = PTL_ME_OP_PUT | PTL_ME_OP_GET;
  for (const unsigned options : {unsigned{PTL_ME_OP_PUT}, unsigned{PTL_ME_OP_GET}, both}) {
    const ptl_handle_me_t entry = append(options, sizeof memory_);
    const ptl_ni_fail_t expected = options == both ? PTL_NI_OK : PTL_NI_OP_VIOLATION;
    must(PtlFetchAtomic(get_, 0, put_, 0, 8, self_, index_, 0, 0, nullptr, 0, PTL_SUM,
                        PTL_UINT64_T));
    EXPECT_EQ(next_event(replies_).ni_fail_type, expected) << options;
    must(PtlSwap(get_, 0, put_, 0, 8, self_, index_, 0, 0, nullptr, 0, nullptr, PTL_SWAP,
                 PTL_UINT64_T));
    EXPECT_EQ(next_event(replies_).ni_fail_type, expected) << options;
    must(PtlMEUnlink(entry));
  }
}

// spec 3.12.1
TEST_F(TargetRequestTest, WhatDoesNotFitPassesAnEntryThatMustNotTruncate) {
  append(PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, 16);
  append(PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, 32);
  append(PTL_ME_OP_PUT, 64);
  EXPECT_EQ(taken_by(16, 0), 16u);
  EXPECT_EQ(taken_by(17, 0), 32u);
  EXPECT_EQ(taken_by(16, 1), 32u);
  EXPECT_EQ(taken_by(33, 0), 64u);
  EXPECT_EQ(taken_by(0, 33), 16u) << "zero bytes always fit";
}

TEST_F(TargetRequestTest, AtomicsAreTruncatedToWholeItems) {
  append(PTL_ME_OP_PUT, 21);
  std::memset(source_, 1, sizeof source_);
  must(PtlAtomic(put_, 0, 32, PTL_NO_ACK_REQ, self_, index_, 0, 0, nullptr, 0, PTL_SUM,
                 PTL_UINT64_T));
  const ptl_event_t event = next_event(arrived_);
  EXPECT_EQ(event.rlength, 32u);
  EXPECT_EQ(event.mlength, 16u);
  EXPECT_EQ(std::memcmp(memory_, source_, 16), 0);
  EXPECT_EQ(memory_[16], std::byte{0});
  EXPECT_EQ(put(32, 0).mlength, 21u) << "a put is truncated to bytes";
}

}  // namespace
}  // namespace lintel
