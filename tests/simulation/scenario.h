// The contents of a simulation: processes, network, traffic and incidents, all derived from one
// seed.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/network.h"
#include "simulation/simulated_process.h"

namespace lintel::simulation {

enum class IncidentKind : uint8_t {
  cut_one_way,    // frames from `process` to `other` are lost
  cut_both_ways,  // also those from `other`
  isolate,        // no frame goes to or comes from `process`
  stop,           // it does not run (SIGSTOP, a debugger)
  suspend,        // no process runs, as in a suspended job; they go on one after the other
  slow_down,      // it polls rarely
  fill_link,      // its link accepts no frames
  restart,        // it is killed and starts again with the same address after the duration
  leave,          // it closes its interface and starts again later
  die,            // it is killed
  jump,           // the clock advances by the duration at once
  worsen,         // many frames are lost, everywhere
  narrow,         // frames longer than `mtu` are lost, everywhere
  cut_rail,       // frames by `rail` are lost, everywhere
  take_nothing,   // it acknowledges no data, as a hostile peer: those to it are lost, not the rest
};
[[nodiscard]] const char* name_of(IncidentKind kind) noexcept;

struct Incident {
  uint64_t at_ns = 0;  // from the start
  uint64_t duration_ns = 0;
  IncidentKind kind = IncidentKind::stop;
  uint32_t process = 0;
  uint32_t other = 0;
  uint32_t rail = 0;
  uint32_t mtu = 0;  // narrow; restart, leave: of its link afterwards
};

struct Flow {
  uint32_t from = 0;
  uint32_t to = 0;
  std::vector<OutgoingMessage> messages;
};

struct PairTrouble {
  uint32_t from = 0;
  uint32_t to = 0;
  Trouble trouble;
};

// The software above the simulated network.
enum class Level : uint8_t {
  transport,  // the reliability layer
  core,       // and the core of Portals above it
};

struct Scenario {
  uint64_t seed = 0;
  Level level = Level::transport;
  NetworkShape network;
  std::vector<ProcessShape> processes;
  std::vector<PairTrouble> trouble;
  std::vector<Flow> flows;
  std::vector<Incident> incidents;
  bool has_device = false;    // some memory of applications is that of a device
  double failing_copies = 0;  // share of its copies that fail
  uint64_t limit_ns = 0;      // from the start; all traffic must have ended by then

  // So long after process 0 process i goes on when all were suspended.
  [[nodiscard]] uint64_t stagger_ns(uint32_t process) const noexcept;
  // Whether peers may treat `incident` as a failure of its processes.
  [[nodiscard]] bool is_severe(const Incident& incident) const noexcept;
  // Whether each rail is cut at some time.
  [[nodiscard]] bool cuts_all_rails() const noexcept;
};

[[nodiscard]] Scenario make_scenario(uint64_t seed, Level level);

}  // namespace lintel::simulation
