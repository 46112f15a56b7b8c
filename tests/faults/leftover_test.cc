// Files of dead processes in /dev/shm: they must not disturb later processes, and must not remain.
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

namespace fs = std::filesystem;

// Segments of this Portals pid: files <nid>.<pid>.<number> in the user's private directory.
std::vector<fs::path> segments_of(ptl_pid_t pid) {
  std::vector<fs::path> found;
  const std::string part = "." + std::to_string(pid) + ".";
  std::error_code none;
  const fs::path directory = "/dev/shm/lintel." + std::to_string(geteuid());
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, none)) {
    if (entry.path().filename().string().find(part) == 8) found.push_back(entry.path());
  }
  return found;
}

// Opens an interface under the pid, sends itself a message, and closes it.
void live_once(Rank& rank, ptl_pid_t pid) {
  Interface interface(matching_physical, {.pid = pid});
  ptl_process_t id{};
  must(PtlGetPhysId(interface.handle(), &id));
  const EventQueue events(interface.handle());
  ptl_pt_index_t index = 0;
  must(PtlPTAlloc(interface.handle(), 0, events.handle(), 2, &index));
  interface.append(2, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
  const Descriptor nothing(interface.handle(), std::span<std::byte>{}, 0, events.handle());
  must(PtlPut(nothing.handle(), 0, 0, PTL_ACK_REQ, id, 2, 0, 0, nullptr, 0));
  events.expect_all({PTL_EVENT_SEND, PTL_EVENT_PUT, PTL_EVENT_ACK});
  static_cast<void>(rank);
}

// Rank 1 opens the pid and is killed by rank 0. Rank 0 then calls `after`.
void with_killed_process(int which, const std::function<void(Rank&, ptl_pid_t)>& after) {
  run_ranks(2, [&](Rank& rank) {
    const ptl_pid_t pid = rank.reserved_pid(which);
    if (rank.index() == 1) {
      rank.initialise();
      const Interface interface(matching_physical, {.pid = pid});
      rank.raise(0);
      std::this_thread::sleep_for(test_deadline);  // to be killed
      return;
    }
    rank.await(1, 0);
    EXPECT_FALSE(segments_of(pid).empty()) << "this test looks for the wrong names";
    rank.kill(1);
    after(rank, pid);
  });
}

// spec 3.6.3, 3.5.2
TEST(LeftoverTest, AnOrderlyEndLeavesNothing) {
  run_ranks(1, [](Rank& rank) {
    const ptl_pid_t pid = rank.reserved_pid(4);
    rank.initialise();
    {
      const Interface interface(matching_physical, {.pid = pid});
      EXPECT_FALSE(segments_of(pid).empty()) << "this test looks for the wrong names";
    }
    rank.finalise();
    EXPECT_TRUE(segments_of(pid).empty());
  });
}

// spec 3.6.2
TEST(LeftoverTest, AProcessKeepsAtMostSixteenMebibytesThere) {
  run_ranks(6, [](Rank& rank) {
    const ptl_pid_t pid = rank.reserved_pid(9 + rank.index());
    const Interface interface(rank, matching_physical, {.pid = pid});
    const EventQueue events(interface.handle());
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, events.handle(), 2, &index));
    interface.append(2, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    const Descriptor nothing(interface.handle(), std::span<std::byte>{});
    for (int to = 0; to < rank.count(); ++to) {
      must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interface.address(to), 2, 0, 0, nullptr,
                  0));
    }
    for (int from = 0; from < rank.count(); ++from) events.expect(PTL_EVENT_PUT);
    std::uintmax_t bytes = 0;
    for (const fs::path& segment : segments_of(pid)) bytes += fs::file_size(segment);
    EXPECT_GT(bytes, 0u);
    EXPECT_LE(bytes, 16u << 20u) << "whatever the number of peers";
    rank.barrier();
  });
}

// spec 3.6.2
TEST(LeftoverTest, AKilledProcessDoesNotHinderTheNextUnderItsPid) {
  with_killed_process(5, [](Rank& rank, ptl_pid_t pid) {
    rank.initialise();
    live_once(rank, pid);
    rank.finalise();
    EXPECT_TRUE(segments_of(pid).empty());
  });
}

// spec 3.6.2
TEST(LeftoverTest, TheNextStartOfAnyProcessRemovesWhatAKilledOneLeft) {
  with_killed_process(6, [](Rank& rank, ptl_pid_t pid) {
    rank.initialise();
    const Interface interface(matching_physical, {});
    rank.await_condition("waiting for the leftover to disappear",
                         [&] { return segments_of(pid).empty(); });
  });
}

// spec 3.6.2
TEST(LeftoverTest, ManyKilledProcessesInARow) {
  constexpr int generations = 8;
  run_ranks(generations, [](Rank& rank) {
    const ptl_pid_t pid = rank.reserved_pid(7);
    if (rank.index() > 0) {
      rank.await(rank.index() - 1, 0);
      rank.kill(rank.index() - 1);
    }
    rank.initialise();
    live_once(rank, pid);
    const Interface interface(matching_physical, {.pid = pid});
    rank.raise(0);
    if (rank.index() + 1 < generations) std::this_thread::sleep_for(test_deadline);  // to be killed
  });
}

// spec 3.6.2
TEST(LeftoverTest, ADamagedSegmentDoesNotHinder) {
  for (const std::size_t bytes : {0u, 1u, 100u, 70000u}) {
    run_ranks(1, [bytes](Rank& rank) {
      const ptl_pid_t pid = rank.reserved_pid(8);
      rank.initialise();
      std::vector<fs::path> names;
      {
        const Interface interface(matching_physical, {.pid = pid});
        names = segments_of(pid);
      }
      EXPECT_FALSE(names.empty()) << "this test looks for the wrong names";
      for (const fs::path& name : names) std::ofstream(name) << std::string(bytes, '\x5a');
      live_once(rank, pid);
      rank.finalise();
      for (const fs::path& name : names) fs::remove(name);
    });
  }
}

}  // namespace
}  // namespace lintel::test
