// A peer that is admitted, asks for much and takes none of the answers.
#include <portals4.h>

#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "core/operations/peer.h"

namespace lintel {
namespace {

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
    ptl_me_t entry{};
    entry.start = memory_.data();
    entry.length = memory_.size();
    entry.uid = PTL_UID_ANY;
    entry.ct_handle = PTL_CT_NONE;
    entry.options = PTL_ME_OP_GET;
    entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
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
}  // namespace lintel
