// The life of a segment: its name, its pid, what is left of dead processes, forked children.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>

#include <gtest/gtest.h>

#include "shm/leftovers.h"
#include "shm/segment_name.h"
#include "shm_test_support.h"

namespace lintel {
namespace {

using test::ChildProcess;
using test::open_transport;
using test::RecordingSink;
using test::Shared;
using test::test_settings;
using test::try_open;
using test::wait_until;

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string path_of(uint32_t pid) {
  return segment_path(job_hash_of(test_settings().job_key), {test::test_nid, pid});
}

// A process that owns the segment of `pid` and is then killed.
void leave_behind(uint32_t pid) {
  Shared<std::atomic<int>> ready;
  ChildProcess child([&]() -> int {
    const auto transport = open_transport(test_settings(pid));
    ready->store(transport != nullptr ? 1 : 2);
    for (;;) pause();
  });
  ASSERT_TRUE(wait_until([&] { return ready->load() != 0; }));
  ASSERT_EQ(ready->load(), 1);
  child.kill_and_wait();
  ASSERT_TRUE(exists(path_of(pid)));
}

TEST(ShmSegment, HasAPrivateFileWhileItLives) {
  auto transport = open_transport(test_settings(5));
  ASSERT_NE(transport, nullptr);
  EXPECT_EQ(transport->id(), (ProcessId{test::test_nid, 5}));
  struct stat status;
  ASSERT_EQ(stat(path_of(5).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_uid, geteuid());
  EXPECT_LE(status.st_size, 1 << 20);
  transport.reset();
  EXPECT_FALSE(exists(path_of(5)));
}

TEST(ShmSegment, UntouchedLanesTakeNoMemory) {
  auto settings = test_settings();
  settings.memory_bytes = 16 << 20;
  const auto transport = open_transport(settings);
  struct stat status;
  ASSERT_EQ(stat(transport->segment().path().c_str(), &status), 0);
  EXPECT_LE(status.st_size, 16 << 20);
  EXPECT_LE(status.st_blocks * 512, 128 << 10);
  EXPECT_GE(transport->segment().geometry().lane_count, 512u);
}

TEST(ShmSegment, LayoutFitsAnyMemory) {
  for (uint64_t bytes = 0; bytes < (40u << 20); bytes += 77777) {
    const SegmentGeometry geometry = SegmentGeometry::plan(bytes);
    if (geometry.lane_count == 0) continue;
    EXPECT_LE(geometry.segment_bytes, bytes);
    EXPECT_LE(geometry.lane_count, segment_max_lanes);
    uint64_t end = first_lane_offset;
    for (uint32_t lane = 0; lane < geometry.lane_count; ++lane) {
      const SegmentGeometry::Place place = geometry.place(lane);
      ASSERT_GE(place.offset_bytes, end) << "lanes overlap";
      ASSERT_TRUE(place.geometry.valid());
      ASSERT_LE(place.geometry.bytes(), place.length_bytes);
      end = place.offset_bytes + place.length_bytes;
    }
    ASSERT_LE(end, geometry.segment_bytes);
    SegmentIdentity identity{};
    std::memcpy(identity.classes, geometry.classes, sizeof identity.classes);
    EXPECT_EQ(SegmentGeometry::checked(identity, geometry.segment_bytes).lane_count,
              geometry.lane_count);
    EXPECT_EQ(SegmentGeometry::checked(identity, geometry.segment_bytes - 1).lane_count, 0u);
  }
}

TEST(ShmSegment, AnyPidGivesDifferentPids) {
  std::vector<std::unique_ptr<ShmTransport>> transports;
  for (int i = 0; i < 20; ++i) {
    transports.push_back(open_transport());
    ASSERT_NE(transports.back(), nullptr);
    EXPECT_LT(transports.back()->id().pid, PTL_PID_MAX);
    for (int k = 0; k < i; ++k) EXPECT_NE(transports[k]->id().pid, transports.back()->id().pid);
  }
}

TEST(ShmSegment, PidInUseByAnotherProcess) {
  static_cast<void>(test_settings());
  const auto transport = open_transport(test_settings(5));
  ChildProcess child([] { return try_open(test_settings(5)) == OpenStatus::pid_in_use ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(exists(path_of(5)));
}

TEST(ShmSegment, PidInUseByThisProcess) {
  const auto transport = open_transport(test_settings(5));
  EXPECT_EQ(try_open(test_settings(5)), OpenStatus::pid_in_use);
  EXPECT_TRUE(exists(path_of(5)));
  // The proof that the owner lives must have survived that.
  ChildProcess child([] { return try_open(test_settings(5)) == OpenStatus::pid_in_use ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmSegment, OtherJobsAndNodesHaveTheirOwnPids) {
  const auto transport = open_transport(test_settings(5));
  auto other_job = test_settings(5);
  other_job.job_key += "x";
  auto other_nid = test_settings(5);
  ++other_nid.nid;
  const auto a = open_transport(other_job);
  const auto b = open_transport(other_nid);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  std::string reason;
  EXPECT_EQ(a->connect({test::test_nid, 6}, &reason), nullptr);
  EXPECT_FALSE(reason.empty());
}

TEST(ShmSegment, LeftoverIsReplaced) {
  static_cast<void>(test_settings());
  leave_behind(21);
  const auto transport = open_transport(test_settings(21));
  ASSERT_NE(transport, nullptr);
  ChildProcess child([] { return try_open(test_settings(21)) == OpenStatus::pid_in_use ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmSegment, EveryStartSweepsLeftovers) {
  static_cast<void>(test_settings());
  const auto alive = open_transport(test_settings(30));
  leave_behind(31);
  leave_behind(32);
  ChildProcess child([] { return open_transport(test_settings(33)) != nullptr ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(exists(path_of(31)));
  EXPECT_FALSE(exists(path_of(32)));
  EXPECT_TRUE(exists(path_of(30)));
}

TEST(ShmSegment, ManyStartersGetOnePidOnce) {
  static_cast<void>(test_settings());
  for (int round = 0; round < 20; ++round) {
    leave_behind(40);
    struct Votes {
      std::atomic<int> go, won, lost, odd, finish;
    };
    Shared<Votes> votes;
    std::vector<ChildProcess> children;
    constexpr int starters = 6;
    for (int i = 0; i < starters; ++i) {
      children.emplace_back([&] {
        if (!wait_until([&] { return votes->go.load() != 0; })) return 1;
        std::unique_ptr<ShmTransport> transport;
        std::string reason;
        switch (ShmTransport::open(test_settings(40), transport, reason)) {
          case OpenStatus::opened:
            ++votes->won;
            break;
          case OpenStatus::pid_in_use:
            ++votes->lost;
            break;
          case OpenStatus::failed:
            ++votes->odd;
        }
        return wait_until([&] { return votes->finish.load() != 0; }) ? 0 : 2;
      });
    }
    votes->go.store(1);
    ASSERT_TRUE(wait_until([&] { return votes->won + votes->lost + votes->odd == starters; }));
    EXPECT_EQ(votes->won, 1) << "round " << round;
    EXPECT_EQ(votes->odd, 0);
    votes->finish.store(1);
    for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
  }
}

TEST(ShmSegment, WhatIsNotASegmentCountsAsInUse) {
  ASSERT_EQ(mkdir(path_of(50).c_str(), 0700), 0);
  EXPECT_EQ(try_open(test_settings(50)), OpenStatus::pid_in_use);
  rmdir(path_of(50).c_str());
  ASSERT_EQ(symlink("/etc/passwd", path_of(51).c_str()), 0);
  EXPECT_EQ(try_open(test_settings(51)), OpenStatus::pid_in_use);
  unlink(path_of(51).c_str());
}

TEST(ShmSegment, TooLittleMemoryIsAnError) {
  auto settings = test_settings();
  settings.memory_bytes = 4096;
  std::unique_ptr<ShmTransport> transport;
  std::string reason;
  EXPECT_EQ(ShmTransport::open(settings, transport, reason), OpenStatus::failed);
  EXPECT_NE(reason.find("PTL_SHM_MEMORY_KIB"), std::string::npos);
}

TEST(ShmSegment, ExitWithoutFinishingRemovesTheName) {
  static_cast<void>(test_settings());
  Shared<std::atomic<int>> ready;
  const pid_t pid = fork();
  if (pid == 0) {
    // Deliberately leaked, as by a program that never calls PtlFini.
    ShmTransport* transport = open_transport(test_settings(60)).release();
    ready->store(transport != nullptr && exists(path_of(60)) ? 1 : 2);
    std::exit(0);
  }
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(ready->load(), 1);
  EXPECT_FALSE(exists(path_of(60)));
}

TEST(ShmSegment, AForkedChildLeavesTheParentsSegmentAlone) {
  static_cast<void>(test_settings());
  auto transport = open_transport(test_settings(70));
  auto peer = open_transport(test_settings(71));
  RecordingSink sink;
  Link* link = test::connect_or_fail(*transport, peer->id());
  ASSERT_EQ(test::send_message(*transport, *link, 1, 8, sink), SendStatus::sent);
  ChildProcess child([&] {
    transport.reset();
    peer.reset();
    if (!exists(path_of(70)) || !exists(path_of(71))) return 1;
    if (try_open(test_settings(70)) != OpenStatus::pid_in_use) return 2;
    const auto own = open_transport();
    if (own == nullptr) return 3;
    // The parent is an ordinary peer now.
    RecordingSink own_sink;
    Link* parent = own->connect({test::test_nid, 71}, nullptr);
    if (parent == nullptr) return 4;
    return test::send_message(*own, *parent, 2, 8, own_sink) == SendStatus::sent ? 0 : 5;
  });
  EXPECT_EQ(child.wait(), 0);
  peer->poll(sink, 16);
  peer->poll(sink, 16);
  EXPECT_EQ(sink.total, 2u) << "the child's destructors closed nothing of ours";
  EXPECT_TRUE(sink.by_link.size() == 2u);
  ASSERT_EQ(test::send_message(*transport, *link, 3, 8, sink), SendStatus::sent);
  peer->poll(sink, 16);
  EXPECT_EQ(sink.total, 3u);
  EXPECT_EQ(transport->counters().peers_failed, 0u);
}

TEST(ShmSegment, NonceTellsWhoLives) {
  const auto transport = open_transport();
  EXPECT_TRUE(nonce_is_alive(transport->segment().nonce()));
  EXPECT_FALSE(nonce_is_alive(transport->segment().nonce() + 16));
}

}  // namespace
}  // namespace lintel
