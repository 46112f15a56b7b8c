/* atomic_vis_rows.c: times of remote atomics and of strided puts between two ranks, and of their
 * lower bounds, measured alternately. rows.py runs it.
 *
 * Usage: atomic_vis_rows near|far|strided [<pieces> <bytes>]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>
#include <portals4_runtime.h>

#include "rows.h"

#define SEGMENT_BYTES ((size_t)16 << 20)

static gex_Segment_t segment;
static gex_AD_t ad;
static char* theirs; /* address of the other segment in its owner */

/* Functions that the compiler does not inline. */
static uint64_t add_by_processor(uint64_t* to, uint64_t value) {
  return __atomic_fetch_add(to, value, __ATOMIC_ACQ_REL);
}
static uint64_t add_remotely(uint64_t* to, uint64_t value) {
  uint64_t result;
  gex_Event_Wait(gex_AD_OpNB_U64(ad, &result, 1 - me, to, GEX_OP_FADD, value, 0, 0));
  return result;
}
static uint64_t (*volatile add)(uint64_t*, uint64_t) = add_by_processor;
static uint64_t (*volatile add_far)(uint64_t*, uint64_t) = add_remotely;

static void measure_near(void) {
  static double instructions[BATCHES], atomics[BATCHES];
  void* local = NULL;
  uint64_t sum = 0;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, 1 - me, NULL, &local, NULL, 0));
  if (!local) gasnet_exit(3);
  if (me != 0) return;
  for (unsigned int batch = 0; batch < BATCHES; ++batch) {
    TIME(instructions, batch, 2000, sum += add(local, i));
    TIME(atomics, batch, 2000, sum += add_far((uint64_t*)(void*)theirs, i));
  }
  printf("fetch_add_ns %.3f\ninstruction_ns %.3f\n", median(atomics, BATCHES),
         median(instructions, BATCHES));
  if (sum == 1) printf("\n"); /* so that the results are used */
}

/* The same by Portals alone. */
struct raw {
  ptl_handle_md_t memory;
  ptl_handle_ct_t counter;
  ptl_size_t count;
  uint64_t result, operand;
};
static void open_raw(struct raw* raw) {
  ptl_handle_ni_t interface;
  ptl_md_t md;
  memset(&md, 0, sizeof md);
  if (PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &interface) !=
          PTL_OK ||
      PtlCTAlloc(interface, &raw->counter) != PTL_OK)
    gasnet_exit(3);
  md.length = PTL_SIZE_MAX;
  md.options = PTL_MD_EVENT_CT_REPLY | PTL_MD_VOLATILE;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = raw->counter;
  if (PtlMDBind(interface, &md, &raw->memory) != PTL_OK) gasnet_exit(3);
  raw->count = 0;
}
static void add_raw(struct raw* raw) {
  ptl_process_t target;
  ptl_ct_event_t count;
  target.rank = 1 - me;
  ++raw->count;
  /* 240: the portal table entry of segments in this library. */
  if (PtlFetchAtomic(raw->memory, (ptl_size_t)(uintptr_t)&raw->result, raw->memory,
                     (ptl_size_t)(uintptr_t)&raw->operand, 8, target, 240, 0, 0, NULL, 0, PTL_SUM,
                     PTL_UINT64_T) != PTL_OK)
    gasnet_exit(3);
  do PtlCTGet(raw->counter, &count);
  while (count.success < raw->count);
}

static void measure_far(void) {
  static double atomics[BATCHES], raws[BATCHES];
  static struct raw raw;
  open_raw(&raw); /* collective */
  meet();
  if (me != 0) return;
  for (unsigned int batch = 0; batch < BATCHES; ++batch) {
    TIME(raws, batch, 20, add_raw(&raw));
    TIME(atomics, batch, 20, add_far((uint64_t*)(void*)theirs, i));
  }
  printf("fetch_add_ns %.1f\nraw_ns %.1f\n", median(atomics, BATCHES), median(raws, BATCHES));
}

/* Puts every second piece of the segment of the other rank. */
static void measure_strided(size_t pieces, size_t bytes) {
  enum { kTimes = 31 };
  static double strided[kTimes], gets[kTimes], blocking[kTimes], one_by_one[kTimes];
  static double gathered[kTimes], gets_one_by_one[kTimes];
  const ptrdiff_t stride = (ptrdiff_t)(2 * bytes), dense = (ptrdiff_t)bytes;
  char* const mine = malloc(2 * bytes * pieces);
  memset(mine, 1, 2 * bytes * pieces);
  if (2 * bytes * pieces > SEGMENT_BYTES) gasnet_exit(3);
  if (me == 0) {
    for (unsigned int batch = 0; batch < kTimes; ++batch) {
      TIME(strided, batch, 1,
           gex_VIS_StridedPutBlocking(team, 1, theirs, &stride, mine, &stride, bytes, &pieces, 1,
                                      0));
      TIME(gets, batch, 1,
           gex_VIS_StridedGetBlocking(team, mine, &stride, 1, theirs, &stride, bytes, &pieces, 1,
                                      0));
      TIME(
          gathered, batch, 1,
          gex_VIS_StridedPutBlocking(team, 1, theirs, &dense, mine, &stride, bytes, &pieces, 1, 0));
      TIME(one_by_one, batch, 1, {
        for (size_t k = 0; k < pieces; ++k)
          gex_RMA_PutNBI(team, 1, theirs + k * 2 * bytes, mine + k * 2 * bytes, bytes,
                         GEX_EVENT_DEFER, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
      });
      TIME(gets_one_by_one, batch, 1, {
        for (size_t k = 0; k < pieces; ++k)
          gex_RMA_GetNBI(team, mine + k * 2 * bytes, 1, theirs + k * 2 * bytes, bytes, 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
      });
      TIME(blocking, batch, 1, {
        for (size_t k = 0; k < pieces; ++k)
          gex_RMA_PutBlocking(team, 1, theirs + k * 2 * bytes, mine + k * 2 * bytes, bytes, 0);
      });
    }
    printf("strided_put_ns %.1f\nstrided_get_ns %.1f\n", median(strided, kTimes),
           median(gets, kTimes));
    printf("gathered_put_ns %.1f\nput_loop_ns %.1f\nget_loop_ns %.1f\nblocking_puts_ns %.1f\n",
           median(gathered, kTimes), median(one_by_one, kTimes), median(gets_one_by_one, kTimes),
           median(blocking, kTimes));
  }
  free(mine);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  start_client("ATOMIC_VIS_ROWS", &argc, &argv);
  gex_Segment_Attach(&segment, team, SEGMENT_BYTES);
  begin_pair();
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, 1 - me, (void**)&theirs, NULL, NULL, 0));
  gex_AD_Create(&ad, team, GEX_DT_U64, GEX_OP_FADD, 0);
  meet();
  if (!strcmp(what, "near")) measure_near();
  if (!strcmp(what, "far")) measure_far();
  if (!strcmp(what, "strided"))
    measure_strided(argc > 3 ? strtoul(argv[2], NULL, 0) : 512,
                    argc > 3 ? strtoul(argv[3], NULL, 0) : 256);
  fflush(stdout);
  meet();
  gasnet_exit(0);
}
