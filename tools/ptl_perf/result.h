// Description and result of one point of a sweep. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ptl_perf/statistics.h"

namespace lintel::perf {

/** One line of the result, before it is measured. */
struct Point {
  std::string test;           // "put"
  std::string metric;         // "latency"
  std::string configuration;  // use of Portals, as text
  std::string meaning;        // meaning of a time, as a sentence
  std::optional<std::uint64_t> size_bytes;
  std::string parameter_name;  // "depth"; empty: the test has no parameter
  std::uint64_t parameter = 0;

  /** Times are divided by this: 2 for a half round trip, the length of a chain for an increment. */
  double units_per_operation = 1;

  /** Operations of a pass and of a batch are multiples of this. */
  std::uint64_t granularity = 1;

  bool has_rate = true;
  bool has_bandwidth = false;
  bool by_initiator = false;  // wants Result::by_initiator

  /** "put latency 4 KiB", for progress and complaints. */
  std::string label() const;
};

/** A value that only some tests have. */
struct Extra {
  std::string name;  // name with its unit, as in JSON: "processor_percent"
  std::string title;
  double value = 0;
  int decimals = 2;
};

struct Result {
  Point point;
  std::uint64_t operations = 0;  // number of operations of all initiators
  std::uint64_t batch = 1;       // operations per sample
  std::optional<Distribution> times_ns;
  std::vector<std::pair<unsigned, Distribution>> by_initiator;  // each with its rank
  std::optional<double> rate_per_s;
  std::optional<double> bandwidth_bytes_per_s;
  std::vector<Extra> extras;
  std::vector<std::string> remarks;
};

}  // namespace lintel::perf
