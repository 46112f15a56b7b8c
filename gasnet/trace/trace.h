/* trace.h: trace and statistics files. Set-up path; while they are off, a hook costs one branch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TRACE_TRACE_H
#define LINTEL_GASNET_TRACE_TRACE_H

#include "tools/headers.h"

namespace lintel::gasnet {

/** Opens the files that GASNET_TRACEFILE and GASNET_STATSFILE name. */
void open_trace_files();
/** Writes the statistics and closes the files. */
void close_trace_files();

}  // namespace lintel::gasnet

namespace lintel::gasnet {

/** Any thread. */
void count_for_statistics(char category);
/** Whether puts, gets and atomics with a rank are traced and counted. GASNET_TRACELOCAL=0 leaves
 * out those of a process with itself. */
bool is_traced(gex_Rank_t jobrank);

}  // namespace lintel::gasnet

/* A line of the trace in a category, and a count of the statistics. Categories: P puts, G gets,
 * A active messages, B barriers, X collectives, O atomics, S waits, C locks, D details of requests,
 * I information. The arguments are evaluated only if the category is on. */
#define LINTEL_GASNET_TRACE(category, ...)                                          \
  do {                                                                              \
    if (GASNETI_TRACE_ON(category)) gasneti_trace_printf(category, __VA_ARGS__);    \
    if (GASNETI_STATS_ON(category)) lintel::gasnet::count_for_statistics(category); \
  } while (false)

/* The same for a put, get or atomic. The rank, too, is evaluated only if the category is on. */
#define LINTEL_GASNET_TRACE_TRANSFER(category, jobrank, ...)            \
  do {                                                                  \
    if (GASNETI_TRACES_TRANSFERS && lintel::gasnet::is_traced(jobrank)) \
      LINTEL_GASNET_TRACE(category, __VA_ARGS__);                       \
  } while (false)

#endif  // LINTEL_GASNET_TRACE_TRACE_H
