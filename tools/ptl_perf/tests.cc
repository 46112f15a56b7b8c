// The tests of ptl_perf. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/tests.h"

#include <algorithm>

namespace lintel::perf {

const std::vector<Test>& all_tests() {
  static const std::vector<Test> tests{
      {"put", "half round trip, message rate and bandwidth of PtlPut", run_put},
      {"get", "time, rate and bandwidth of PtlGet", run_get},
      {"atomic", "half round trip and rate of PtlAtomic", run_atomic},
      {"fetch-atomic", "time and rate of PtlFetchAtomic", run_fetch_atomic},
      {"swap", "time and rate of PtlSwap", run_swap},
      {"triggered", "a chain of triggered increments; a ping-pong of triggered puts",
       run_triggered},
      {"match-depth", "half round trip with entries that do not match posted before",
       run_match_depth},
      {"unexpected-depth", "an append that claims one of many unexpected headers",
       run_unexpected_depth},
      {"overlap", "a get from a process that computes and makes no calls", run_overlap},
      {"idle", "processor time of a process that does nothing, and of one that waits", run_idle},
      {"all-pairs", "half round trip of PtlPut between every two processes of a job",
       run_all_pairs},
  };
  return tests;
}

const Test* find_test(std::string_view name) {
  const auto& tests = all_tests();
  const auto found = std::find_if(tests.begin(), tests.end(),
                                  [name](const Test& test) { return test.name == name; });
  return found == tests.end() ? nullptr : &*found;
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names{"latency", "completion", "rate", "bandwidth"};
  return names;
}

}  // namespace lintel::perf
