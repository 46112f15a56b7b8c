// Two processes that start on one processor and may run on any move to different processors, if
// another one is idle. This is the situation after launchers that do not pin processes.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

using Clock = std::chrono::steady_clock;

using std::chrono::milliseconds;

constexpr ptl_pt_index_t pt_index = 4;
constexpr unsigned attempts = 20;
// After this many successive round trips between two processors, the ranks count as separated.
constexpr uint64_t trips_apart = 200;
constexpr milliseconds on_one_processor{5};
// A pause before every other attempt. The host halts idle virtual processors, and the kernel then
// places threads differently.
constexpr milliseconds idle_before{50};
constexpr milliseconds longest_attempt{60};
// The bound for the median of the attempts, and the bound for all.
constexpr milliseconds soon{5};
constexpr milliseconds latest{50};
// An attempt is not counted if other programs used the other processors for more than this share of
// it.
constexpr double most_busy = 0.2;
constexpr size_t enough_attempts = 5;

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

// The sum over all allowed processors except the first; in steps of 10 ms.
milliseconds idle_time() {
  const cpu_set_t allowed = allowed_processors();
  const int first = first_of(allowed);
  std::ifstream file("/proc/stat");
  milliseconds sum{0};
  for (std::string line; std::getline(file, line);) {
    int cpu = 0;
    unsigned long long user = 0, nice = 0, system = 0, idle = 0;
    if (sscanf(line.c_str(), "cpu%d %llu %llu %llu %llu", &cpu, &user, &nice, &system, &idle) ==
            5 &&
        cpu != first && CPU_ISSET(cpu, &allowed))
      sum += milliseconds(idle * 1000 / static_cast<unsigned long long>(sysconf(_SC_CLK_TCK)));
  }
  return sum;
}

// Memory that parent and ranks share.
struct Found {
  Clock::duration apart_after[attempts];
  bool tells[attempts];  // no other program used the other processors
};

enum class Turn : uint32_t { play, spread, end };

// Rank 0 sends, rank 1 answers. Each message contains the processor on which its sender runs.
struct Ball {
  int32_t cpu;
  Turn turn;
};

class Player {
 public:
  explicit Player(Rank& rank) : rank_(rank) {
    must(PtlPTAlloc(interface_.handle(), 0, PTL_EQ_NONE, pt_index, &index_));
    interface_.append(pt_index,
                      {.start = &in_,
                       .length = sizeof in_,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                       .counter = arrived_.handle()});
    rank.barrier();
  }

  void send(Turn turn) {
    const Ball ball{sched_getcpu(), turn};
    std::memcpy(out_.data(), &ball, sizeof ball);
    must(PtlPut(source_.handle(), 0, sizeof ball, PTL_NO_ACK_REQ,
                interface_.address(1 - rank_.index()), index_, 0, 0, nullptr, 0));
  }
  Ball receive() {
    ptl_ct_event_t count{};
    must(PtlCTWait(arrived_.handle(), ++received_, &count));
    return in_;
  }
  Ball round_trip(Turn turn) {
    send(turn);
    return receive();
  }

 private:
  Rank& rank_;
  const Interface interface_{rank_, nonmatching_physical};
  const Counter arrived_{interface_.handle()};
  std::vector<std::byte> out_{sizeof(Ball)};
  const Descriptor source_{interface_.handle(), out_};
  Ball in_{};
  ptl_pt_index_t index_ = 0;
  uint64_t received_ = 0;
};

// The time until the ranks have separated. In the first round trip both run on one processor.
Clock::duration time_until_apart(Player& player) {
  const auto start = Clock::now();
  uint64_t apart = 0;
  while (apart < trips_apart && Clock::now() - start < longest_attempt)
    apart = player.round_trip(Turn::play).cpu != sched_getcpu() ? apart + 1 : 0;
  return Clock::now() - start;
}

void play(Rank& rank, Found& found) {
  const cpu_set_t everywhere = allowed_processors();
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(first_of(everywhere), &first);
  Player player(rank);
  for (unsigned i = 0; i < attempts; ++i) {
    run_on(first);
    if (i % 2 == 1) std::this_thread::sleep_for(idle_before);
    rank.barrier();
    if (rank.index() == 1) {
      Turn turn = Turn::play;
      while (turn != Turn::end) {
        turn = player.receive().turn;
        player.send(turn);
        if (turn == Turn::spread) run_on(everywhere);
      }
      continue;
    }
    for (const auto start = Clock::now(); Clock::now() - start < on_one_processor;)
      static_cast<void>(player.round_trip(Turn::play));
    static_cast<void>(player.round_trip(Turn::spread));
    run_on(everywhere);
    const milliseconds idle_before = idle_time();
    found.apart_after[i] = time_until_apart(player);
    found.tells[i] = found.apart_after[i] <= soon ||
                     idle_time() - idle_before >= (1 - most_busy) * found.apart_after[i];
    static_cast<void>(player.round_trip(Turn::end));
  }
}

// spec 3.14.6
TEST(PlacementTest, TwoRanksThatStartOnOneProcessorComeApart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a time is measured, which sanitizers change";
#endif
  if (const cpu_set_t allowed = allowed_processors(); CPU_COUNT(&allowed) < 2)
    GTEST_SKIP() << "there is one processor only";
  void* memory =
      mmap(nullptr, sizeof(Found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* found = new (memory) Found;
  run_ranks(2, [found](Rank& rank) { play(rank, *found); });
  std::vector<Clock::duration> times;
  for (unsigned i = 0; i < attempts; ++i)
    if (found->tells[i]) times.push_back(found->apart_after[i]);
  munmap(memory, sizeof(Found));
  if (times.size() < enough_attempts) GTEST_SKIP() << "other programs wanted all processors";
  std::sort(times.begin(), times.end());
  const auto in_us = [](Clock::duration time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  };
  RecordProperty("median_us", in_us(times[times.size() / 2]));
  RecordProperty("longest_us", in_us(times.back()));
  // Other programs that use some of the processors make it longer.
  if (times.size() == attempts) {
    EXPECT_LE(times[times.size() / 2], soon);
  }
  EXPECT_LE(times.back(), latest) << "in " << times.size() << " attempts";
}

}  // namespace
}  // namespace lintel::test
