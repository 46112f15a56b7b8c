// Data shared by the parts of an endpoint during a phase. Set-up path.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <vector>

#include "fuzz/interface_objects.h"
#include "fuzz/problems.h"
#include "fuzz/program.h"
#include "fuzz/shared.h"

namespace lintel::fuzz {

// The contents of a buffer that may be used again.
inline constexpr std::byte overwritten{0x5a};

// The memory of an endpoint, for all phases.
struct EndpointMemory {
  explicit EndpointMemory(int threads)
      : entries(static_cast<std::size_t>(threads) * thread_entry_bytes),
        sends(static_cast<std::size_t>(threads) * thread_send_bytes) {}
  // Sets the initial contents for a phase.
  void prepare(const Program& program, int endpoint);

  std::vector<std::byte> entries;
  std::vector<std::byte> sends;
};

struct Phase {
  const Program& program;
  int endpoint;
  bool lossy;  // the network may lose frames
  ptl_uid_t uid;
  InterfaceObjects& objects;
  EndpointMemory& memory;
  Shared& shared;
  Problems& problems;
};

}  // namespace lintel::fuzz
