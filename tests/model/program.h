// The parts of the program of models. Each protocol is a scenario and some facts about it.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model.h"

namespace lintel::model {

// Explores scenarios whose outcomes are known.
class Litmus {
 public:
  void expect(const Scenario& scenario, const std::set<std::string>& outcomes) {
    check(scenario, outcomes, "");
  }
  void expect_error(const Scenario& scenario, const char* error) { check(scenario, {}, error); }
  [[nodiscard]] bool passed() const noexcept { return passed_; }

 private:
  void check(const Scenario& scenario, const std::set<std::string>& outcomes, const char* error);
  bool passed_ = true;
};
void run_litmus_tests(Litmus& litmus);

// A protocol holds in each of its scenarios. It does not hold in all of them if any order of its
// code is weaker.
struct Protocol {
  const char* name;
  std::vector<const char*> files;  // whose orders are weakened, without src/ or gasnet/
  std::vector<Scenario> scenarios;
};
// One function per file of the folder `protocols`. Other lock-free code needs none: what publishes
// an object or a flag once (MP of the litmus tests), such as tables of interfaces, drivers and
// handles; counters and hints that order nothing; what has the form of a protocol that is here,
// such as the barrier of a job (gasnet_barrier), returned events of GASNet (operation_table), room
// for held messages (poll_token), marks of long calls (doorbell); and states of lanes in the table
// of a segment, of which each has one writer, and whose waiting claimers look again after a time.
Protocol spin_lock();
Protocol doorbell();
Protocol wait_gate();
Protocol poll_token();
Protocol lane_cells();
Protocol lane_acks();
Protocol event_queue();
Protocol counting_event();
Protocol arena();
Protocol send_queue();
Protocol rank_map();
Protocol connection_timers();
Protocol descriptor_watch();
Protocol joint_copy();
Protocol awaited_puts();
Protocol operation_table();
Protocol peer_table();
Protocol gasnet_node_stage();
Protocol gasnet_near_ring();
Protocol gasnet_barrier();
Protocol gasnet_records();
Protocol channel_requests();

// The system calls that the checker replaces.
inline void membarrier() { syscall(SYS_membarrier, 0, 0, 0); }
inline void wait_on(const std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, 0, expected, nullptr, nullptr, 0);
}
inline void wake(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, 1, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace lintel::model
