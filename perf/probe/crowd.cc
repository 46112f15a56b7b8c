// More waiting processes than cores: pairs play ping-pong, all at once, on the same two cores.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "portals_process.h"
#include "probes.h"

namespace probe {

namespace {

constexpr int maximum_processes = 64;
constexpr std::size_t length_bytes = 8;

struct Player {
  std::atomic<std::uint64_t> id;
  double average_us;  // half round trip
  double maximum_us;
};

struct Crowd {
  std::atomic<int> present;
  Player players[maximum_processes];
};

void stay_on_the_cores(const Options& options) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : options.cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    std::perror("perf_probe: cannot stay on the requested cores (--cpus)");
    std::exit(1);
  }
}

void play(int index, Crowd& crowd, const Options& options) {
  stay_on_the_cores(options);
  Player& mine = crowd.players[index];
  const Player& other = crowd.players[index ^ 1];
  std::uint64_t ball = 0;    // arrives here; its value tells when to stop
  std::uint64_t thrown = 0;  // leaves from here

  PortalsProcess process;
  process.expose(&ball, length_bytes);
  process.bind(&thrown, length_bytes);
  mine.id = (std::uint64_t{process.id().phys.nid} << 32) | process.id().phys.pid;
  ++crowd.present;
  wait_until([&] { return crowd.present >= options.processes; }, "all processes to arrive");
  ptl_process_t peer{};
  peer.phys.nid = static_cast<ptl_nid_t>(other.id >> 32);
  peer.phys.pid = static_cast<ptl_pid_t>(other.id);

  constexpr std::uint64_t keep_playing = 1;
  constexpr std::uint64_t stop = 2;
  if (index % 2 == 0) {
    const double duration_s = options.duration_ms > 0 ? options.duration_ms * 1e-3 : 1.0;
    const auto round_trip = [&](std::uint64_t value) {
      thrown = value;
      process.put(peer, length_bytes);
      process.expect(PTL_EVENT_PUT);
    };
    round_trip(keep_playing);  // connects
    const double start = now_s();
    double before = start;
    std::uint64_t rounds = 0;
    double longest = 0;
    while (before - start < duration_s) {
      round_trip(keep_playing);
      ++rounds;
      const double after = now_s();
      longest = std::max(longest, after - before);
      before = after;
    }
    mine.average_us = (before - start) / static_cast<double>(rounds) / 2 * 1e6;
    mine.maximum_us = longest / 2 * 1e6;
    round_trip(stop);
  } else {
    do {
      process.expect(PTL_EVENT_PUT);
      thrown = ball;
      process.put(peer, length_bytes);
    } while (ball != stop);
  }
  // Nobody leaves while a message of its own may still be on the way.
  ++crowd.present;
  wait_until([&] { return crowd.present == 2 * options.processes; }, "all processes to finish");
}

}  // namespace

void measure_crowd(const Options& options) {
  if (options.processes < 2 || options.processes > maximum_processes ||
      options.processes % 2 != 0) {
    std::fprintf(stderr, "perf_probe: --processes must be even, from 2 to %d\n", maximum_processes);
    std::exit(2);
  }
  auto* crowd = static_cast<Crowd*>(allocate_shared(sizeof(Crowd)));
  join_children(fork_children(options.processes, [&](int index) { play(index, *crowd, options); }));
  const int pairs = options.processes / 2;
  double sum = 0;
  double slowest = 0;
  double longest = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    const Player& player = crowd->players[2 * pair];
    sum += player.average_us;
    slowest = std::max(slowest, player.average_us);
    longest = std::max(longest, player.maximum_us);
  }
  std::printf(
      "{\"processes\": %d, \"average_us\": %.3f, \"slowest_pair_us\": %.3f, "
      "\"longest_us\": %.1f}\n",
      options.processes, sum / pairs, slowest, longest);
}

}  // namespace probe
