#include "simulation/scale.h"

#include <algorithm>
#include <set>

#include "reliable/connection.h"
#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {

constexpr uint32_t random_peers = 4;
constexpr uint32_t incast_senders = 64;
constexpr uint64_t limit_ns = 60 * second;

// The peers that each process sends to.
std::vector<std::vector<uint32_t>> peers_of(const ScaleShape& shape, Dice& dice) {
  std::vector<std::vector<uint32_t>> peers(shape.processes);
  for (uint32_t from = 0; from < shape.processes; ++from) {
    switch (shape.pattern) {
      case Pattern::neighbours:
        peers[from] = {(from + 1) % shape.processes};
        break;
      case Pattern::random:
        while (peers[from].size() < std::min(random_peers, shape.processes - 1)) {
          const auto to = static_cast<uint32_t>(dice.below(shape.processes));
          if (to != from &&
              std::find(peers[from].begin(), peers[from].end(), to) == peers[from].end())
            peers[from].push_back(to);
        }
        break;
      case Pattern::incast:
        if (const uint32_t to = from - from % (incast_senders + 1); to != from) peers[from] = {to};
        break;
      case Pattern::all_to_all:
        for (uint32_t i = 1; i < shape.processes; ++i)
          peers[from].push_back((from + i) % shape.processes);
        break;
    }
  }
  return peers;
}

Scenario scenario_of(const ScaleShape& shape) {
  Scenario scenario;
  scenario.seed = shape.processes;
  scenario.network = shape.network;
  Dice dice(scenario.seed);
  const std::vector<std::vector<uint32_t>> peers = peers_of(shape, dice);
  std::vector<std::vector<uint32_t>> connected(shape.processes);
  for (uint32_t from = 0; from < shape.processes; ++from) {
    for (size_t i = 0; i < peers[from].size(); ++i) {
      connected[from].push_back(peers[from][i]);
      connected[peers[from][i]].push_back(from);
      const auto count = static_cast<uint32_t>(shape.messages / peers[from].size() +
                                               (i < shape.messages % peers[from].size() ? 1 : 0));
      if (count != 0)
        scenario.flows.push_back(
            {from, peers[from][i], std::vector<OutgoingMessage>(count, {shape.bytes})});
    }
  }
  for (uint32_t i = 0; i < shape.processes; ++i) {
    ProcessShape process;
    process.link.mtu = 4096;
    process.link.capacity_bytes = 4 << 20;
    // Two processes that send to each other share a connection.
    std::sort(connected[i].begin(), connected[i].end());
    const auto end = std::unique(connected[i].begin(), connected[i].end());
    process.most_connections = static_cast<uint32_t>(end - connected[i].begin()) + 1;
    process.poll_ns = 200;
    process.link.longest_pause_ns = static_cast<int64_t>(10 * second);
    scenario.processes.push_back(process);
  }
  if (shape.loss > 0)
    for (const Flow& flow : scenario.flows)
      scenario.trouble.push_back({flow.from, flow.to, {.drop = shape.loss}});
  scenario.limit_ns = limit_ns;
  return scenario;
}

double microseconds_at(const std::vector<uint64_t>& sorted_ns, double share) {
  if (sorted_ns.empty()) return 0;
  const auto last = static_cast<double>(sorted_ns.size() - 1);
  return static_cast<double>(sorted_ns[static_cast<size_t>(share * last)]) / microsecond;
}

double fairness_of(const std::vector<uint64_t>& durations_ns) {
  double sum = 0;
  double squares = 0;
  for (const uint64_t duration_ns : durations_ns) {
    const double rate = 1 / static_cast<double>(duration_ns);
    sum += rate;
    squares += rate * rate;
  }
  return sum * sum / (squares * static_cast<double>(durations_ns.size()));
}

}  // namespace

const char* name_of(Pattern pattern) noexcept {
  switch (pattern) {
    case Pattern::neighbours:
      return "neighbours";
    case Pattern::random:
      return "random";
    case Pattern::incast:
      return "incast";
    case Pattern::all_to_all:
      return "all-to-all";
  }
  return "";
}

ScaleResult measure(const ScaleShape& shape) {
  const Scenario scenario = scenario_of(shape);
  std::set<uint32_t> receivers;
  uint32_t most_connections = 0;
  for (const Flow& flow : scenario.flows) receivers.insert(flow.to);
  for (const ProcessShape& process : scenario.processes)
    most_connections = std::max(most_connections, process.most_connections - 1);
  Simulation simulation(scenario);
  simulation.keep_latencies();
  Outcome outcome = simulation.run();
  std::vector<uint64_t>& latencies_ns = outcome.latencies_ns;
  std::sort(latencies_ns.begin(), latencies_ns.end());
  ScaleResult result;
  result.shape = shape;
  result.problems = outcome.problems;
  result.goodput_share = static_cast<double>(outcome.bytes) /
                         (static_cast<double>(outcome.last_delivery_ns) *
                          scenario.network.bytes_per_ns * static_cast<double>(receivers.size()));
  result.median_us = microseconds_at(latencies_ns, 0.5);
  result.p99_us = microseconds_at(latencies_ns, 0.99);
  result.longest_us = microseconds_at(latencies_ns, 1);
  result.repeated_share =
      static_cast<double>(outcome.retransmissions) / static_cast<double>(outcome.network.carried);
  result.fairness = fairness_of(outcome.sent_by_ns);
  result.frame_memory_bytes = outcome.most_frame_memory;
  result.connection_bytes = most_connections * sizeof(Connection);
  return result;
}

}  // namespace lintel::simulation
