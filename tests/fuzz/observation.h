// Observations of a phase that other endpoints need as well. Set-up path.
#pragma once

#include <portals4.h>

#include <cstdint>
#include <vector>

namespace lintel::fuzz {

inline constexpr uint64_t never = UINT64_MAX;

struct Count {
  uint64_t success = 0;
  uint64_t failure = 0;
  bool operator==(const Count&) const = default;
};

// A success counts one, or its bytes; a failure always counts one (spec 3.10.1, 3.12.1).
inline void add(Count& count, bool success, bool bytes, uint64_t mlength) {
  if (success) {
    count.success += bytes ? mlength : 1;
  } else {
    ++count.failure;
  }
}

// A message as its initiator observed it, in memory that all endpoints share. Only the initiator
// writes it.
struct MessageSeen {
  uint64_t call_ns;   // before the call that started it
  uint64_t ended_ns;  // when its acknowledgment or reply was received; 0: there was none
  uint32_t sends;     // events received
  uint32_t ends;      // PTL_EVENT_ACK or PTL_EVENT_REPLY
  ptl_event_t send;
  ptl_event_t end;
  uint64_t result_hash;  // of the result of a get or fetch
  std::byte result[32];  // its first bytes
};

struct Taken {
  ptl_event_t event;
  uint64_t taken_ns;
};

// A call for a portal of this endpoint.
struct CallSeen {
  static constexpr int unknown = -1;  // of a triggered call, whose result nobody receives
  int code = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  std::size_t log_end =
      0;  // events of the portal's queue that were there when the call had returned
};

[[nodiscard]] inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

}  // namespace lintel::fuzz
