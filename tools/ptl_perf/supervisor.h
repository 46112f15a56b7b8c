// Starts the processes of a measurement and looks after them. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

namespace lintel::perf {

/** Forks `process_count` processes that each run `body(rank)` and exit with what it returns. Waits
 *  for all. When one fails or is killed the others, which would wait for it forever, are ended.
 *  The caller must not have initialized Portals (spec 3.5: children inherit nothing).
 *  Returns the exit code of the first process that failed, or 0. */
int run_processes(unsigned process_count, const std::function<int(unsigned rank)>& body);

}  // namespace lintel::perf
