// Two processes that may run on any processor and start on one come apart, if another is idle.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ptl_pt_index_t pt_index = 4;
// Round trips in a row between two processors: the ranks have come apart.
constexpr uint64_t trips_apart = 200;
constexpr std::chrono::seconds longest_run{3};
// A processor that was idle for less in that time was wanted by other programs.
constexpr std::chrono::milliseconds enough_idle_time{1000};

cpu_set_t allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

void run_on(const cpu_set_t& set) { EXPECT_EQ(sched_setaffinity(0, sizeof set, &set), 0); }

int first_of(const cpu_set_t& set) {
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

// Of all allowed processors but the first, together.
std::chrono::milliseconds idle_time() {
  const cpu_set_t allowed = allowed_processors();
  const int first = first_of(allowed);
  std::ifstream file("/proc/stat");
  std::chrono::milliseconds sum{0};
  for (std::string line; std::getline(file, line);) {
    int cpu = 0;
    unsigned long long user = 0, nice = 0, system = 0, idle = 0;
    if (sscanf(line.c_str(), "cpu%d %llu %llu %llu %llu", &cpu, &user, &nice, &system, &idle) ==
            5 &&
        cpu != first && CPU_ISSET(cpu, &allowed))
      sum += std::chrono::milliseconds(idle * 1000 /
                                       static_cast<unsigned long long>(sysconf(_SC_CLK_TCK)));
  }
  return sum;
}

// Memory that parent and ranks share.
struct Found {
  std::atomic<int64_t> apart_after_us{-1};
};

// Rank 0 asks, rank 1 answers. Each message has the processor of its sender, and whether it is the
// last.
struct Ball {
  int32_t cpu;
  uint32_t last;
};

void play(Rank& rank, Found& found) {
  const cpu_set_t everywhere = allowed_processors();
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(first_of(everywhere), &first);
  run_on(first);
  const Interface interface(rank, nonmatching_physical);
  const Counter arrived(interface.handle());
  std::vector<std::byte> in(sizeof(Ball)), out(sizeof(Ball));
  ptl_pt_index_t index = 0;
  must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, pt_index, &index));
  interface.append(pt_index,
                   {.start = in.data(),
                    .length = in.size(),
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                    .counter = arrived.handle()});
  const Descriptor source(interface.handle(), out);
  rank.barrier();
  run_on(everywhere);
  const auto start = Clock::now();
  const int other = 1 - rank.index();
  const auto send = [&](bool last) {
    const Ball ball{sched_getcpu(), last};
    std::memcpy(out.data(), &ball, sizeof ball);
    must(PtlPut(source.handle(), 0, sizeof ball, PTL_NO_ACK_REQ, interface.address(other), index, 0,
                0, nullptr, 0));
  };
  const auto receive = [&](uint64_t count) {
    arrived.expect(count);
    Ball ball;
    std::memcpy(&ball, in.data(), sizeof ball);
    return ball;
  };
  if (rank.index() == 1) {
    for (uint64_t trips = 1;; ++trips) {
      const bool last = receive(trips).last != 0;
      send(last);
      if (last) return;
    }
  }
  uint64_t apart = 0;
  bool last = false;
  for (uint64_t trips = 1; !last; ++trips) {
    last = apart >= trips_apart || Clock::now() - start > longest_run;
    send(last);
    apart = receive(trips).cpu != sched_getcpu() ? apart + 1 : 0;
  }
  if (apart >= trips_apart)
    found.apart_after_us =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

// spec 3.14.6
TEST(PlacementTest, TwoRanksThatStartOnOneProcessorComeApart) {
  if (const cpu_set_t allowed = allowed_processors(); CPU_COUNT(&allowed) < 2)
    GTEST_SKIP() << "there is one processor only";
  void* memory =
      mmap(nullptr, sizeof(Found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* found = new (memory) Found;
  const auto idle_before = idle_time();
  run_ranks(2, [found](Rank& rank) { play(rank, *found); });
  const auto idle = idle_time() - idle_before;
  const int64_t apart_after_us = found->apart_after_us;
  munmap(memory, sizeof(Found));
  RecordProperty("apart_after_us", std::to_string(apart_after_us));
  if (apart_after_us < 0 && idle < enough_idle_time)
    GTEST_SKIP() << "other programs wanted all processors";
  EXPECT_GE(apart_after_us, 0) << "another processor was idle for " << idle.count() << " ms";
}

}  // namespace
}  // namespace lintel::test
