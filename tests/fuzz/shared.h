// Data shared by the processes of a round: an anonymous mapping made before they are forked. Set-up
// path.
#pragma once

#include <portals4.h>

#include <array>
#include <atomic>

#include "fuzz/observation.h"
#include "fuzz/program.h"

namespace lintel::fuzz {

// Thrown when another endpoint has failed, so that this one stops.
struct OtherFailed {};

struct Shared {
  std::atomic<uint32_t> failed;
  std::atomic<uint32_t> stop;      // set by endpoint 0: this phase is the last
  std::atomic<uint32_t> arrived;   // endpoints at the barrier
  std::atomic<uint32_t> barriers;  // barriers passed
  std::atomic<uint64_t> phase;     // the current phase
  std::atomic<uint64_t> phases_done;
  std::atomic<uint64_t> messages_done;
  std::atomic<uint64_t> portals_checked;
  std::atomic<uint64_t> portals_undecided;
  std::array<std::array<std::atomic<uint32_t>, max_threads>, max_endpoints> at_step;
  std::array<ptl_process_t, max_endpoints> processes;
  std::array<MessageSeen, max_messages> messages;
  std::array<Count, static_cast<std::size_t>(max_endpoints) * max_threads * descriptors_per_thread>
      descriptor_counts;

  // Waits for all endpoints.
  void barrier(int endpoints);
};

}  // namespace lintel::fuzz
