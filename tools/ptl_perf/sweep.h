// Common parts of the tests of single operations: metrics and sizes, and the head of a result line.
// Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ptl_perf/context.h"
#include "ptl_perf/loops.h"

namespace lintel::perf {

/** Whether the user asked for this metric; without --metric, what gives lines of its own. */
bool wants_metric(const Settings& settings, const std::string& metric);

/** --sizes, or --min to --max by --factor: multiples of `unit_bytes` (rounded down) up to
 *  `limit_bytes`, each once. Throws if none is left. */
std::vector<std::uint64_t> sizes_of(const Settings& settings, std::uint64_t unit_bytes,
                                    std::uint64_t limit_bytes);

/** Returns the sizes for the rate: --sizes if given, else 8 bytes. */
std::vector<std::uint64_t> rate_sizes_of(const Settings& settings, std::uint64_t unit_bytes,
                                         std::uint64_t limit_bytes);

/** Requirements of a region. */
struct Layout {
  std::uint64_t slots;
  std::uint64_t guard_bytes;
  bool huge_pages;
};

/** `in_flight`: operations that may be under way at once; with --verify each has its own slot. */
Layout layout_of(const Settings& settings, std::uint64_t in_flight);

/** The memory of this process where only the initiator issues operations. */
const std::string& own_memory(const Context& context);

/** Runs `measure_size` for each metric that was asked for and each of its sizes. */
void measure_metrics(Context& context, const std::vector<std::uint64_t>& sizes,
                     const std::vector<std::uint64_t>& rate_sizes,
                     void (*measure_size)(Context& context, const std::string& metric,
                                          std::uint64_t size_bytes),
                     bool has_completion = false);

/** A point with the fields that all have; `meaning` says what its times are. */
Point make_point(const Context& context, const std::string& test, const std::string& metric,
                 const std::string& meaning);

/** The window for messages of this size: settings.window, less if that were too many bytes. */
Window choose_window(const Settings& settings, std::uint64_t size_bytes);

/** Makes the window a column of the result. */
void set_window(Point& point, const Window& window);

}  // namespace lintel::perf
