// The parts of the shared-memory transport, each with as few other parts as possible.
#include <fcntl.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "shm/claim_acceptor.h"
#include "shm/lane_turns.h"
#include "shm/link_ends.h"
#include "shm/receive_lanes.h"
#include "shm/room_wait.h"
#include "shm/segment_directory.h"
#include "shm/shm_links.h"
#include "shm_test_support.h"

namespace lintel::test {
namespace {

std::unique_ptr<Segment> make_segment(uint32_t pid = PTL_PID_ANY) {
  const ShmSettings settings = test::test_settings(pid);
  std::unique_ptr<Segment> segment;
  std::string reason;
  EXPECT_EQ(
      Segment::create({settings.nid, pid, job_hash_of(settings.job_key), 1 << 20}, segment, reason),
      OpenStatus::opened)
      << reason;
  return segment;
}

uint32_t job() { return job_hash_of(test::test_settings().job_key); }

TEST(SegmentName, IsReadAsItWasWritten) {
  const SegmentName name{{0x7f000001, 65535}, 0xfedcba9876543210};
  const std::optional<SegmentName> read = SegmentName::parse(name.text().c_str());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, name.id);
  EXPECT_EQ(read->nonce, name.nonce);
  for (const char* text : {"", ".", "..", "7f000001.5", "7f000001.5.0123456789abcde",
                           "7f000001.5.0123456789abcdef0", "7f000001.05.0123456789abcdef",
                           "7f000001.-5.0123456789abcdef", "7F000001.5.0123456789abcdef"}) {
    EXPECT_FALSE(SegmentName::parse(text)) << text;
  }
}

TEST(SegmentDirectory, SweepsWhatNobodyHasLocked) {
  const auto segment = make_segment();
  const auto directory = SegmentDirectory::open(false);
  ASSERT_TRUE(directory);
  ASSERT_TRUE(directory->lock());
  const std::string dead = directory->path_of({{test::test_nid, 9}, 16});
  close(open(dead.c_str(), O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(nonce_is_alive(16));
  EXPECT_TRUE(nonce_is_alive(segment->nonce()));
  EXPECT_EQ(directory->sweep(), 1u);
  EXPECT_EQ(directory->sweep(), 0u);
  EXPECT_NE(access(dead.c_str(), F_OK), 0);
  EXPECT_EQ(access(segment->path().c_str(), F_OK), 0);
}

TEST(SegmentDirectory, OnlyTheFirstProcessOfAJobSweepsFewSegments) {
  const auto segment = make_segment();
  const auto directory = SegmentDirectory::open(false);
  ASSERT_TRUE(directory);
  const std::string dead = directory->path_of({{test::test_nid, 9}, 16});
  close(open(dead.c_str(), O_CREAT | O_CLOEXEC, 0600));
  setenv("SLURM_LOCALID", "1", 1);
  const auto second = make_segment();
  EXPECT_EQ(access(dead.c_str(), F_OK), 0) << "the second process has removed it";
  unsetenv("SLURM_LOCALID");
  const auto first = make_segment();
  EXPECT_NE(access(dead.c_str(), F_OK), 0) << "the first process has left it";
}

// A process with two segments: `a` with all that receives, `b` with links that send.
class ShmParts : public ::testing::Test {
 protected:
  unsigned poll(unsigned budget) {
    return lanes_.poll_hot(sink_, budget) + lanes_.poll_rest(sink_, budget);
  }
  ShmLink* connect() {
    std::string reason;
    ShmLink* const link = from_b_.connect(a_->id(), reason);
    EXPECT_NE(link, nullptr) << reason;
    return link;
  }
  uint64_t malformed_ = 0;
  std::unique_ptr<Segment> a_ = make_segment();
  std::unique_ptr<Segment> b_ = make_segment();
  ShmLinks from_a_{*a_, job(), true};
  ShmLinks from_b_{*b_, job(), true};
  ReceiveLanes lanes_{*a_, [this](MessageSink&, ShmLink&) { ++malformed_; }};
  JointOffers offers_{a_->header()};
  LinkFailures failures_{from_a_, lanes_, offers_};
  ClaimAcceptor claims_{*a_, from_a_, lanes_, failures_};
  LivenessChecks liveness_{*a_, from_a_, lanes_, failures_};
  RecordingSink sink_;
};

TEST_F(ShmParts, LinksAreFoundAgainUntilTheyFail) {
  ShmLink* const link = connect();
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(connect(), link);
  EXPECT_EQ(from_b_.first(), link);
  EXPECT_NE(link->sender.lane(), no_lane);
  EXPECT_TRUE(link->memory.reach());
  link->failed.store(true);
  from_b_.release(*link);
  EXPECT_EQ(link->segment, nullptr);
  EXPECT_FALSE(link->sender.attached());
  EXPECT_FALSE(link->memory.reach());
  EXPECT_EQ(from_b_.first(), nullptr);
  EXPECT_EQ(connect(), link) << "it serves the next process with that address";
  EXPECT_FALSE(link->failed.load());
  EXPECT_EQ(from_b_.first(), link);
}

TEST_F(ShmParts, ATurnGoesOnWhereLinksWereReleased) {
  const std::unique_ptr<Segment> c = make_segment();
  const std::unique_ptr<Segment> d = make_segment();
  std::string reason;
  ShmLink* const to_a = from_b_.connect(a_->id(), reason);
  ShmLink* const to_c = from_b_.connect(c->id(), reason);
  ShmLink* const to_d = from_b_.connect(d->id(), reason);
  ASSERT_TRUE(to_a != nullptr && to_c != nullptr && to_d != nullptr) << reason;
  EXPECT_EQ(from_b_.made(), 3u);
  EXPECT_EQ(from_b_.next_in_turn(), nullptr) << "none has begun";
  from_b_.begin_turn();
  EXPECT_EQ(from_b_.next_in_turn(), to_d);
  from_b_.begin_turn();
  to_c->failed.store(true);
  from_b_.release(*to_c);
  EXPECT_EQ(from_b_.next_in_turn(), to_a);
  EXPECT_EQ(from_b_.next_in_turn(), nullptr);
}

TEST_F(ShmParts, OnlyWhoIsWhoItSaysIsAccepted) {
  using Status = ShmLinks::Acceptance::Status;
  EXPECT_EQ(from_a_.accept(b_->id(), b_->nonce() + 16).status, Status::refused);
  EXPECT_EQ(from_a_.accept(a_->id(), a_->nonce()).status, Status::refused);
  const ShmLinks::Acceptance acceptance = from_a_.accept(b_->id(), b_->nonce());
  ASSERT_EQ(acceptance.status, Status::accepted);
  EXPECT_EQ(acceptance.replaced, nullptr);
  EXPECT_EQ(acceptance.link->peer, b_->id());
  EXPECT_FALSE(acceptance.link->sender.attached());
  EXPECT_EQ(from_a_.attach(*acceptance.link), SendStatus::sent);
  EXPECT_TRUE(acceptance.link->sender.attached());
  acceptance.link->receive_lane = 0;
  EXPECT_EQ(from_a_.accept(b_->id(), b_->nonce()).status, Status::refused) << "it is connected";
}

TEST_F(ShmParts, ASenderKnowsThatItsLaneIsFull) {
  ShmLink* const link = connect();
  RoomWait room(from_b_);
  EXPECT_TRUE(room.arm()) << "no sender waits";
  room.disarm();
  uint64_t sent = 0;
  while (link->sender.send(put_header(sent), nullptr, 0) == SendStatus::sent) ++sent;
  EXPECT_TRUE(link->sender.blocked());
  EXPECT_TRUE(room.arm());
  claims_.look(sink_);
  EXPECT_EQ(poll(1000), sent < 16 ? sent : 16);
  for (int i = 0; i < 1000; ++i) poll(1000);
  EXPECT_EQ(sink_.total, sent);
  EXPECT_FALSE(room.arm()) << "there is room";
  EXPECT_NE(b_->header().doorbell.rings.load(), 0u) << "and it was said";
  room.disarm();
  EXPECT_EQ(link->sender.send(put_header(sent), nullptr, 0), SendStatus::sent);
  EXPECT_FALSE(link->sender.blocked());
}

TEST_F(ShmParts, LanesAreReadWhileActive) {
  ShmLink* const link = connect();
  ASSERT_TRUE(claims_.anything_new());
  claims_.look(sink_);
  EXPECT_FALSE(claims_.anything_new());
  const uint32_t lane = link->sender.lane();
  EXPECT_EQ(lanes_.state(lane), ReceiveLanes::State::active);
  ASSERT_EQ(sink_.new_links.size(), 1u);
  EXPECT_EQ(lanes_.link(lane), sink_.new_links[0]);
  EXPECT_TRUE(lanes_.arm()) << "no message has arrived";
  ASSERT_EQ(link->sender.send(put_header(1), nullptr, 0), SendStatus::sent);
  EXPECT_FALSE(lanes_.arm());
  // The lane has been idle, so it is polled less often.
  for (int i = 0; i < 5000; ++i) poll(16);
  EXPECT_EQ(sink_.total, 1u);
  ASSERT_EQ(link->sender.send(put_header(2), nullptr, 0), SendStatus::sent);
  EXPECT_EQ(poll(16), 1u);
  lanes_.refuse(lane);
  ASSERT_EQ(link->sender.send(put_header(3), nullptr, 0), SendStatus::sent);
  EXPECT_EQ(poll(16), 0u);
  EXPECT_TRUE(lanes_.empty());
  lanes_.free(lane);
  EXPECT_EQ(a_->entry(lane).owner.load(), 0u);
  EXPECT_EQ(cells_of(a_->lane(lane))[0].header.link_word, 0u);
}

TEST_F(ShmParts, MalformedMessagesAreReported) {
  ShmLink* const link = connect();
  claims_.look(sink_);
  MessageHeader header = put_header(1);
  header.kind = static_cast<MessageKind>(200);
  ASSERT_EQ(link->sender.send(header, nullptr, 0), SendStatus::sent);
  EXPECT_EQ(poll(16), 0u);
  EXPECT_EQ(malformed_, 1u);
  EXPECT_EQ(lanes_.malformed(), 1u);
}

// A peer that writes as fast as its messages are read must not delay the end of its link.
TEST_F(ShmParts, AFailingLinkIsDrainedOnce) {
  class Refilling final : public test::QuietSink {
   public:
    explicit Refilling(ShmLink& link) : link_(link) {}
    void on_messages(Link&, const InboundMessage*, unsigned count) noexcept override {
      total += count;
      for (unsigned i = 0; total < 100000 && i < count; ++i)
        static_cast<void>(link_.sender.send(put_header(1), nullptr, 0));
    }
    void on_peer_failed(Link&) noexcept override { failed = true; }
    uint64_t total = 0;
    bool failed = false;

   private:
    ShmLink& link_;
  };
  ShmLink* const link = connect();
  Refilling sink(*link);
  claims_.look(sink);
  while (link->sender.send(put_header(1), nullptr, 0) == SendStatus::sent) {
  }
  ShmLink& failing = *lanes_.link(link->sender.lane());
  failures_.fail(sink, failing, LinkFailures::Cause::gone);
  EXPECT_TRUE(sink.failed);
  EXPECT_LE(sink.total, a_->geometry().place(link->sender.lane()).geometry.cells + lane_ack_places);
  EXPECT_EQ(failing.segment, nullptr);
  failures_.fail(sink, failing, LinkFailures::Cause::gone);
  EXPECT_EQ(failures_.count(), 1u);
}

// Acknowledgements are stored outside the cells of a lane.
TEST_F(ShmParts, AFullLaneIsDrainedWithItsAcknowledgements) {
  ShmLink* const link = connect();
  claims_.look(sink_);
  constexpr uint32_t cookies[lane_ack_places] = {};
  uint64_t sent = link->sender.acknowledge(cookies, lane_ack_places);
  ASSERT_EQ(sent, lane_ack_places);
  while (link->sender.send(put_header(sent), nullptr, 0) == SendStatus::sent) ++sent;
  failures_.fail(sink_, *lanes_.link(link->sender.lane()), LinkFailures::Cause::gone);
  EXPECT_EQ(sink_.total, sent);
}

TEST_F(ShmParts, ALaneIsRecalledAndReturnedWithItsMessages) {
  ShmLink* const link = connect();
  claims_.look(sink_);
  const uint32_t lane = link->sender.lane();
  LaneRecalls recalls(*a_, lanes_);
  LaneReturns returns(*b_, from_b_);
  recalls.look(0);
  EXPECT_FALSE(recalls.is_pending()) << "no sender requests a lane";
  a_->header().lanes_wanted.store(1);
  recalls.look(0);
  ASSERT_TRUE(recalls.is_pending());
  EXPECT_EQ(link->sender.send(put_header(1), nullptr, 0), SendStatus::sent) << "it is still open";
  returns.look(sink_);
  EXPECT_FALSE(link->sender.attached());
  EXPECT_EQ(from_b_.attach(*link), SendStatus::connecting) << "its messages have not been taken";
  EXPECT_TRUE(from_b_.any_waits());
  EXPECT_EQ(sink_.total, 0u);
  claims_.look(sink_);
  EXPECT_EQ(sink_.total, 1u);
  EXPECT_EQ(lanes_.state(lane), ReceiveLanes::State::unused);
  recalls.look(1);
  EXPECT_FALSE(recalls.is_pending());
  EXPECT_EQ(from_b_.attach(*link), SendStatus::sent);
  EXPECT_FALSE(from_b_.any_waits());
  claims_.look(sink_);
  EXPECT_EQ(link->sender.send(put_header(2), nullptr, 0), SendStatus::sent);
  EXPECT_EQ(poll(16), 1u);
  EXPECT_TRUE(sink_.failures.empty());
  EXPECT_EQ(claims_.refused(), 0u);
}

// If a sender does not return its lane, only that lane is blocked.
TEST_F(ShmParts, ABatchOfRecallsEndsWithoutAnAnswer) {
  connect();
  claims_.look(sink_);
  LaneRecalls recalls(*a_, lanes_);
  a_->header().lanes_wanted.store(1);
  recalls.look(0);
  ASSERT_TRUE(recalls.is_pending());
  recalls.look(LaneRecalls::patience_ns - 1);
  EXPECT_TRUE(recalls.is_pending());
  recalls.look(LaneRecalls::patience_ns);
  EXPECT_FALSE(recalls.is_pending());
  EXPECT_EQ(recalls.count(), 1u);
}

TEST_F(ShmParts, LanesOfFalseClaimsComeBackWhenNobodyOwnsThem) {
  std::unique_ptr<PeerSegment> segment;
  std::string reason;
  ASSERT_EQ(PeerSegment::open(a_->id(), job(), segment, reason), PeerSegment::Status::opened);
  PeerSegment::Claim claim;
  ASSERT_EQ(segment->claim_lane({b_->id(), b_->nonce() + 16}, claim, reason),
            PeerSegment::ClaimStatus::claimed);
  claims_.look(sink_);
  EXPECT_EQ(claims_.refused(), 1u);
  EXPECT_EQ(lanes_.state(claim.lane), ReceiveLanes::State::refused);
  liveness_.check(sink_, nullptr, 0);
  EXPECT_EQ(lanes_.state(claim.lane), ReceiveLanes::State::unused);
}

TEST_F(ShmParts, PeersThatFinishAreNoticed) {
  connect();
  claims_.look(sink_);
  liveness_.check(sink_, nullptr, 0);
  EXPECT_TRUE(sink_.failures.empty());
  b_->header().closed.store(1);
  liveness_.check(sink_, nullptr, 0);
  EXPECT_EQ(sink_.failures.size(), 1u);
}

}  // namespace
}  // namespace lintel::test
