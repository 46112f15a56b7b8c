/* rows.h: the start of the programs that rows.py runs: two ranks, a barrier, medians.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_PERF_GASNET_ROWS_H
#define LINTEL_PERF_GASNET_ROWS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gex_Client_t client;
static gex_EP_t endpoint;
static gex_TM_t team;
static gex_Rank_t me;

static inline void meet(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

static inline void start_client(const char* name, int* argc, char*** argv) {
  gex_Client_Init(&client, &endpoint, &team, name, argc, argv, 0);
  me = gex_TM_QueryRank(team);
}
/* Ranks are pinned like those of ptl_perf. */
static inline void begin_pair(void) {
  if (gex_TM_QuerySize(team) != 2) gasnet_exit(2);
  gasnett_set_affinity((int)me);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static inline double median(double* values, unsigned int count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

/* Stores the time of one of `count` calls, in nanoseconds, in values[batch]. */
#define TIME(values, batch, count, call)                                                  \
  do {                                                                                    \
    const gasnett_tick_t start = gasnett_ticks_now();                                     \
    for (unsigned int i = 0; i < (count); ++i) call;                                      \
    (values)[batch] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / (count); \
  } while (0)
#define BATCHES 401

#endif /* LINTEL_PERF_GASNET_ROWS_H */
