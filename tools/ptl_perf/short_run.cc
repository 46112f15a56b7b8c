// The run of ptl_perf without a test: a selection that takes about 5 s. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/context.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {

void run_short(Context& context) {
  const Settings original = context.settings;
  Settings& settings = context.settings;
  constexpr std::uint64_t kib = 1024;

  settings.metrics = {"latency"};
  settings.sizes_bytes = {8, 1 * kib, 64 * kib, 1024 * kib};
  run_put(context);

  settings.matching = false;
  settings.events = Events::counting;
  settings.sizes_bytes = {8};
  run_put(context);

  settings.matching = original.matching;
  settings.events = original.events;
  settings.sizes_bytes = {8, 1024 * kib};
  run_get(context);

  settings.metrics = {"rate"};
  settings.sizes_bytes = {8};
  run_put(context);

  settings.metrics = {"bandwidth"};
  settings.sizes_bytes = {4 * kib, 64 * kib, 1024 * kib, 4096 * kib};
  run_put(context);

  context.settings = original;
}

}  // namespace lintel::perf
