// Segments and peers with invalid contents: they are refused and counted, and do no harm.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "shm/segment_directory.h"
#include "shm_test_support.h"

namespace lintel::test {
namespace {

constexpr uint64_t forged_nonce = 0x1230;

std::string path_of(uint32_t pid) {
  const auto directory = SegmentDirectory::open(true);
  return directory->path_of({{test::test_nid, pid}, forged_nonce});
}

// A file with the name of a segment, made from a genuine segment.
class ForgedSegment {
 public:
  ForgedSegment(const ShmTransport& genuine, uint32_t pid) : path_(path_of(pid)) {
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT_GE(fd_, 0);
    bytes_ = genuine.segment().geometry().segment_bytes;
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes_)), 0);
    EXPECT_EQ(pwrite(fd_, &genuine.segment().header(), first_lane_offset, 0),
              static_cast<ssize_t>(first_lane_offset));
    change([&](SegmentIdentity& identity) {
      identity.pid = pid;
      identity.nonce = forged_nonce;
    });
  }
  ~ForgedSegment() {
    unlink(path_.c_str());
    close(fd_);
  }
  ForgedSegment(const ForgedSegment&) = delete;
  ForgedSegment& operator=(const ForgedSegment&) = delete;

  void change(const std::function<void(SegmentIdentity&)>& edit) const {
    SegmentIdentity identity;
    EXPECT_EQ(pread(fd_, &identity, sizeof identity, 0), static_cast<ssize_t>(sizeof identity));
    edit(identity);
    EXPECT_EQ(pwrite(fd_, &identity, sizeof identity, 0), static_cast<ssize_t>(sizeof identity));
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

PeerSegment::Status status_of(uint32_t pid, std::string& reason) {
  std::unique_ptr<PeerSegment> segment;
  return PeerSegment::open({test::test_nid, pid}, job_hash_of(test_settings().job_key), segment,
                           reason);
}

struct Forgery {
  const char* name;
  const char* reason;  // part of it
  void (*edit)(SegmentIdentity&);
};

const Forgery forgeries[] = {
    {"magic", "not a segment", [](SegmentIdentity& s) { s.magic ^= 1; }},
    {"layout version", "another version", [](SegmentIdentity& s) { ++s.layout_version; }},
    {"message version", "another version", [](SegmentIdentity& s) { ++s.message_version; }},
    {"size", "inconsistent", [](SegmentIdentity& s) { s.segment_bytes -= 4096; }},
    {"lane count", "inconsistent", [](SegmentIdentity& s) { ++s.lane_count; }},
    {"nid", "inconsistent", [](SegmentIdentity& s) { ++s.nid; }},
    {"pid", "inconsistent", [](SegmentIdentity& s) { ++s.pid; }},
    {"nonce", "inconsistent", [](SegmentIdentity& s) { s.nonce |= 1; }},
    {"lanes", "inconsistent", [](SegmentIdentity& s) { s.classes[2].lanes += 1; }},
    {"many lanes", "inconsistent", [](SegmentIdentity& s) { s.classes[2].lanes = UINT32_MAX; }},
    {"no lanes", "inconsistent",
     [](SegmentIdentity& s) {
       for (LaneClass& c : s.classes) c.lanes = 0;
       s.lane_count = 0;
     }},
    {"cells", "inconsistent", [](SegmentIdentity& s) { s.classes[2].cells = 1u << 30; }},
    {"no cells", "inconsistent", [](SegmentIdentity& s) { s.classes[2].cells = 0; }},
    {"byte ring", "inconsistent", [](SegmentIdentity& s) { s.classes[2].data_bytes = 1u << 31; }},
    {"small byte ring", "inconsistent", [](SegmentIdentity& s) { s.classes[2].data_bytes = 64; }},
    {"stride", "inconsistent", [](SegmentIdentity& s) { s.classes[2].stride_bytes = 64; }},
    {"odd stride", "inconsistent", [](SegmentIdentity& s) { s.classes[2].stride_bytes += 1; }},
    {"offset behind the end", "inconsistent",
     [](SegmentIdentity& s) { s.classes[2].offset_bytes = UINT64_MAX - 4095; }},
    {"offset in the table", "inconsistent",
     [](SegmentIdentity& s) { s.classes[2].offset_bytes = 4096; }},
    {"odd offset", "inconsistent", [](SegmentIdentity& s) { s.classes[2].offset_bytes += 8; }},
};

TEST(ShmHostile, ForgedSegmentsAreRefused) {
  const auto genuine = open_transport();
  const ForgedSegment forged(*genuine, 900);
  std::string reason;
  ASSERT_EQ(status_of(900, reason), PeerSegment::Status::opened) << reason;
  SegmentIdentity original;
  forged.change([&](SegmentIdentity& identity) { original = identity; });
  for (const Forgery& forgery : forgeries) {
    forged.change(forgery.edit);
    EXPECT_EQ(status_of(900, reason), PeerSegment::Status::refused) << forgery.name;
    EXPECT_NE(reason.find(forgery.reason), std::string::npos) << forgery.name << ": " << reason;
    std::string connect_reason;
    EXPECT_EQ(genuine->connect({test::test_nid, 900}, &connect_reason), nullptr);
    EXPECT_EQ(connect_reason, reason);
    forged.change([&](SegmentIdentity& identity) { identity = original; });
  }
  EXPECT_EQ(status_of(900, reason), PeerSegment::Status::opened) << reason;
}

TEST(ShmHostile, ShortAndForeignFilesAreRefused) {
  const auto genuine = open_transport();
  std::string reason;
  {
    const ForgedSegment forged(*genuine, 901);
    ASSERT_EQ(ftruncate(forged.fd(), 100), 0);
    EXPECT_EQ(status_of(901, reason), PeerSegment::Status::refused);
    ASSERT_EQ(ftruncate(forged.fd(), 0), 0);
    EXPECT_EQ(status_of(901, reason), PeerSegment::Status::refused);
  }
  ASSERT_EQ(mkfifo(path_of(902).c_str(), 0600), 0);
  EXPECT_EQ(status_of(902, reason), PeerSegment::Status::refused) << "and does not hang";
  unlink(path_of(902).c_str());
  ASSERT_EQ(symlink(genuine->segment().path().c_str(), path_of(903).c_str()), 0);
  EXPECT_EQ(status_of(903, reason), PeerSegment::Status::refused);
  unlink(path_of(903).c_str());
}

TEST(ShmHostile, SegmentsOfOtherUsersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  const auto genuine = open_transport();
  const ForgedSegment forged(*genuine, 904);
  ASSERT_EQ(fchown(forged.fd(), 65534, 65534), 0);
  std::string reason;
  EXPECT_EQ(status_of(904, reason), PeerSegment::Status::refused);
  EXPECT_NE(reason.find("user 65534"), std::string::npos) << reason;
  EXPECT_EQ(test::try_open(test_settings(904)), OpenStatus::opened);
}

TEST(ShmHostile, DeadSegmentsAreNotConnectedTo) {
  const auto genuine = open_transport();
  const ForgedSegment forged(*genuine, 905);  // no process holds its lock
  std::string reason;
  EXPECT_EQ(genuine->connect({test::test_nid, 905}, &reason), nullptr);
  EXPECT_NE(reason.find("ended"), std::string::npos) << reason;
}

// A peer that writes arbitrary values into the segment of its victim.
class Rogue {
 public:
  explicit Rogue(const ShmTransport& victim) : victim_(victim) {
    std::string reason;
    EXPECT_EQ(
        PeerSegment::open(victim.id(), job_hash_of(test_settings().job_key), segment_, reason),
        PeerSegment::Status::opened)
        << reason;
  }
  PeerSegment::Claim claim(ProcessId as, uint64_t nonce) {
    PeerSegment::Claim claim;
    std::string reason;
    EXPECT_EQ(segment_->claim_lane({as, nonce}, claim, reason), PeerSegment::ClaimStatus::claimed)
        << reason;
    return claim;
  }
  PeerSegment& segment() { return *segment_; }
  [[nodiscard]] LaneState state(uint32_t lane) const {
    return static_cast<LaneState>(victim_.segment().entry(lane).owner.load() & lane_state_mask);
  }

 private:
  const ShmTransport& victim_;
  std::unique_ptr<PeerSegment> segment_;
};

TEST(ShmHostile, ClaimsThatLieAreRefused) {
  const auto victim = open_transport();
  const auto bystander = open_transport();
  Rogue rogue(*victim);
  RecordingSink sink;
  // One claim in the name of a living process with another nonce, and one in the name of the victim
  // itself with the right nonce.
  const auto lie = rogue.claim(bystander->id(), bystander->segment().nonce() ^ 0x1000);
  rogue.claim(victim->id(), victim->segment().nonce());
  LaneProducer producer;
  ASSERT_TRUE(producer.attach(lie.control, lie.geometry));
  ASSERT_EQ(producer.push(put_header(1), nullptr, 0), SendStatus::sent);
  victim->poll(sink, 16);
  victim->poll(sink, 16);
  EXPECT_EQ(sink.total, 0u);
  EXPECT_TRUE(sink.new_links.empty());
  EXPECT_EQ(victim->counters().links_refused, 2u);
  EXPECT_TRUE(victim->arm(false)) << "a refused lane must not prevent sleep";
  victim->disarm();
  // The bystander can still connect and send.
  Link* link = connect_or_fail(*bystander, victim->id());
  ASSERT_EQ(send_message(*bystander, *link, 1, 8, sink), SendStatus::sent);
  victim->poll(sink, 16);
  EXPECT_EQ(sink.total, 1u);
}

TEST(ShmHostile, HalfMadeClaimsOfTheDeadComeBack) {
  const auto victim = open_transport();
  const auto bystander = open_transport();
  RecordingSink sink;
  const uint64_t claiming = static_cast<uint64_t>(LaneState::claiming);
  std::atomic<uint64_t>& of_dead = victim->segment().entry(0).owner;
  std::atomic<uint64_t>& of_living = victim->segment().entry(1).owner;
  of_dead.store((bystander->segment().nonce() ^ 0x1000) | claiming);
  of_living.store(bystander->segment().nonce() | claiming);
  EXPECT_TRUE(wait_until([&] {
    victim->check_peers(sink, nullptr, 0);
    return of_dead.load() == 0;
  }));
  for (int i = 0; i < 100; ++i) victim->check_peers(sink, nullptr, 0);
  EXPECT_EQ(of_living.load(), bystander->segment().nonce() | claiming);
  of_living.store(0);
}

// For each message that is received, the peer puts another one into the lane.
class RefilledSink final : public test::QuietSink {
 public:
  static constexpr uint64_t most_refills = 100'000;
  RefilledSink(ShmTransport& peer, Link& link) : peer_(peer), link_(link) {}

  void refill() {
    while (refills < most_refills &&
           peer_.send(link_, put_header(1), nullptr, 0) == SendStatus::sent)
      ++refills;
  }
  void on_messages(Link&, const InboundMessage*, unsigned count) noexcept override {
    total += count;
    refill();
  }
  void on_peer_failed(Link&) noexcept override { ++failures; }

  uint64_t refills = 0;
  uint64_t total = 0;
  int failures = 0;

 private:
  ShmTransport& peer_;
  Link& link_;
};

// The peer marks its segment as closed and continues to send. At most one full lane is read.
TEST(ShmHostile, APeerThatSendsAfterItsEndIsReadNoLongerThanOneLane) {
  const auto victim = open_transport();
  const auto peer = open_transport();
  Link* const link = connect_or_fail(*peer, victim->id());
  ASSERT_NE(link, nullptr);
  RecordingSink first;
  ASSERT_EQ(send_message(*peer, *link, 1, 8, first), SendStatus::sent);
  victim->poll(first, 16);
  ASSERT_EQ(first.total, 1u);
  RefilledSink sink(*peer, *link);
  sink.refill();
  const uint64_t filled = sink.refills;
  ASSERT_GT(filled, 0u);
  peer->segment().header().closed.store(1);
  victim->check_peers(sink, nullptr, 0);
  EXPECT_EQ(sink.failures, 1);
  EXPECT_GE(sink.total, filled) << "what it had sent arrives";
  EXPECT_LE(sink.total, filled + 1 + lane_ack_places);
}

// Processes of one user may do to each other what ptrace permits. If a process truncates its
// segment, its users end by SIGBUS, and no others.
TEST(ShmHostile, ATruncatedSegmentEndsItsUsersAndNoOthers) {
  const auto bystander = open_transport(test_settings(920));
  Shared<std::atomic<int>> stage;
  ChildProcess owner([&]() -> int {
    const auto own = open_transport(test_settings(921));
    RecordingSink sink;
    stage->store(1);
    if (!wait_until([&] {
          own->poll(sink, 16);
          return sink.total > 0;
        }))
      return 2;
    const auto directory = SegmentDirectory::open(false);
    if (!directory) return 3;
    const std::string path = directory->path_of({{test::test_nid, 921}, own->segment().nonce()});
    stage->store(2);
    if (truncate(path.c_str(), 0) != 0) return 4;
    stage->store(3);
    pause();
    return 0;
  });
  ASSERT_TRUE(wait_until([&] { return stage->load() == 1; }));
  ChildProcess user([&]() -> int {
    const auto own = open_transport(test_settings(922));
    // A sanitizer would report the signal and exit.
    if (test::slowdown != 1) signal(SIGBUS, SIG_DFL);
    Link* const link = own->connect({test::test_nid, 921}, nullptr);
    if (link == nullptr) return 2;
    static_cast<void>(wait_until([&] {
      const MessageHeader header = put_header(1);
      static_cast<void>(own->send(*link, header, nullptr, 0));
      return false;
    }));
    return 3;
  });
  EXPECT_EQ(user.wait(), 1000 + SIGBUS);
  // The user may end before truncate() returns in the owner.
  EXPECT_TRUE(wait_until([&] { return stage->load() == 3; }));
  const auto peer = open_transport(test_settings(923));
  Link* const link = connect_or_fail(*peer, bystander->id());
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(peer->send(*link, put_header(1), nullptr, 0), SendStatus::sent);
  RecordingSink sink;
  EXPECT_TRUE(wait_until([&] {
    bystander->poll(sink, 16);
    return sink.total == 1;
  }));
  owner.kill_and_wait();
  const auto directory = SegmentDirectory::open(false);
  ASSERT_TRUE(directory && directory->lock());
  EXPECT_GE(directory->sweep(), 1u);
}

}  // namespace
}  // namespace lintel::test
