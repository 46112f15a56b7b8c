// A large rank map exists once in memory for all processes of a node.
#include <portals4_lintel.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/own_shared_memory.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr uint64_t million = 1'000'000;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool has_sanitizer = true;
#else
constexpr bool has_sanitizer = false;
#endif

std::vector<ptl_process_t> large_map(uint64_t size, uint32_t seed) {
  std::vector<ptl_process_t> map(size);
  for (uint64_t rank = 0; rank < size; ++rank)
    map[rank].phys = {static_cast<ptl_nid_t>(seed + rank / 64),
                      static_cast<ptl_pid_t>(rank % 64 + 1)};
  return map;
}

// This process's share of the memory of shared maps, and its own anonymous memory, in KiB.
struct Share {
  uint64_t shared_kib = 0;
  uint64_t anonymous_kib = 0;
};

Share own_share() {
  Share share;
  bool in_map = false;
  std::ifstream maps("/proc/self/smaps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string name;
    uint64_t kib = 0;
    fields >> name;
    if (name.find('-') != std::string::npos && name.back() != ':')
      in_map = line.find("memfd:lintel-map") != std::string::npos;
    else if (fields >> kib) {
      if (in_map && name == "Pss:") share.shared_kib += kib;
      if (in_map && name == "Anonymous:") share.anonymous_kib += kib;
    }
  }
  return share;
}

std::vector<std::string> links() {
  std::vector<std::string> found;
  const std::string prefix = "lintel-map." + std::to_string(geteuid()) + ".";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  return found;
}

// The link to the map that this rank's process made; empty if there is none.
std::string own_link() {
  const std::string target = "/proc/" + std::to_string(getpid()) + "/fd/";
  for (const std::string& link : links()) {
    std::error_code error;
    if (std::filesystem::read_symlink(link, error).string().starts_with(target)) return link;
  }
  return "";
}

void expect_map(const Interface& interface, const std::vector<ptl_process_t>& map) {
  std::vector<ptl_process_t> read(map.size());
  ptl_size_t size = 0;
  must(PtlGetMap(interface.handle(), read.size(), read.data(), &size));
  ASSERT_EQ(size, map.size());
  for (uint64_t rank = 0; rank < size; ++rank)
    ASSERT_TRUE(read[rank].phys.nid == map[rank].phys.nid &&
                read[rank].phys.pid == map[rank].phys.pid)
        << rank;
}

// spec 3.6.6: eight bytes a rank and node; the second and later processes need no time to speak of.
TEST(SharedMap, AMillionRanksCostEightMebibytesPerNode) {
  constexpr int processes = 4;
  run_ranks(processes, [](Rank& rank) {
    rank.initialise();
    const Interface interface(matching_logical, {});
    auto map = large_map(million, static_cast<uint32_t>(getppid()));
    for (int turn = 0; turn < rank.count(); ++turn) {
      if (turn == rank.index()) {
        const auto begin = std::chrono::steady_clock::now();
        must(PtlSetMap(interface.handle(), map.size(), map.data()));
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        rank.publish(0, took.count());
      }
      rank.barrier();
    }
    expect_map(interface, map);
    rank.publish(1, own_share());
    rank.barrier();
    if (rank.index() != 0) return;
    uint64_t all_kib = 0;
    for (int i = 0; i < rank.count(); ++i) {
      const auto share = rank.published<Share>(i, 1);
      EXPECT_GT(share.shared_kib, 0u) << i;
      EXPECT_EQ(share.anonymous_kib, 0u) << i;
      all_kib += share.shared_kib;
      if (i > 0 && !has_sanitizer) {
        EXPECT_LT(rank.published<double>(i, 0), 50.0 * machine_slowdown()) << i;
      }
    }
    EXPECT_LE(all_kib, 8 * 1024u);
    std::printf("PtlSetMap of a million ranks: %.1f ms, then %.1f ms; %u KiB for %d processes\n",
                rank.published<double>(0, 0), rank.published<double>(1, 0),
                static_cast<unsigned>(all_kib), rank.count());
    std::fflush(stdout);
  });
}

// spec 3.6.6
TEST(SharedMap, ProcessesThatSetItAtTheSameTimeShareIt) {
  run_ranks(4, [](Rank& rank) {
    rank.initialise();
    const Interface interface(nonmatching_logical, {});
    for (uint32_t round = 0; round < 10; ++round) {
      auto map = large_map(20'000, static_cast<uint32_t>(getppid()) * 16 + round);
      rank.barrier();
      must(PtlSetMap(interface.handle(), map.size(), map.data()));
      expect_map(interface, map);
    }
    rank.publish(0, static_cast<int>(!own_link().empty()));
    rank.barrier();
  });
}

// spec 3.6.6: maps may differ.
TEST(SharedMap, OtherContentIsNotShared) {
  run_ranks(2, [](Rank& rank) {
    rank.initialise();
    const Interface interface(matching_logical, {});
    auto map = large_map(5000, static_cast<uint32_t>(getppid()));
    map[4999].phys.pid += static_cast<ptl_pid_t>(rank.index());
    must(PtlSetMap(interface.handle(), map.size(), map.data()));
    rank.barrier();
    expect_map(interface, map);
    ptl_process_t id{};
    must(PtlLintelGetMapEntry(interface.handle(), 4999, &id));
    EXPECT_EQ(id.phys.pid, map[4999].phys.pid);
    EXPECT_EQ(PtlLintelGetMapEntry(interface.handle(), 5000, &id), PTL_ARG_INVALID);
    rank.barrier();
  });
}

// spec 3.6.6
TEST(SharedMap, OutlivesTheProcessThatMadeItAndLeavesNothing) {
  if (!can_own_shared_memory()) GTEST_SKIP() << no_own_shared_memory;
  run_ranks(3, [](Rank& rank) {
    // Another process of this user would also remove what is left.
    enter_own_shared_memory(rank, "size=64m", 2);
    rank.initialise();
    auto map = large_map(50'000, static_cast<uint32_t>(getppid()));
    std::string link;
    {
      const Interface interface(matching_logical, {});
      if (rank.index() == 0) {
        must(PtlSetMap(interface.handle(), map.size(), map.data()));
        char name[64] = {};
        own_link().copy(name, sizeof name - 1);
        rank.publish(0, name);
        EXPECT_NE(name[0], '\0');
      }
      rank.barrier();
      if (rank.index() == 0) pause();  // until it is killed
      must(PtlSetMap(interface.handle(), map.size(), map.data()));
      link = rank.published<std::array<char, 64>>(0, 0).data();
      rank.raise(0);
      rank.await(3 - rank.index(), 0);
      if (rank.index() == 1) rank.kill(0);
      rank.barrier();
      expect_map(interface, map);
      EXPECT_TRUE(std::filesystem::is_symlink(link)) << "what a killed process leaves: " << link;
      rank.barrier();
      if (rank.index() == 1) {
        // When this user opens the next interface, it removes what is left.
        const Interface next(nonmatching_logical, {});
        EXPECT_FALSE(std::filesystem::is_symlink(link));
        // The next map can be shared again.
        must(PtlSetMap(next.handle(), map.size(), map.data()));
        EXPECT_FALSE(own_link().empty());
        expect_map(next, map);
      }
    }
    EXPECT_EQ(own_link(), "");
    rank.barrier();
  });
}

// spec 3.6.6: links that lead elsewhere are not believed.
TEST(SharedMap, ForeignMemoryIsNotBelieved) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    const Interface first(matching_logical, {});
    auto map = large_map(4000, static_cast<uint32_t>(getppid()));
    must(PtlSetMap(first.handle(), map.size(), map.data()));
    const std::string link = own_link();
    ASSERT_FALSE(link.empty());
    for (const char* target : {"/proc/1/fd/0", "/dev/null", "/proc/self/fd/0", "nowhere"}) {
      std::filesystem::remove(link);
      std::filesystem::create_symlink(target, link);
      const Interface second(nonmatching_logical, {});
      must(PtlSetMap(second.handle(), map.size(), map.data()));
      expect_map(second, map);
    }
    expect_map(first, map);
  });
}

}  // namespace
}  // namespace lintel::test
