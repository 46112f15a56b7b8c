// put_to_self(): which puts PtlPut delivers itself, and which it passes to the transport.
#include <portals4.h>

#include <cstring>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "core/operations/initiator.h"
#include "core/progress/wait.h"

namespace lintel {
namespace {

using test::must;
using test::wait_until;

class PutToSelfTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    must(PtlGetPhysId(ni_, &self_));
    must(PtlEQAlloc(ni_, 64, &arrived_));
    must(PtlEQAlloc(ni_, 64, &sent_));
    must(PtlPTAlloc(ni_, 0, arrived_, PTL_PT_ANY, &index_));
    const ptl_md_t description{source_, sizeof source_, 0, sent_, PTL_CT_NONE};
    must(PtlMDBind(ni_, &description, &md_));
  }
  void append(unsigned options) {
    ptl_me_t entry{};
    entry.start = target_memory_;
    entry.length = sizeof target_memory_;
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.match_id = self_;
    entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options;
    ptl_handle_me_t handle;
    must(PtlMEAppend(ni_, index_, &entry, PTL_PRIORITY_LIST, nullptr, &handle));
  }
  void put(ptl_size_t length, ptl_hdr_data_t number) {
    must(PtlPut(md_, 0, length, PTL_ACK_REQ, self_, index_, 0, 0, nullptr, number));
  }
  ptl_event_t expect_event(ptl_handle_eq_t queue, ptl_event_kind_t kind) {
    ptl_event_t event{};
    unsigned which = 0;
    must(
        PtlEQPoll(&queue, 1, static_cast<ptl_time_t>(test::wait_deadline.count()), &event, &which));
    EXPECT_EQ(event.type, kind);
    EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
    return event;
  }

  ptl_process_t self_{};
  ptl_handle_eq_t arrived_{};
  ptl_handle_eq_t sent_{};
  ptl_pt_index_t index_ = 0;
  ptl_handle_md_t md_{};
  unsigned char source_[2 * largest_put_to_self] = {};
  unsigned char target_memory_[4 * largest_put_to_self] = {};
};

TEST_F(PutToSelfTest, LengthsOnBothSidesOfTheLimitArrive) {
  append(0);
  for (size_t length : {size_t{0}, size_t{1}, largest_put_to_self, largest_put_to_self + 1}) {
    std::memset(source_, static_cast<int>(length), sizeof source_);
    std::memset(target_memory_, 0, sizeof target_memory_);
    put(length, length);
    const ptl_event_t event = expect_event(arrived_, PTL_EVENT_PUT);
    EXPECT_EQ(event.mlength, length);
    EXPECT_EQ(event.hdr_data, length);
    EXPECT_EQ(std::memcmp(target_memory_, source_, length), 0);
    EXPECT_EQ(target_memory_[length], 0);
    expect_event(sent_, PTL_EVENT_SEND);
    EXPECT_EQ(expect_event(sent_, PTL_EVENT_ACK).mlength, length);
  }
}

TEST_F(PutToSelfTest, AnEntryThatDoesMoreGetsItThroughTheTransport) {
  append(PTL_ME_MANAGE_LOCAL);
  for (unsigned i = 0; i < 2; ++i) {
    put(8, i);
    EXPECT_EQ(expect_event(arrived_, PTL_EVENT_PUT).start, target_memory_ + 8 * i);
    expect_event(sent_, PTL_EVENT_SEND);
    EXPECT_EQ(expect_event(sent_, PTL_EVENT_ACK).remote_offset, 8 * i);
  }
}

TEST_F(PutToSelfTest, DoesNotOvertakeAnEarlierPut) {
  append(0);
  PollToken& token = physical().poller().token();
  for (ptl_hdr_data_t round = 0; round < 100; ++round) {
    ASSERT_TRUE(wait_until([&] { return token.try_acquire(); }));
    put(8, 2 * round);  // no thread can poll: the put is sent through the transport
    token.release();
    put(8, 2 * round + 1);
    EXPECT_EQ(expect_event(arrived_, PTL_EVENT_PUT).hdr_data, 2 * round);
    EXPECT_EQ(expect_event(arrived_, PTL_EVENT_PUT).hdr_data, 2 * round + 1);
    ptl_event_t event;
    for (int i = 0; i < 4; ++i) must(PtlEQWait(sent_, &event));
  }
}

}  // namespace
}  // namespace lintel
