// Everything that the command line decides, with its defaults. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lintel::perf {

enum class Events { full, counting };
enum class Wait { blocking, polling };  // PtlEQWait, PtlCTWait; or PtlEQGet, PtlCTGet in a loop
enum class Ack { none, full, counting, operation_complete };
enum class ClaimOrder { oldest, newest, random };
enum class Shapes { exact, mixed };
enum class Pinning { automatic, off };

struct Settings {
  // Tests to be measured. No tests: the short run.
  std::vector<std::string> tests;
  std::vector<std::string> metrics;  // empty: all that a test has

  // Interface and its options (spec 3.6.2).
  ptl_interface_t interface = PTL_IFACE_DEFAULT;
  bool matching = true;
  bool logical = false;

  // Means by which completion is found.
  Events events = Events::full;
  Wait wait = Wait::blocking;
  Ack ack = Ack::counting;

  // Messages.
  std::vector<std::uint64_t> sizes_bytes;  // empty: from min to max
  std::uint64_t min_bytes = 1;
  std::uint64_t max_bytes = std::uint64_t{4} << 20;
  std::uint64_t size_factor = 4;
  std::uint64_t window = 256;                            // operations in flight
  std::uint64_t window_bytes = std::uint64_t{32} << 20;  // maximum of their payload
  std::uint64_t buffers = 1;                             // slots that the messages rotate over
  bool huge_pages = false;
  // Of put and get: "host", or a device such as "cuda:0".
  std::string initiator_memory = "host";
  std::string target_memory = "host";

  // Duration of the measurement.
  double seconds_per_point = 0.2;
  std::optional<std::uint64_t> iterations;  // instead of a time
  std::optional<std::uint64_t> warm_up;     // operations before the timed ones
  std::optional<std::uint64_t> batch;       // operations per sample of the distribution
  unsigned deadline_s = 60;

  // Processes.
  std::string host;     // host on which the other process listens; may be empty
  bool listen = false;  // this process waits for measurements of others
  // Neither that of perftest (18515) nor of a process with PTL_PID_ANY, nor one that the kernel
  // gives out.
  unsigned port = 32123;
  unsigned pairs = 1;
  bool across_nodes = false;  // pairs of processes on different nodes
  Pinning pinning = Pinning::automatic;

  // Details of single tests.
  std::vector<std::uint64_t> depths;  // match-depth, unexpected-depth
  ClaimOrder claim_order = ClaimOrder::random;
  Shapes shapes = Shapes::exact;
  std::string operation = "sum";
  std::string swap_operation = "swap";
  std::string datatype = "int64";
  std::uint64_t chain_length = 1024;
  unsigned compute_ms = 50;
  double idle_seconds = 2.0;

  bool verify = false;

  // Output.
  std::string json_file;  // empty: none; "-": standard output
  std::string csv_file;

  bool short_run() const { return tests.empty(); }
  bool has_device_memory() const { return initiator_memory != "host" || target_memory != "host"; }
};

/** "PTL_CT_ACK_REQ" and so on, as the output names an acknowledgment type (spec 3.15.1). */
const char* ack_name(Ack ack);

/** One line: matching or not, addressing, events and how they are waited for. */
std::string describe_interface_use(const Settings& settings);

}  // namespace lintel::perf
