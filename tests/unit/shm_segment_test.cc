// Segments from creation to removal: their names and pids, leftovers of dead processes, forked
// children.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "shm/segment_directory.h"
#include "shm_test_support.h"
#include "support/system_calls.h"
#include "util/page_size.h"

namespace lintel::test {
namespace {

bool exists(uint32_t pid) { return !test::segments_of(pid).empty(); }

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
  ASSERT_TRUE(exists(pid));
}

class ShmSegment : public testing::Test {
 protected:
  // Before the tests fork: what the settings are made of belongs to the first process that asks.
  ShmSegment() { static_cast<void>(test_settings()); }

 private:
  const test::EmptySegmentRoot root_;
};

TEST_F(ShmSegment, HasAPrivateFileWhileItLives) {
  auto transport = open_transport(test_settings(5));
  ASSERT_NE(transport, nullptr);
  EXPECT_EQ(transport->id(), (ProcessId{test::test_nid, 5}));
  struct stat status;
  ASSERT_EQ(test::segments_of(5), std::vector{transport->segment().path()});
  ASSERT_EQ(stat(transport->segment().path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_uid, geteuid());
  EXPECT_LE(status.st_size, 1 << 20);
  transport.reset();
  EXPECT_FALSE(exists(5));
}

TEST_F(ShmSegment, UntouchedLanesTakeNoMemory) {
  auto settings = test_settings();
  settings.memory_bytes = 16 << 20;
  const auto transport = open_transport(settings);
  struct stat status;
  ASSERT_EQ(stat(transport->segment().path().c_str(), &status), 0);
  EXPECT_LE(status.st_size, 16 << 20);
  EXPECT_LE(status.st_blocks * 512, 128 << 10);
  EXPECT_GE(transport->segment().geometry().lane_count, 512u);
}

TEST_F(ShmSegment, LayoutFitsAnyMemory) {
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

TEST_F(ShmSegment, PidInUseByAnotherProcess) {
  const auto transport = open_transport(test_settings(5));
  ChildProcess child([] { return try_open(test_settings(5)) == OpenStatus::pid_in_use ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(exists(5));
}

TEST_F(ShmSegment, PidInUseByThisProcess) {
  const auto transport = open_transport(test_settings(5));
  EXPECT_EQ(try_open(test_settings(5)), OpenStatus::pid_in_use);
  EXPECT_TRUE(exists(5));
  // The lock that proves that the owner lives must still be held.
  ChildProcess child([] { return try_open(test_settings(5)) == OpenStatus::pid_in_use ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(ShmSegment, OtherJobsAndNodesHaveTheirOwnPids) {
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

TEST_F(ShmSegment, EveryStartSweepsLeftovers) {
  const auto alive = open_transport(test_settings(30));
  leave_behind(31);
  leave_behind(32);
  ChildProcess child([] { return open_transport(test_settings(33)) != nullptr ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(exists(31));
  EXPECT_FALSE(exists(32));
  EXPECT_TRUE(exists(30));
}

TEST_F(ShmSegment, ManyStartersGetOnePidOnce) {
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

// The first process makes the directory, and the last one removes it.
TEST_F(ShmSegment, NobodyElseCanLookIntoTheDirectory) {
  auto transport = open_transport();
  const std::string directory = segment_root() + "/lintel." + std::to_string(geteuid());
  struct stat status;
  ASSERT_EQ(stat(directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  transport.reset();
  EXPECT_NE(stat(directory.c_str(), &status), 0) << "nothing is left";
}

// If thousands of processes start at once, the last one may wait for minutes.
TEST_F(ShmSegment, TheLockIsAwaitedWhileOthersComeAndGo) {
  using std::chrono::steady_clock;
  const auto first = open_transport();
  const auto waiting = SegmentDirectory::open(false);
  auto busy = SegmentDirectory::open(false);
  ASSERT_TRUE(waiting && busy && busy->lock());
  const auto limit = std::chrono::milliseconds(500) * machine_slowdown();
  const auto limit_ns = static_cast<uint64_t>(std::chrono::nanoseconds(limit).count());
  EXPECT_FALSE(waiting->lock(limit_ns)) << "no process starts or ends";
  std::thread others([&, end = steady_clock::now() + 3 * limit] {
    const std::string name = busy->path() + "/another";
    while (steady_clock::now() < end) {
      close(open(name.c_str(), O_CREAT | O_CLOEXEC, 0600));
      unlink(name.c_str());
    }
    busy.reset();
  });
  EXPECT_TRUE(waiting->lock(limit_ns));
  others.join();
}

// Other users have created files, or directories that are not private, under the name of the
// directory.
TEST_F(ShmSegment, NamesInTheCommonDirectoryMayBeTaken) {
  const std::string name = segment_root() + "/lintel." + std::to_string(geteuid());
  ASSERT_EQ(mkdir(name.c_str(), 0777), 0);
  ASSERT_EQ(chmod(name.c_str(), 0777), 0);
  close(open((name + ".1").c_str(), O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(symlink("/tmp", (name + ".2").c_str()), 0);
  {
    const auto transport = open_transport(test_settings(5));
    ASSERT_NE(transport, nullptr);
    EXPECT_EQ(try_open(test_settings(5)), OpenStatus::pid_in_use);
    const auto peer = open_transport();
    ASSERT_NE(peer, nullptr);
    test::connect_or_fail(*peer, transport->id());
    // When the name becomes free, later processes still use the directory of the others.
    rmdir(name.c_str());
    const auto later = open_transport();
    ASSERT_NE(later, nullptr);
    test::connect_or_fail(*later, transport->id());
  }
  unlink((name + ".1").c_str());
  unlink((name + ".2").c_str());
}

TEST_F(ShmSegment, WhatIsNotASegmentHindersNobody) {
  const auto transport = open_transport();
  const std::string directory =
      transport->segment().path().substr(0, transport->segment().path().rfind('/'));
  const std::string names[] = {directory + "/" + SegmentName{{test::test_nid, 50}, 16}.text(),
                               directory + "/" + SegmentName{{test::test_nid, 51}, 16}.text(),
                               directory + "/else"};
  ASSERT_EQ(mkdir(names[0].c_str(), 0700), 0);
  ASSERT_EQ(symlink("/etc/passwd", names[1].c_str()), 0);
  close(open(names[2].c_str(), O_CREAT | O_CLOEXEC, 0600));
  std::string reason;
  EXPECT_EQ(transport->connect({test::test_nid, 50}, &reason), nullptr);
  EXPECT_EQ(transport->connect({test::test_nid, 51}, &reason), nullptr);
  EXPECT_NE(open_transport(test_settings(52)), nullptr);
  rmdir(names[0].c_str());
  unlink(names[1].c_str());
  EXPECT_TRUE(::access(names[2].c_str(), F_OK) == 0) << "not ours to remove";
  unlink(names[2].c_str());
}

// Daemons close all descriptors that they have not opened (closefrom()).
TEST_F(ShmSegment, ItsOwnerMayCloseAllDescriptors) {
  Shared<std::atomic<int>> step;
  ChildProcess child([&] {
    auto transport = open_transport(test_settings(80));
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    step->store(1);
    return wait_until([&] { return step->load() == 2; }) ? 0 : 1;
  });
  ASSERT_TRUE(wait_until([&] { return step->load() == 1; }));
  EXPECT_EQ(try_open(test_settings(80)), OpenStatus::pid_in_use) << "it is seen to live";
  EXPECT_TRUE(exists(80));
  step->store(2);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(ShmSegment, TheLimitOfFileSizesMakesItSmallerOrAnError) {
  ChildProcess child([] {
    rlimit limit{300 << 10, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const auto small = open_transport();
    if (small == nullptr || small->segment().geometry().segment_bytes > limit.rlim_cur) return 2;
    limit.rlim_cur = 4096;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    std::unique_ptr<ShmTransport> none;
    std::string reason;
    if (ShmTransport::open(test_settings(), none, reason) != OpenStatus::failed) return 3;
    return reason.find("ulimit -f") == std::string::npos ? 4 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

// As in some containers.
TEST_F(ShmSegment, DeniedSystemCallsAreNamed) {
  ChildProcess without_madvise([]() -> int {
    if (!test::answer_calls({{SYS_madvise, EPERM}})) return 77;
    std::string reason;
    std::unique_ptr<ShmTransport> transport;
    return ShmTransport::open(test_settings(71), transport, reason) == OpenStatus::opened ? 0 : 1;
  });
  const int code = without_madvise.wait();
  if (code == 77) GTEST_SKIP() << "the kernel has no filters of calls";
  EXPECT_EQ(code, 0);
  ChildProcess without_flock([]() -> int {
    if (!test::answer_calls({{SYS_flock, EPERM}})) return 77;
    std::string reason;
    std::unique_ptr<ShmTransport> transport;
    if (ShmTransport::open(test_settings(72), transport, reason) != OpenStatus::failed) return 1;
    return reason.find("permit flock") != std::string::npos ? 0 : 2;
  });
  EXPECT_EQ(without_flock.wait(), 0);
}

TEST_F(ShmSegment, TooLittleMemoryIsAnError) {
  auto settings = test_settings();
  settings.memory_bytes = 4096;
  std::unique_ptr<ShmTransport> transport;
  std::string reason;
  EXPECT_EQ(ShmTransport::open(settings, transport, reason), OpenStatus::failed);
  EXPECT_NE(reason.find("PTL_SHM_MEMORY_KIB"), std::string::npos);
}

TEST_F(ShmSegment, ExitWithoutFinishingRemovesTheName) {
  Shared<std::atomic<int>> ready;
  const pid_t pid = fork();
  if (pid == 0) {
    // Deliberately leaked, like in a program that never calls PtlFini.
    ShmTransport* transport = open_transport(test_settings(60)).release();
    ready->store(transport != nullptr && exists(60) ? 1 : 2);
    std::exit(0);
  }
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(ready->load(), 1);
  EXPECT_FALSE(exists(60));
}

TEST_F(ShmSegment, AForkedChildLeavesTheParentsSegmentAlone) {
  auto transport = open_transport(test_settings(70));
  auto peer = open_transport(test_settings(71));
  RecordingSink sink;
  Link* link = test::connect_or_fail(*transport, peer->id());
  ASSERT_EQ(test::send_message(*transport, *link, 1, 8, sink), SendStatus::sent);
  ChildProcess child([&] {
    transport.reset();
    peer.reset();
    if (!exists(70) || !exists(71)) return 1;
    if (try_open(test_settings(70)) != OpenStatus::pid_in_use) return 2;
    const auto own = open_transport();
    if (own == nullptr) return 3;
    // The parent is an ordinary peer of this interface.
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

// A lane that is cleared may share pages with others where pages are longer than 4 KiB.
TEST(ShmClear, LeavesItsNeighboursAlone) {
  constexpr size_t step = 4096;
  constexpr size_t steps = 40;
  void* const mapped =
      mmap(nullptr, steps * step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const memory = static_cast<std::byte*>(mapped);
  for (const size_t page_bytes : {4096, 16384, 65536}) {
    if (page_bytes < system_page_bytes()) continue;
    for (size_t first = 1; first < steps; first += 3) {
      for (size_t last = first + 1; last < steps; last += 5) {
        std::memset(memory, 1, steps * step);
        clear_shared_memory(memory + first * step, (last - first) * step, page_bytes);
        for (size_t i = 0; i < steps; ++i) {
          const std::byte expected{i >= first && i < last ? uint8_t{0} : uint8_t{1}};
          ASSERT_EQ(memory[i * step], expected) << i << " of " << first << " to " << last;
          ASSERT_EQ(memory[(i + 1) * step - 1], expected) << i << " of " << first << " to " << last;
        }
      }
    }
  }
  munmap(mapped, steps * step);
}

TEST_F(ShmSegment, NonceTellsWhoLives) {
  const auto transport = open_transport();
  EXPECT_TRUE(nonce_is_alive(transport->segment().nonce()));
  EXPECT_FALSE(nonce_is_alive(transport->segment().nonce() + 16));
}

}  // namespace
}  // namespace lintel::test
