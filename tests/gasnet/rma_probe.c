/* rma_probe.c: puts, gets and events between the ranks of a job, against a model.
 *
 * Every thread of every rank has its own region in every segment, and a copy with the contents that
 * it must have. Each round applies random operations to disjoint slices of one region, and
 * completes them. So slices overlap with those of earlier rounds. In the end the targets check the
 * sums of their memory.
 *
 * Usage: rma_probe <threads> <rounds> [<largest message> <memory descriptors>]
 *        rma_probe <threads> <rounds> peer|both   (memory of devices there)
 * Two numbers are limits of the Portals interface. With 0 threads it puts outside of a segment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
#include <portals4_runtime.h>

#include "checks.h"
#include "devices.h"
#ifdef GASNET_PAR
#include <pthread.h>
#endif

enum { kMostRanks = 16, kMostThreads = 4, kMostSlices = 48, kHandler = 200 };

/* The beginning of a segment. */
struct board {
  uint64_t sums[kMostRanks][kMostThreads];
  uint64_t go;
  uint64_t sent[kMostRanks];
};
#define BOARD_BYTES ((size_t)4096)

static unsigned int threads, rounds;
static char* segments[kMostRanks]; /* addresses in the owners */
static struct board* boards[kMostRanks];
static struct board* board;
static unsigned int handled;
static size_t region_bytes; /* smaller in large jobs */

static void count_message(gex_Token_t token) {
  (void)token;
  ++handled;
}
static gex_AM_Entry_t handlers[] = {{kHandler, (gex_AM_Fn_t)count_message,
                                     GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL,
                                     "count_message"}};

struct worker {
  unsigned int thread;
  uint64_t random;
  gex_TM_t team;           /* or a pair that names the same endpoints */
  char* source;            /* of puts, destination of gets; a slice has the same offset */
  char* local;             /* what calls are told: the same, or memory of the device */
  char* model[kMostRanks]; /* the region of this thread in each rank */
};

static uint64_t next_random(struct worker* worker) {
  worker->random ^= worker->random << 13;
  worker->random ^= worker->random >> 7;
  worker->random ^= worker->random << 17;
  return worker->random;
}
static size_t below(struct worker* worker, size_t limit) { return next_random(worker) % limit; }
static size_t random_size(struct worker* worker) {
  switch (below(worker, 8)) {
    case 0:
      return below(worker, 100000);
    case 1:
      return below(worker, 9000);
    case 2:
      return 505 + below(worker, 16); /* around the largest size that PtlPut copies at once */
    default:
      return below(worker, 65);
  }
}
/* The region of a thread of a rank in the segment at this address. */
static char* region_at(char* start, gex_Rank_t rank, unsigned int thread) {
  return start + (devices ? 0 : BOARD_BYTES) + (rank * threads + thread) * region_bytes;
}
static char* remote_region(const struct worker* worker, gex_Rank_t peer) {
  return region_at(segments[peer], me, worker->thread);
}
static void store(const struct worker* worker, size_t start, size_t bytes) {
  if (devices == kAtBoth) copy_of_device(worker->local + start, worker->source + start, bytes);
}
static void load(const struct worker* worker, size_t start, size_t bytes) {
  if (devices == kAtBoth) copy_of_device(worker->source + start, worker->local + start, bytes);
}

struct slice {
  size_t start, bytes;
  int is_get;
  gex_Event_t event;
};

/* Starts a put of new bytes. The source changes as soon as that is allowed. */
static gex_Event_t start_put(struct worker* worker, gex_Rank_t peer, size_t start, size_t bytes,
                             int in_region) {
  char* const bytes_of_host = worker->source + start;
  char* const source = worker->local + start;
  char* const dest = remote_region(worker, peer) + start;
  gex_Event_t event = GEX_EVENT_INVALID;
  gex_Event_t leaf = GEX_EVENT_NO_OP;
  for (size_t i = 0; i < bytes; ++i) bytes_of_host[i] = (char)next_random(worker);
  memcpy(worker->model[peer] + start, bytes_of_host, bytes);
  store(worker, start, bytes);
  switch (in_region ? 4 + below(worker, 3) : below(worker, 9)) {
    case 0:
      CHECK(gex_RMA_PutBlocking(worker->team, peer, dest, source, bytes, 0) == 0);
      break;
    case 1:
      event = gex_RMA_PutNB(worker->team, peer, dest, source, bytes, GEX_EVENT_NOW, 0);
      break;
    case 2:
      return gex_RMA_PutNB(worker->team, peer, dest, source, bytes, GEX_EVENT_DEFER, 0);
    case 3:
      event = gex_RMA_PutNB(worker->team, peer, dest, source, bytes, &leaf, 0);
      CHECK(leaf != GEX_EVENT_NO_OP);
      if (leaf != GEX_EVENT_INVALID) CHECK(gex_Event_QueryLeaf(event, GEX_EC_LC) == leaf);
      gex_Event_Wait(leaf);
      break;
    case 4:
      CHECK(gex_RMA_PutNBI(worker->team, peer, dest, source, bytes, GEX_EVENT_NOW, 0) == 0);
      break;
    case 5:
      CHECK(gex_RMA_PutNBI(worker->team, peer, dest, source, bytes, GEX_EVENT_DEFER, 0) == 0);
      return GEX_EVENT_INVALID;
    case 6:
      CHECK(gex_RMA_PutNBI(worker->team, peer, dest, source, bytes, GEX_EVENT_GROUP, 0) == 0);
      if (in_region) return GEX_EVENT_INVALID;
      gex_NBI_Wait(GEX_EC_LC, 0);
      break;
    case 7:
      return gex_RMA_PutNB(worker->team, peer, dest, source, bytes, &leaf, 0); /* the root alone */
    default: {
      gex_RMA_Value_t value = 0;
      if (bytes == 0 || bytes > 8) {
        CHECK(gex_RMA_PutBlocking(worker->team, peer, dest, source, bytes, 0) == 0);
        break;
      }
      memcpy(&value, bytes_of_host, bytes); /* little-endian */
      switch (below(worker, 3)) {
        case 0:
          CHECK(gex_RMA_PutBlockingVal(worker->team, peer, dest, value, bytes, 0) == 0);
          break;
        case 1:
          CHECK(gex_RMA_PutNBIVal(worker->team, peer, dest, value, bytes, 0) == 0);
          break;
        default:
          event = gex_RMA_PutNBVal(worker->team, peer, dest, value, bytes, 0);
          break;
      }
    }
  }
  memset(bytes_of_host, 0x55, bytes);
  store(worker, start, bytes);
  return event;
}

static gex_Event_t start_get(struct worker* worker, gex_Rank_t peer, size_t start, size_t bytes,
                             int in_region) {
  char* const dest = worker->local + start;
  char* const source = remote_region(worker, peer) + start;
  memset(worker->source + start, 0xAA, bytes);
  store(worker, start, bytes);
  switch (in_region ? 1 : below(worker, 4)) {
    case 0:
      CHECK(gex_RMA_GetBlocking(worker->team, dest, peer, source, bytes, 0) == 0);
      return GEX_EVENT_INVALID;
    case 1:
      CHECK(gex_RMA_GetNBI(worker->team, dest, peer, source, bytes, 0) == 0);
      return GEX_EVENT_INVALID;
    case 2:
      return gex_RMA_GetNB(worker->team, dest, peer, source, bytes, 0);
    default:
      if (bytes >= 1 && bytes <= 8) {
        const gex_RMA_Value_t value = gex_RMA_GetBlockingVal(worker->team, peer, source, bytes, 0);
        CHECK(bytes == 8 || value >> (8 * bytes) == 0);
        memcpy(worker->source + start, &value, bytes);
        store(worker, start, bytes);
        return GEX_EVENT_INVALID;
      }
      return gex_RMA_GetNB(worker->team, dest, peer, source, bytes, 0);
  }
}

static void complete(struct worker* worker, gex_Event_t* events, size_t count) {
  size_t i;
  switch (below(worker, 5)) {
    case 0:
      gex_Event_WaitAll(events, count, 0);
      break;
    case 1:
      while (gex_Event_TestAll(events, count, 0) != GASNET_OK) gasnet_AMPoll();
      break;
    case 2:
      for (size_t left = 1; left != 0;) {
        gex_Event_WaitSome(events, count, 0);
        for (left = i = 0; i < count; ++i) left += events[i] != GEX_EVENT_INVALID;
      }
      break;
    case 3:
      for (size_t left = 1; left != 0;) {
        while (gex_Event_TestSome(events, count, 0) != GASNET_OK) gasnett_sched_yield();
        for (left = i = 0; i < count; ++i) left += events[i] != GEX_EVENT_INVALID;
      }
      break;
    default:
      for (i = 0; i < count; ++i) {
        if (below(worker, 2)) {
          while (gex_Event_Test(events[i]) != GASNET_OK) gasnett_sched_yield();
        } else {
          gex_Event_Wait(events[i]);
        }
        events[i] = GEX_EVENT_INVALID;
      }
      break;
  }
  for (i = 0; i < count; ++i) CHECK(events[i] == GEX_EVENT_INVALID);
}

static void run_round(struct worker* worker) {
  struct slice slices[kMostSlices];
  gex_Event_t events[2 * kMostSlices + 1];
  const gex_Rank_t peer = (gex_Rank_t)below(worker, size);
  const int in_region = below(worker, 4) == 0;
  size_t count = 0, pending = 0, cursor = below(worker, 4096), i;
  worker->team = below(worker, 2) ? team : gex_TM_Pair(endpoint, 0);
  if (devices) worker->team = to_devices(devices == kAtBoth);
  if (in_region) gex_NBI_BeginAccessRegion(0);
  for (; count < kMostSlices; ++count) {
    struct slice* const slice = &slices[count];
    slice->start = cursor + below(worker, 20);
    slice->bytes = random_size(worker);
    cursor = slice->start + slice->bytes;
    if (cursor > region_bytes) break;
    slice->is_get = below(worker, 3) == 0;
    slice->event = slice->is_get ? start_get(worker, peer, slice->start, slice->bytes, in_region)
                                 : start_put(worker, peer, slice->start, slice->bytes, in_region);
    CHECK(slice->event != GEX_EVENT_NO_OP);
    /* Leaves beside their roots, in any order. */
    if (below(worker, 4) == 0) {
      events[pending++] = slice->event;
      events[pending++] = gex_Event_QueryLeaf(slice->event, GEX_EC_LC);
    } else {
      events[pending++] = slice->event;
    }
  }
  if (in_region) events[pending++] = gex_NBI_EndAccessRegion(0);
  for (i = 0; i + 1 < pending; ++i) {
    const size_t other = i + below(worker, pending - i);
    const gex_Event_t event = events[i];
    events[i] = events[other];
    events[other] = event;
  }
  gex_Event_WaitSome(events, pending, 0);
  gex_Event_WaitAll(events, pending / 2, 0);
  {
    /* The second half may have leaves whose roots were in the first half: drop those. */
    size_t kept = 0;
    for (i = pending / 2; i < pending; ++i)
      if (events[i] != GEX_EVENT_INVALID && ((uintptr_t)events[i] & 1) == 0)
        events[kept++] = events[i];
    complete(worker, events, kept);
  }
  if (below(worker, 2)) {
    gex_NBI_Wait(GEX_EC_ALL, 0);
  } else {
    gex_NBI_Wait(GEX_EC_PUT, 0);
    while (gex_NBI_Test(GEX_EC_GET, 0) != GASNET_OK) gasnett_sched_yield();
    CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK);
  }
  for (i = 0; i < count; ++i) {
    if (!slices[i].is_get) continue;
    load(worker, slices[i].start, slices[i].bytes);
    CHECK(memcmp(worker->source + slices[i].start, worker->model[peer] + slices[i].start,
                 slices[i].bytes) == 0);
  }
}

static uint64_t sum_of(const char* bytes) {
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < region_bytes; ++i) sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
  return sum;
}

#ifdef GASNET_PAR
static pthread_barrier_t all_are_known;
#endif

static void* work(void* argument) {
  struct worker* const worker = argument;
#ifdef GASNET_PAR
  /* All threads are alive at once, and have called the library. */
  gex_NBI_Wait(GEX_EC_ALL, 0);
  pthread_barrier_wait(&all_are_known);
#endif
  worker->random = 88172645463325252u + 7919u * (me * threads + worker->thread);
  worker->source = malloc(region_bytes);
  worker->local =
      devices == kAtBoth ? region_at(device_segment, size, worker->thread) : worker->source;
  for (gex_Rank_t peer = 0; peer < size; ++peer) worker->model[peer] = calloc(region_bytes, 1);
  for (unsigned int round = 0; round < rounds; ++round) run_round(worker);
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    gex_RMA_PutBlockingVal(team, peer, &boards[peer]->sums[me][worker->thread],
                           sum_of(worker->model[peer]), 8, 0);
    free(worker->model[peer]);
  }
  free(worker->source);
  return NULL;
}

static void test_until_complete(gex_Event_t event) {
  while (gex_Event_Test(event) != GASNET_OK) gasnett_sched_yield();
}

/* A test of an event runs no handlers, even if a message waits; polling does. After rank 0 has let
 * the others send, it calls nothing that polls. */
static void check_that_tests_run_no_handlers(void) {
  uint64_t word = 0;
  if (me != 0) {
    GASNET_BLOCKUNTIL(__atomic_load_n(&board->go, __ATOMIC_ACQUIRE) == 1);
    gex_AM_RequestShort0(team, 0, kHandler, 0);
    gex_RMA_PutBlockingVal(team, 0, &boards[0]->sent[me], 1, 8, 0);
    return;
  }
  for (gex_Rank_t peer = 1; peer < size; ++peer)
    test_until_complete(gex_RMA_PutNBVal(team, peer, &boards[peer]->go, 1, 8, 0));
  for (gex_Rank_t peer = 1; peer < size; ++peer)
    while (__atomic_load_n(&board->sent[peer], __ATOMIC_ACQUIRE) == 0)
      test_until_complete(gex_RMA_GetNB(team, &word, peer, &boards[peer]->go, 8, 0));
  CHECK(handled == 0);
  GASNET_BLOCKUNTIL(handled == size - 1);
}

/* Opens the interface before the library does, with lower limits. */
static void limit(ptl_size_t message_bytes, int descriptors) {
  ptl_ni_limits_t limits;
  ptl_handle_ni_t interface;
  const unsigned int options = PTL_NI_MATCHING | PTL_NI_LOGICAL;
  memset(&limits, 0, sizeof limits);
  limits.max_msg_size = message_bytes;
  limits.max_mds = descriptors;
  CHECK(PtlJobInit() == PTL_OK && PtlInit() == PTL_OK);
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, &limits, &limits, &interface) == PTL_OK);
  CHECK(limits.max_msg_size == message_bytes && limits.max_mds == descriptors);
}

int main(int argc, char** argv) {
  struct worker workers[kMostThreads];
  if (argc == 5) limit((ptl_size_t)atol(argv[3]), atoi(argv[4]));
  start_client("RMA_PROBE", &argc, &argv, handlers, 1, 0);
  CHECK(argc >= 3 && argc <= 5 && size <= kMostRanks);
  threads = (unsigned int)atoi(argv[1]);
  rounds = (unsigned int)atoi(argv[2]);
  CHECK(threads <= kMostThreads);
  region_bytes = (size_t)1 << (size * threads <= 8 ? 19 : 16);
  CHECK(gex_Segment_Attach(&segment, team, BOARD_BYTES + size * threads * region_bytes) ==
        GASNET_OK);
  board = gex_Segment_QueryAddr(segment);
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    CHECK(gex_Segment_QueryBound(team, peer, (void**)&segments[peer], NULL, NULL) == 0);
  memcpy(boards, segments, sizeof boards);
  if (argc == 4) {
    use_devices(argv[3], (size + 1) * threads * region_bytes);
    clear_device(device_segment, size * threads * region_bytes);
    for (gex_Rank_t peer = 0; peer < size; ++peer) segments[peer] = segment_of(to_devices(0), peer);
  }
  barrier();

  if (threads == 0) {
    gex_RMA_PutBlocking(team, 1 - me, segments[1 - me] + BOARD_BYTES - 7, board, 8, 0);
    gasnet_exit(0);
  }
  for (unsigned int i = 0; i < threads; ++i) workers[i].thread = i;
#ifdef GASNET_PAR
  pthread_t started[kMostThreads];
  CHECK(pthread_barrier_init(&all_are_known, NULL, threads) == 0);
  for (unsigned int i = 0; i < threads; ++i)
    CHECK(pthread_create(&started[i], NULL, work, &workers[i]) == 0);
  for (unsigned int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
#else
  CHECK(threads == 1);
  work(&workers[0]);
#endif
  barrier();
  char* const contents = malloc(region_bytes);
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    for (unsigned int i = 0; i < threads; ++i) {
      copy_of_device(contents, region_at(segments[me], peer, i), region_bytes);
      CHECK(board->sums[peer][i] == sum_of(contents));
    }
  free(contents);
  /* With few memory descriptors a put may have to wait before it starts. */
  if (argc != 5) check_that_tests_run_no_handlers();
  barrier();
  gasnet_exit(0);
}
