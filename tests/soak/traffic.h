// The processes of an endurance run: servers that offer memory, and clients that write into it,
// read it back and compare.
#pragma once

#include <cstdint>

namespace lintel::soak {

inline constexpr unsigned most_clients = 128;

// Counters shared by all processes of a run. The runner makes them before it forks.
struct Tally {
  // Numbers of ended operations, by result.
  uint64_t good = 0;
  uint64_t undelivered = 0;
  uint64_t wrong = 0;  // operations with wrong data
};

// The exit codes of a process.
enum Ending : int {
  ended_well = 0,
  found_wrong_data = 1,
  failed = 2,        // an operation failed, or did not end
  had_no_means = 3,  // PtlInit or PtlNIInit reported a lack of resources
};

struct ClientOrder {
  unsigned slot = 0;         // determines its place in the memory of servers, and its pid
  unsigned servers = 0;      // servers that run all the time, whose data are compared
  bool to_volatile = false;  // also use the server that is killed now and then
  bool may_fail = false;     // operations may end as PTL_NI_UNDELIVERABLE everywhere
  unsigned operations = 0;   // 0: until SIGTERM
  uint64_t seed = 0;
};

// `number` determines the pid. Writes a byte to `ready`, unless that is negative, when clients may
// start. Returns an Ending when the runner sends SIGTERM.
[[nodiscard]] int serve(unsigned number, int ready);
// `tally` belongs to this client.
[[nodiscard]] int work(const ClientOrder& order, Tally& tally);

}  // namespace lintel::soak
