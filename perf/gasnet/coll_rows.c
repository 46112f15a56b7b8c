/* coll_rows.c: times of a barrier and of a sum of 8 bytes over all ranks. rows.py compares them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBatches = 400, kCalls = 16 };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  gex_Client_t client;
  gex_EP_t endpoint;
  gex_TM_t team;
  gex_Client_Init(&client, &endpoint, &team, "COLL_ROWS", &argc, &argv, 0);
  const gex_Rank_t me = gex_TM_QueryRank(team);
  gasnett_set_affinity((int)me); /* as ptl_perf does */
  /* Medians of batches, alternating: another process on the processor affects only few of them. */
  static double barriers[kBatches], sums[kBatches];
  for (unsigned int batch = 0; batch < 2 * kBatches; ++batch) {
    double number = me, sum = 0;
    const gasnett_tick_t start = gasnett_ticks_now();
    for (unsigned int i = 0; i < kCalls; ++i)
      gex_Event_Wait(batch % 2 == 0 ? gex_Coll_BarrierNB(team, 0)
                                    : gex_Coll_ReduceToAllNB(team, &sum, &number, GEX_DT_DBL, 8, 1,
                                                             GEX_OP_ADD, NULL, NULL, 0));
    const double ns = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / kCalls;
    (batch % 2 == 0 ? barriers : sums)[batch / 2] = ns;
  }
  qsort(barriers, kBatches, sizeof *barriers, compare);
  qsort(sums, kBatches, sizeof *sums, compare);
  if (me == 0) printf("barrier_ns %.1f\nsum_ns %.1f\n", barriers[kBatches / 2], sums[kBatches / 2]);
  fflush(stdout);
  gex_Coll_BarrierBlocking(team, 0);
  gasnet_exit(0);
}
