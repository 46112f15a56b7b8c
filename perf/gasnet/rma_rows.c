/* rma_rows.c: times of puts and gets between two ranks, and of their lower bounds, measured
 * alternately. rows.py runs it.
 *
 * Usage: rma_rows near|far|memory|attach|open|nothing
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
#include <portals4_runtime.h>
#include <time.h>

#include "rows.h"

enum { kArrived = 200, kBig = 1 << 20, kDepth = 16 };

static gex_Segment_t segment;
static volatile unsigned int arrivals;
static char* theirs; /* address of the other segment in its owner */
static char* mine;

static void arrived(gex_Token_t token) {
  (void)token;
  ++arrivals;
}

/* Functions that the compiler does not inline. */
static void store_word(uint64_t* to, uint64_t value) { *to = value; }
static uint64_t load_word(const uint64_t* from) { return *from; }
static void (*volatile store)(uint64_t*, uint64_t) = store_word;
static uint64_t (*volatile load)(const uint64_t*) = load_word;
static void put_word(uint64_t* to, uint64_t value) {
  gex_RMA_PutBlocking(team, 1 - me, to, &value, sizeof value, 0);
}
static uint64_t get_word(const uint64_t* from) {
  uint64_t value;
  gex_RMA_GetBlocking(team, &value, 1 - me, (void*)(uintptr_t)from, sizeof value, 0);
  return value;
}
static void (*volatile put)(uint64_t*, uint64_t) = put_word;
static uint64_t (*volatile get)(const uint64_t*) = get_word;

static void measure_near(void) {
  static double stores[BATCHES], puts[BATCHES], loads[BATCHES], gets[BATCHES];
  void* local = NULL;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, 1 - me, NULL, &local, NULL, 0));
  uint64_t* const mapped = local;
  uint64_t* const owner = (uint64_t*)(void*)theirs;
  uint64_t sum = 0;
  if (!mapped) gasnet_exit(3);
  if (me == 0) {
    for (unsigned int batch = 0; batch < BATCHES; ++batch) {
      TIME(stores, batch, 2000, store(mapped, i));
      TIME(puts, batch, 2000, put(owner, i));
      TIME(loads, batch, 2000, sum += load(mapped));
      TIME(gets, batch, 2000, sum += get(owner));
    }
    printf("put_ns %.3f\nstore_ns %.3f\nget_ns %.3f\nload_ns %.3f\n", median(puts, BATCHES),
           median(stores, BATCHES), median(gets, BATCHES), median(loads, BATCHES));
    if (sum == 1) printf("\n"); /* so that the loads are used */
  }
}

/* A put by Portals alone to the same address, with a counted acknowledgement. */
struct raw {
  ptl_handle_md_t memory;
  ptl_handle_ct_t counter;
  ptl_size_t count;
  ptl_pt_index_t index;
  uint64_t word;
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
  md.options = PTL_MD_EVENT_CT_ACK | PTL_MD_VOLATILE;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = raw->counter;
  if (PtlMDBind(interface, &md, &raw->memory) != PTL_OK) gasnet_exit(3);
  raw->count = 0;
  raw->index = 240; /* the portal table entry of segments in this library */
}
static void start_raw(struct raw* raw, const void* from, ptl_size_t bytes) {
  ptl_process_t target;
  target.rank = 1 - me;
  ++raw->count;
  if (PtlPut(raw->memory, (ptl_size_t)(uintptr_t)from, bytes, PTL_CT_ACK_REQ, target, raw->index, 0,
             0, NULL, 0) != PTL_OK)
    gasnet_exit(3);
}
static void wait_raw(struct raw* raw) {
  ptl_ct_event_t count;
  do PtlCTGet(raw->counter, &count);
  while (count.success < raw->count);
}
static void put_raw(struct raw* raw) {
  start_raw(raw, &raw->word, sizeof raw->word);
  wait_raw(raw);
}

static void measure_far(void) {
  static double puts[BATCHES], raws[BATCHES], streams[21], raw_streams[21], gets[41];
  static struct raw raw;
  /* As that of ptl_perf it begins at a page: otherwise each datagram refers to one page more. */
  char* const big = aligned_alloc(4096, kBig);
  uint64_t* const owner = (uint64_t*)(void*)theirs;
  memset(big, 1, kBig);
  open_raw(&raw); /* collective */
  meet();
  if (me == 0) {
    for (unsigned int batch = 0; batch < BATCHES; ++batch) {
      TIME(raws, batch, 20, put_raw(&raw));
      TIME(puts, batch, 20, put(owner, i));
    }
    for (unsigned int batch = 0; batch < 21; ++batch) {
      gasnett_tick_t start = gasnett_ticks_now();
      for (int i = 0; i < kDepth; ++i) start_raw(&raw, big, kBig);
      wait_raw(&raw);
      raw_streams[batch] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / kDepth;
      start = gasnett_ticks_now();
      for (int i = 0; i < kDepth; ++i)
        gex_RMA_PutNBI(team, 1, theirs, big, kBig, GEX_EVENT_DEFER, 0);
      gex_NBI_Wait(GEX_EC_PUT, 0);
      streams[batch] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / kDepth;
    }
    printf("put_ns %.1f\nraw_put_ns %.1f\nstream_ns %.1f\nraw_stream_ns %.1f\n",
           median(puts, BATCHES), median(raws, BATCHES), median(streams, 21),
           median(raw_streams, 21));
    fflush(stdout);
  }
  meet();
  /* The target computes until a put stops it. */
  volatile uint64_t* const stop = (volatile uint64_t*)(void*)(mine + kBig);
  if (me == 1) {
    while (!*stop) gasnett_spinloop_hint();
  } else {
    for (unsigned int i = 0; i < 41; ++i) {
      const gasnett_tick_t start = gasnett_ticks_now();
      gex_RMA_GetBlocking(team, big, 1, theirs, kBig, 0);
      gets[i] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start);
    }
    gex_RMA_PutBlockingVal(team, 1, theirs + kBig, 1, 8, 0);
    printf("get_from_busy_ns %.1f\n", median(gets, 41));
    fflush(stdout);
  }
  meet();
}

static long resident_kib(void) {
  char line[256];
  long value = -1;
  FILE* const file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, "VmRSS:", 6)) value = atol(line + 6);
  if (file) fclose(file);
  return value;
}

int main(int argc, char** argv) {
  gex_AM_Entry_t handlers[] = {{kArrived, (gex_AM_Fn_t)arrived,
                                GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "arrived"}};
  const char* const what = argc > 1 ? argv[1] : "";
  struct timespec now;
  /* The time to start and load a program that is linked with the library. */
  if (!strcmp(what, "nothing")) return 0;
  if (!strcmp(what, "open")) {
    /* Portals alone. */
    ptl_handle_ni_t interface;
    if (PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &interface) !=
        PTL_OK)
      return 1;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("opened %ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
    PtlJobBarrier();
    PtlJobClose(interface);
    return 0;
  }
  start_client("RMA_ROWS", &argc, &argv);
  gex_EP_RegisterHandlers(endpoint, handlers, 1);
  gex_Segment_Attach(&segment, team, 2 * kBig);
  clock_gettime(CLOCK_REALTIME, &now);
  if (!strcmp(what, "attach")) {
    /* A rank that ends must not take a processor from ranks that have not attached yet. */
    meet();
    printf("attached %ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
    fflush(stdout);
    gasnet_exit(0);
  }
  begin_pair();
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, 1 - me, (void**)&theirs, NULL, NULL, 0));
  mine = gex_Segment_QueryAddr(segment);
  meet();
  if (!strcmp(what, "near")) measure_near();
  if (!strcmp(what, "far")) measure_far();
  if (!strcmp(what, "memory")) {
    for (int i = 0; i < 20000; ++i) gex_AM_RequestShort0(team, 1 - me, kArrived, 0);
    GASNET_BLOCKUNTIL(arrivals >= 20000);
    printf("resident_kib %ld\n", resident_kib());
    fflush(stdout);
  }
  meet();
  gasnet_exit(0);
}
