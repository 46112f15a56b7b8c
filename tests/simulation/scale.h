// Many simulated processes without faults: the cost of traffic by the number of processes.
#pragma once

#include <cstdint>
#include <string>

#include "simulation/simulation.h"

namespace lintel::simulation {

enum class Pattern : uint8_t {
  neighbours,  // in a ring, each to the next
  random,      // each to a few others
  incast,      // groups of 65, 64 of which send to one
  all_to_all,
};
[[nodiscard]] const char* name_of(Pattern pattern) noexcept;

struct ScaleShape {
  Pattern pattern = Pattern::neighbours;
  uint32_t processes = 64;
  uint32_t messages = 100;  // of each process, to all its peers together
  uint32_t bytes = 4096;    // of each message
  double loss = 0;          // probability per frame; needs few processes: Network::most_with_faults
  NetworkShape network;
};

struct ScaleResult {
  ScaleShape shape;
  std::vector<std::string> problems;
  double goodput_share =
      0;                 // of the rate of the cables that receive, while messages are on the way
  double median_us = 0;  // from the acceptance of a message to its delivery
  double p99_us = 0;
  double longest_us = 0;
  double repeated_share = 0;        // of frames
  double fairness = 0;              // Jain's index of the senders' rates; 1: all are equal
  uint64_t frame_memory_bytes = 0;  // the maximum over all processes and times
  uint64_t connection_bytes = 0;    // of a process: one connection to each of its peers
};

[[nodiscard]] ScaleResult measure(const ScaleShape& shape);

}  // namespace lintel::simulation
