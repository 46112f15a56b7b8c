// The reliability layer, or the core above it, with a virtual clock and a simulated network. Many
// processes run in one, without threads. `seeds`, `core`: a seed determines a whole run with all
// its faults; each failure is a fault of the library. `scale`: the cost of traffic by the number of
// processes.
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "simulation/scale.h"
#include "simulation/simulation.h"
#include "simulation/virtual_time.h"
#include "util/log.h"

namespace lintel::simulation {
namespace {

struct SeedOptions {
  uint64_t first = 1;
  uint64_t count = 1000;
  uint64_t twice_every = 100;
  uint64_t most_failures = 5;
  bool verbose = false;
  std::string keep;
};

struct ScaleOptions {
  std::vector<uint32_t> processes = {64, 256, 1024};
  std::vector<std::string> patterns = {"neighbours", "random", "incast", "all-to-all"};
  uint32_t messages = 256;
  uint32_t bytes = 4096;
  double gigabits = 100;
  double latency_us = 2;
  uint64_t buffer_kib = 1024;
  double loss = 0;
  double least_goodput = 0;
  double most_repeated = 1;
  double least_fairness = 0;
  std::string json;
};

double milliseconds(uint64_t ns) { return static_cast<double>(ns) / millisecond; }

void describe(const Scenario& scenario, const Outcome& outcome) {
  const NetworkCounters& network = outcome.network;
  static constexpr const char* securities[] = {"not sealed", "authenticated", "encrypted"};
  const ProcessShape& first = scenario.processes[0];
  std::cout << "seed " << scenario.seed << ": " << scenario.processes.size() << " processes, "
            << securities[static_cast<size_t>(first.security)] << ", time-out "
            << first.peer_timeout_ns / second << " s, "
            << (!scenario.has_device           ? "no device, "
                : scenario.failing_copies != 0 ? "a device that fails, "
                                               : "a device, ")
            << outcome.messages << " messages, " << network.carried << " frames, "
            << outcome.retransmissions << " sent again, " << milliseconds(outcome.duration_ns)
            << " ms\n  frames lost " << network.lost_by_dice << ", lost in the switch "
            << network.lost_in_switch << ", cut " << network.lost_by_partition << ", too long "
            << network.lost_by_length << ", duplicated " << network.duplicated << ", delayed "
            << network.delayed << ", damaged " << network.damaged << "\n";
  for (const Incident& incident : scenario.incidents)
    std::cout << "  from " << milliseconds(incident.at_ns) << " ms for "
              << milliseconds(incident.duration_ns) << " ms: " << name_of(incident.kind)
              << ", process " << incident.process << ", other " << incident.other << "\n";
  for (const std::string& problem : outcome.problems) std::cout << "  PROBLEM " << problem << "\n";
}

// The seeds that failed in earlier runs.
std::vector<uint64_t> kept_seeds(const SeedOptions& options) {
  std::vector<uint64_t> seeds;
  std::ifstream kept(options.keep);
  for (uint64_t seed; kept >> seed;) seeds.push_back(seed);
  return seeds;
}

int run_seeds(const SeedOptions& options, Level level) {
  const std::vector<uint64_t> kept = kept_seeds(options);
  uint64_t runs = 0;
  uint64_t failed = 0;
  uint64_t messages = 0;
  uint64_t frames = 0;
  uint64_t repeated = 0;
  for (; runs < kept.size() + options.count && failed < options.most_failures; ++runs) {
    const bool again = runs < kept.size();
    const uint64_t seed = again ? kept[runs] : options.first + runs - kept.size();
    const Scenario scenario = make_scenario(seed, level);
    Outcome outcome = Simulation(scenario).run();
    if (seed % options.twice_every == 0 && Simulation(scenario).run().trace != outcome.trace)
      outcome.problems.push_back("a second run differs: the seed does not decide everything");
    messages += outcome.messages;
    frames += outcome.network.carried;
    repeated += outcome.retransmissions;
    if (!outcome.problems.empty() || options.verbose) describe(scenario, outcome);
    if (outcome.problems.empty()) continue;
    ++failed;
    if (!again && !options.keep.empty()) std::ofstream(options.keep, std::ios::app) << seed << "\n";
    std::cout << "  to repeat it: simulation_tests " << (level == Level::core ? "core" : "seeds")
              << " --verbose --count 1 --first " << seed << "\n";
  }
  std::cout << runs << " runs with " << messages << " messages in " << frames
            << " frames, of which " << repeated << " were sent again; " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

nlohmann::json to_json(const ScaleResult& result) {
  return {{"pattern", name_of(result.shape.pattern)},
          {"processes", result.shape.processes},
          {"messages_per_process", result.shape.messages},
          {"message_bytes", result.shape.bytes},
          {"loss", result.shape.loss},
          {"gigabits_per_second", result.shape.network.bytes_per_ns * 8},
          {"latency_us", static_cast<double>(result.shape.network.latency_ns) / microsecond},
          {"switch_buffer_bytes", result.shape.network.buffer_bytes},
          {"goodput_share", result.goodput_share},
          {"median_us", result.median_us},
          {"p99_us", result.p99_us},
          {"longest_us", result.longest_us},
          {"repeated_share", result.repeated_share},
          {"fairness", result.fairness},
          {"frame_memory_bytes", result.frame_memory_bytes},
          {"connection_bytes", result.connection_bytes}};
}

int run_scale(const ScaleOptions& options) {
  bool good = true;
  NetworkShape network;
  network.bytes_per_ns = options.gigabits / 8;
  network.latency_ns = static_cast<uint64_t>(options.latency_us * microsecond);
  network.buffer_bytes = options.buffer_kib << 10;
  nlohmann::json all = nlohmann::json::array();
  std::cout
      << "pattern     processes  goodput  median us     p99 us  longest us  repeated  fairness"
         "  frames KiB  connections KiB\n";
  for (const Pattern pattern :
       {Pattern::neighbours, Pattern::random, Pattern::incast, Pattern::all_to_all}) {
    if (std::find(options.patterns.begin(), options.patterns.end(), name_of(pattern)) ==
        options.patterns.end())
      continue;
    for (const uint32_t processes : options.processes) {
      ScaleResult result =
          measure({pattern, processes, options.messages, options.bytes, options.loss, network});
      std::cout << std::left << std::setw(10) << name_of(pattern) << std::right << std::fixed
                << std::setw(11) << processes << std::setprecision(2) << std::setw(9)
                << result.goodput_share << std::setprecision(1) << std::setw(11) << result.median_us
                << std::setw(11) << result.p99_us << std::setw(12) << result.longest_us
                << std::setprecision(4) << std::setw(10) << result.repeated_share
                << std::setprecision(2) << std::setw(10) << result.fairness << std::setw(12)
                << (result.frame_memory_bytes >> 10) << std::setw(17)
                << (result.connection_bytes >> 10) << std::endl;
      if (result.goodput_share < options.least_goodput)
        result.problems.push_back("too little goodput");
      if (result.repeated_share > options.most_repeated)
        result.problems.push_back("too many frames were sent again");
      if (result.fairness < options.least_fairness)
        result.problems.push_back("the senders' shares differ too much");
      for (const std::string& problem : result.problems) std::cout << "PROBLEM " << problem << "\n";
      good &= result.problems.empty();
      all.push_back(to_json(result));
    }
  }
  if (!options.json.empty()) std::ofstream(options.json) << all.dump(1) << "\n";
  return good ? 0 : 1;
}

}  // namespace
}  // namespace lintel::simulation

int main(int argc, char** argv) {
  using namespace lintel::simulation;
  CLI::App app("The reliability layer in a simulated network under a virtual clock.");
  app.require_subcommand(1);
#ifdef LINTEL_HAS_CRYPTO
  setenv("PTL_MODULE_PATH", LINTEL_MODULE_DIRECTORY, 1);
#endif
  SeedOptions seeds;
  CLI::App* const with_seeds =
      app.add_subcommand("seeds", "random faults against the checks of the reliability layer");
  CLI::App* const with_core =
      app.add_subcommand("core", "random faults against the checks of Portals above it");
  for (CLI::App* const command : {with_seeds, with_core}) {
    command->add_option("--first", seeds.first, "the first seed")->capture_default_str();
    command->add_option("--count", seeds.count, "seeds to run")->capture_default_str();
    command
        ->add_option("--twice-every", seeds.twice_every,
                     "of so many seeds, one runs twice and must not differ")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--failures", seeds.most_failures, "stops after so many")
        ->capture_default_str();
    command->add_option("--keep", seeds.keep,
                        "a file: the seeds in it run first, and those that fail are added");
    command->add_flag("--verbose", seeds.verbose, "says what happens in each run");
  }
  ScaleOptions scale;
  CLI::App* const with_scale =
      app.add_subcommand("scale", "many processes, no faults but full buffers");
  with_scale->add_option("--processes", scale.processes)->delimiter(',')->capture_default_str();
  with_scale->add_option("--patterns", scale.patterns)
      ->delimiter(',')
      ->check(CLI::IsMember({"neighbours", "random", "incast", "all-to-all"}))
      ->capture_default_str();
  with_scale->add_option("--messages", scale.messages, "of each process")->capture_default_str();
  with_scale->add_option("--bytes", scale.bytes, "of each message")
      ->check(CLI::Range(0u, lintel::longest_eager_bytes))
      ->capture_default_str();
  with_scale->add_option("--gbit", scale.gigabits, "rate of each cable, Gbit/s")
      ->capture_default_str();
  with_scale->add_option("--latency-us", scale.latency_us, "of each cable")->capture_default_str();
  with_scale
      ->add_option("--buffer-kib", scale.buffer_kib, "of the switch, in front of each process")
      ->capture_default_str();
  with_scale->add_option("--loss", scale.loss, "probability per frame; up to 256 processes")
      ->capture_default_str();
  with_scale->add_option("--least-goodput", scale.least_goodput, "less is a problem")
      ->capture_default_str();
  with_scale->add_option("--most-repeated", scale.most_repeated, "a larger share is a problem")
      ->capture_default_str();
  with_scale->add_option("--least-fairness", scale.least_fairness, "a smaller index is a problem")
      ->capture_default_str();
  with_scale->add_option("--json", scale.json, "also writes the results to this file");
  CLI11_PARSE(app, argc, argv);
  if (seeds.verbose) lintel::set_log_level(lintel::LogLevel::debug);
  if (with_seeds->parsed()) return run_seeds(seeds, Level::transport);
  return with_core->parsed() ? run_seeds(seeds, Level::core) : run_scale(scale);
}
