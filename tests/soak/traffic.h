// What the processes of an endurance run do: servers that offer memory, and clients that write into
// it, read it back and compare.
#pragma once

#include <cstdint>

namespace lintel::soak {

inline constexpr unsigned most_clients = 128;

// Numbers that all processes of a run share. The runner makes them before it forks.
struct Tally {
  // Operations that ended, by their result.
  uint64_t good = 0;
  uint64_t undelivered = 0;
  uint64_t wrong = 0;  // of which the data were not those expected
};

// How a process ends.
enum Ending : int {
  ended_well = 0,
  found_wrong_data = 1,
  failed = 2,        // an operation failed, or did not end
  had_no_means = 3,  // PtlInit or PtlNIInit said that something is short
};

struct ClientOrder {
  unsigned slot = 0;         // its place in the memory of servers, and its pid
  unsigned servers = 0;      // those that live as long as the run: what they hold is compared
  bool to_volatile = false;  // also to the server that is killed now and then
  bool may_fail = false;     // operations may end as PTL_NI_UNDELIVERABLE everywhere
  unsigned operations = 0;   // 0: until it is told to end
  uint64_t seed = 0;
};

// `number`: its pid follows from it. Writes a byte to `ready` when clients may come, unless that is
// negative. Returns an Ending when the runner sends SIGTERM.
[[nodiscard]] int serve(unsigned number, int ready);
// `tally` is this client's own.
[[nodiscard]] int work(const ClientOrder& order, Tally& tally);

}  // namespace lintel::soak
