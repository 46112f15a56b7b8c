/* coll_rows.c: times of barriers and of a sum of 8 bytes over all ranks. rows.py compares them.
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

enum { kKinds = 4 };
static const char* const kNames[kKinds] = {"barrier", "sum", "named", "anonymous"};

static void call(gex_TM_t team, gex_Rank_t me, unsigned int kind, int name) {
  double number = me, sum = 0;
  switch (kind) {
    case 0:
      gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
      return;
    case 1:
      gex_Event_Wait(
          gex_Coll_ReduceToAllNB(team, &sum, &number, GEX_DT_DBL, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
      return;
    default:
      gasnet_barrier(name, kind == 2 ? 0 : GASNET_BARRIERFLAG_ANONYMOUS);
  }
}

int main(int argc, char** argv) {
  gex_Client_t client;
  gex_EP_t endpoint;
  gex_TM_t team;
  gex_Client_Init(&client, &endpoint, &team, "COLL_ROWS", &argc, &argv, 0);
  const gex_Rank_t me = gex_TM_QueryRank(team);
  gasnett_set_affinity((int)me); /* as ptl_perf does */
  /* Medians of batches, alternating: another process on the processor affects only few of them. */
  static double times_ns[kKinds][kBatches];
  for (unsigned int batch = 0; batch < kKinds * kBatches; ++batch) {
    const gasnett_tick_t start = gasnett_ticks_now();
    for (unsigned int i = 0; i < kCalls; ++i) call(team, me, batch % kKinds, (int)i);
    times_ns[batch % kKinds][batch / kKinds] =
        (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / kCalls;
  }
  for (unsigned int kind = 0; kind < kKinds && me == 0; ++kind) {
    qsort(times_ns[kind], kBatches, sizeof *times_ns[kind], compare);
    printf("%s_ns %.1f\n", kNames[kind], times_ns[kind][kBatches / 2]);
  }
  fflush(stdout);
  gex_Coll_BarrierBlocking(team, 0);
  gasnet_exit(0);
}
