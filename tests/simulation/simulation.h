// Runs a scenario: time advances from event to event until all traffic has ended, or to the limit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulation/scenario.h"
#include "simulation/simulated_device.h"

namespace lintel::simulation {

// The results of a run.
struct Outcome {
  std::vector<std::string> problems;
  uint64_t trace = 0;  // equal for equal runs
  uint64_t duration_ns = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t retransmissions = 0;
  uint64_t most_frame_memory = 0;  // the maximum over all processes
  NetworkCounters network;
  std::vector<uint64_t> latencies_ns;
  uint64_t last_delivery_ns = 0;  // from the start
  std::vector<uint64_t>
      sent_by_ns;  // from the start: when the last message of each stream was delivered
};

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario);

  void keep_latencies() { record_.keeps_latencies = true; }
  [[nodiscard]] Outcome run();

 private:
  // A process as the scheduler sees it.
  struct Place {
    std::unique_ptr<SimulatedProcess> process;
    uint64_t runs_at_ns = UINT64_MAX;
    uint64_t turn = 0;
    uint64_t stopped_until_ns = 0;
  };
  struct Change {
    uint64_t at_ns;
    const Incident* incident;
    bool begins;
  };

  void schedule(uint32_t index, uint64_t at_ns);
  void deliver(uint32_t frame);
  void run_process(uint32_t index);
  void change_scene();
  void apply(const Incident& incident, bool begins);
  void note_severe(const Incident& incident);
  void cut(uint32_t from, uint32_t to, int change);
  void cut_data(uint32_t to, int change);
  void forget(uint32_t dead);
  [[nodiscard]] bool is_over();
  void check_memory(uint32_t index);
  void check_retransmissions(const Outcome& outcome);
  void check_rest();

  const Scenario scenario_;
  Dice dice_;
  EventQueue events_;
  Network network_;
  Record record_;
  std::optional<SimulatedDevice> device_;  // outlives the processes
  std::vector<Place> places_;
  std::vector<char> dead_;
  std::vector<int> cuts_;  // for each pair: number of incidents that cut it
  std::vector<int> data_cuts_;
  int rail_cuts_[most_rails] = {};  // for each process: in which it takes no data
  std::vector<Change> changes_;
  size_t next_change_ = 0;
  int worsened_ = 0;
  std::multiset<uint32_t> narrowed_;  // limits of the frame length by current incidents
  uint64_t lost_for_room_ = 0;
};

}  // namespace lintel::simulation
