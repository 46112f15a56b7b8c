// Calls that end the use of an entry, a portal table entry or a descriptor, while messages are in
// progress.
#include <portals4.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "core/operations/peer.h"
#include "unit/entry_for_all.h"
#include "util/state_writer.h"

extern "C" void lintel_dump_state();  // src/core/library/state_dump.cc

namespace lintel::test {
namespace {

using test::must;
using test::wait_until;

class EndingCallsTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, pt_index, &index));
    const ptl_me_t entry = test::entry_for_all(nullptr, 0, PTL_ME_OP_PUT);
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

// The state of an interface as a debugger prints it.

using StateDumpTest = BareTargetTest;

std::string dumped() {
  ::testing::internal::CaptureStderr();
  lintel_dump_state();
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(StateDumpTest, NamesAnOperationThatWaitsForItsTarget) {
  EXPECT_EQ(dumped().find("  operation"), std::string::npos);
  ptl_handle_md_t descriptor;
  std::byte buffer[48]{};
  must(PtlMDBind(ni_,
                 std::array{ptl_md_t{buffer, sizeof buffer, 0, PTL_EQ_NONE, PTL_CT_NONE}}.data(),
                 &descriptor));
  must(PtlGet(descriptor, 0, sizeof buffer, target(), 7, 0x5a, 0, nullptr));
  const std::string text = dumped();
  for (const char* part : {"interface 0, ", " by shm: 1 in flight, 0 queued",
                           ": get, 48 bytes, portal 7, match bits 0x5a, was sent, answer due\n",
                           "  1 operations, 0 transfers\n", "  transport shm\n", " 1 of ",
                           " cells not released; receives by lane "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(StateWriterTest, LongLinesAreCut) {
  ::testing::internal::CaptureStderr();
  StateWriter out(STDERR_FILENO);
  out.line("%s", std::string(2000, 'x').c_str());
  out.line("%u", 7u);
  const std::string text = ::testing::internal::GetCapturedStderr();
  const size_t end = text.find('\n');
  EXPECT_GT(end, 400u);
  EXPECT_LT(end, 600u);
  EXPECT_EQ(text.substr(end), "\n7\n");
}

// PTL_MD_VOLATILE while more puts wait than a pool of copies would hold (spec 3.10.1).

using test::must;

class VolatileBuffersTest : public test::BareTargetTest {};

TEST_F(VolatileBuffersTest, EveryPutThatWaitsHasItsCopy) {
  // On a busy machine, calls that send messages from a long queue take long.
  const uint64_t puts = test::long_tests() ? 70'000 : 2'500;
  uint64_t memory = 0;
  const ptl_md_t description{&memory, sizeof memory, PTL_MD_VOLATILE, PTL_EQ_NONE, PTL_CT_NONE};
  ptl_handle_md_t md{};
  must(PtlMDBind(ni_, &description, &md));
  for (; memory < puts; ++memory)
    must(PtlPut(md, 0, sizeof memory, PTL_NO_ACK_REQ, target(), 0, 0, 0, nullptr, 0));
  ASSERT_GT(peer().queue_counts.length.load(), puts / 2);
  const auto& messages = received(puts);
  ASSERT_EQ(messages.size(), puts);
  for (uint64_t i = 0; i < puts && !HasFailure(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, messages[i].payload.data(), sizeof value);
    EXPECT_EQ(value, i);
  }
}

// A peer that is admitted, asks for much and takes none of the answers.

using test::must;
using test::RecordingSink;
using test::wait_until;

constexpr ptl_pt_index_t pt_index = 3;

// Bare transports are the initiators; a transport that is not polled takes no answers.
class GreedyPeerTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(ni_, 0, PTL_EQ_NONE, pt_index, &index));
    const ptl_me_t entry = test::entry_for_all(memory_.data(), memory_.size(), PTL_ME_OP_GET);
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    must(PtlMEAppend(ni_, pt_index, &entry, PTL_PRIORITY_LIST, nullptr, &handle));
    target_link_ = connect(*target_);
  }
  Link* connect(ShmTransport& transport) {
    ptl_process_t id{};
    must(PtlGetPhysId(ni_, &id));
    return test::connect_or_fail(transport, {id.phys.nid, id.phys.pid});
  }
  static void get(ShmTransport& transport, Link& link) {
    MessageHeader header{};
    header.kind = MessageKind::get;
    header.flags = slot_matching;
    header.pt_index = pt_index;
    header.set_length(largest_reply_bytes);
    ASSERT_TRUE(
        wait_until([&] { return transport.send(link, header, nullptr, 0) == SendStatus::sent; }));
  }
  [[nodiscard]] uint32_t waiting() const { return physical().target().answers().long_answers(); }

  std::vector<std::byte> memory_ = test::pattern(1, largest_reply_bytes);
  Link* target_link_ = nullptr;
};

TEST_F(GreedyPeerTest, ItGetsItsShareAndTheOthersGoOnAndAllIsGivenBack) {
  for (unsigned i = 0; i < most_long_answers_of_peer + 1000; ++i) get(*target_, *target_link_);
  EXPECT_TRUE(wait_until([&] { return waiting() == most_long_answers_of_peer; })) << waiting();
  {
    const auto other = test::open_transport(target_settings());
    Link* const link = connect(*other);
    RecordingSink sink;
    for (unsigned i = 0; i < 10; ++i) get(*other, *link);
    EXPECT_TRUE(wait_until([&] {
      other->poll(sink, 64);
      return sink.total == 10;
    }));
    for (const RecordingSink::Received& reply : sink.by_link[link]) {
      EXPECT_EQ(reply.header.fail(), PTL_NI_OK);
      EXPECT_TRUE(reply.payload == memory_);
    }
  }
  EXPECT_EQ(waiting(), most_long_answers_of_peer) << "it still has what it had";
  target_.reset();
  EXPECT_TRUE(wait_until([&] { return waiting() == 0; })) << waiting();
}

}  // namespace
}  // namespace lintel::test
