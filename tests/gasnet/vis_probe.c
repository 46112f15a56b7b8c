/* vis_probe.c: vector, indexed and strided puts and gets between the ranks of a job, against a
 * model.
 *
 * Every thread of every rank has a region in every segment, and a copy with the contents that it
 * must have. Each round describes random pieces at both sides, and moves them. After a put a get of
 * the whole region shows that the pieces have arrived and nothing else has changed.
 *
 * Usage: vis_probe <threads> <rounds> [peer|both]   (memory of devices there)
 *        vis_probe range|waits
 *        vis_probe outside|lengths     (ends with a message)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>
#include <gasnet_vis.h>

#include "checks.h"
#include "devices.h"
#ifdef GASNET_PAR
#include <pthread.h>
#endif

enum { kMostRanks = 16, kMostThreads = 4, kMostPieces = 600, kMostLevels = 5, kDone = 200 };
#define REGION_BYTES ((size_t)1 << 17)
/* Behind the region: a place for each put with a peer completion, which nothing else changes. */
#define TOLD_BYTES ((size_t)64)
#define TOLD_PLACES ((size_t)512)
#define WHOLE_BYTES (REGION_BYTES + TOLD_PLACES * TOLD_BYTES)

static unsigned int threads, rounds;
static char* segments[kMostRanks];

/* Peer completion: the payload contains an address and the 8 bytes that must be there. */
struct notice {
  uint64_t* where;
  uint64_t value;
  char more[100];
};
static gasnett_atomic32_t completions = gasnett_atomic32_init(0);
static void on_done(gex_Token_t token, void* payload, size_t bytes) {
  struct notice notice;
  gex_Token_Info_t info;
  CHECK(bytes == sizeof notice);
  memcpy(&notice, payload, sizeof notice);
  CHECK(*notice.where == notice.value);
  gex_Token_Info(token, &info, GEX_TI_ALL);
  CHECK(!info.gex_is_req && info.gex_entry->gex_index == kDone);
  gasnett_atomic32_increment(&completions, 0);
}
static gex_AM_Entry_t handlers[] = {
    {kDone, (gex_AM_Fn_t)on_done, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "on_done"}};

struct worker {
  unsigned int thread;
  uint64_t random;
  gex_TM_t team;
  char* near;              /* a region of this process */
  char* local;             /* what calls are told: the same, or memory of the device */
  char* before;            /* a copy of it */
  char* fetched;           /* a region of a peer, as it was read */
  char* model[kMostRanks]; /* the regions of this thread, as they must be */
  unsigned int completions[kMostRanks];
};

static uint64_t next_random(struct worker* worker) {
  worker->random ^= worker->random << 13;
  worker->random ^= worker->random >> 7;
  worker->random ^= worker->random << 17;
  return worker->random;
}
static size_t below(struct worker* worker, size_t limit) {
  return (size_t)((next_random(worker) >> 16) % limit);
}
static char* region(const struct worker* worker, gex_Rank_t rank) {
  return segments[rank] + (me * threads + worker->thread) * WHOLE_BYTES;
}

/* The transfer as it must be: from bytes of one region to bytes of another. */
static void move_model(char* to, size_t to_offset, const char* from, size_t from_offset,
                       size_t bytes) {
  CHECK(to_offset + bytes <= REGION_BYTES && from_offset + bytes <= REGION_BYTES);
  memcpy(to + to_offset, from + from_offset, bytes);
}

/* A new content of the region. */
static void store(const struct worker* worker) {
  if (devices == kAtBoth) copy_of_device(worker->local, worker->near, REGION_BYTES);
}

enum form { kNB, kNBI, kBlocking, kLeaf, kLeafNBI, kRegion, kForms };

static void finish(struct worker* worker, enum form form, gex_Event_t event, int is_put) {
  CHECK(event != GEX_EVENT_NO_OP);
  if (form == kLeaf) {
    gex_Event_t leaf = gex_Event_QueryLeaf(event, GEX_EC_LC);
    gex_Event_Wait(leaf);
    memset(worker->near, 0x77, REGION_BYTES); /* the program may change the source now */
    store(worker);
  }
  if (form == kLeafNBI) {
    gex_NBI_Wait(GEX_EC_LC, 0);
    memset(worker->near, 0x77, REGION_BYTES);
    store(worker);
  }
  if (form == kRegion) event = gex_NBI_EndAccessRegion(0);
  if (below(worker, 2)) {
    gex_Event_Wait(event);
  } else {
    while (gex_Event_Test(event) != GASNET_OK) gasnet_AMPoll();
  }
  gex_NBI_Wait(is_put ? GEX_EC_PUT : GEX_EC_GET, 0);
}

/* A call in one of its forms. */
#define START(form, NAME, flags, ...)                                                     \
  ((form) == kNB || (form) == kLeaf                                                       \
       ? gex_VIS_##NAME##NB(__VA_ARGS__, (flags))                                         \
       : (CHECK_ZERO((form) == kBlocking ? gex_VIS_##NAME##Blocking(__VA_ARGS__, (flags)) \
                                         : gex_VIS_##NAME##NBI(__VA_ARGS__, (flags))),    \
          GEX_EVENT_INVALID))
static void CHECK_ZERO(int result) { CHECK(result == 0); }

struct pieces {
  size_t count;
  gex_Memvec_t vector[kMostPieces];
  void* indexed[kMostPieces];
};

/* Pieces of a list of lengths, each at a random distance from the one before; then shuffled. */
static void place(struct worker* worker, const size_t* lengths, size_t count, int may_overlap,
                  size_t* offsets) {
  size_t total = 0, cursor, slack;
  for (size_t i = 0; i < count; ++i) total += lengths[i];
  slack = (REGION_BYTES - total) / (count + 1);
  cursor = 0;
  for (size_t i = 0; i < count; ++i) {
    cursor += below(worker, 3) && slack ? below(worker, slack + 1) : 0;
    offsets[i] = may_overlap ? below(worker, REGION_BYTES - lengths[i]) : cursor;
    cursor += lengths[i];
  }
}
static void shuffle(struct worker* worker, size_t* offsets, size_t* lengths, size_t count) {
  for (size_t i = 0; i + 1 < count; ++i) {
    const size_t other = i + below(worker, count - i);
    const size_t offset = offsets[i], length = lengths[i];
    offsets[i] = offsets[other];
    lengths[i] = lengths[other];
    offsets[other] = offset;
    lengths[other] = length;
  }
}

/* Cuts a number of bytes into pieces. */
static size_t cut(struct worker* worker, size_t total, size_t most, size_t* lengths) {
  const size_t usual = 1 + total / (1 + below(worker, most / 2));
  size_t count = 0;
  while (total != 0 || (count < most && below(worker, 16) == 0)) {
    size_t length = below(worker, 2 * usual + 1);
    if (length > total || count + 1 == most) length = total;
    lengths[count++] = length;
    total -= length;
  }
  return count;
}

static void describe(struct pieces* pieces, char* base, const size_t* offsets,
                     const size_t* lengths, size_t count) {
  pieces->count = count;
  for (size_t i = 0; i < count; ++i) {
    pieces->vector[i].gex_addr = base + offsets[i];
    pieces->vector[i].gex_len = lengths[i];
    pieces->indexed[i] = base + offsets[i];
  }
}

/* The bytes of the lists one after the other. */
static void move_lists(char* to, const size_t* to_offsets, const size_t* to_lengths,
                       const char* from, const size_t* from_offsets, const size_t* from_lengths,
                       size_t total) {
  size_t i = 0, k = 0, i_used = 0, k_used = 0;
  while (total != 0) {
    size_t bytes;
    while (i_used == to_lengths[i]) ++i, i_used = 0;
    while (k_used == from_lengths[k]) ++k, k_used = 0;
    bytes = MIN(to_lengths[i] - i_used, from_lengths[k] - k_used);
    move_model(to, to_offsets[i] + i_used, from, from_offsets[k] + k_used, bytes);
    i_used += bytes;
    k_used += bytes;
    total -= bytes;
  }
}

static void lists_round(struct worker* worker, gex_Rank_t peer, int is_put, enum form form,
                        gex_Flags_t flags) {
  size_t near_lengths[kMostPieces], far_lengths[kMostPieces];
  size_t near_offsets[kMostPieces], far_offsets[kMostPieces];
  struct pieces* const near = malloc(sizeof *near);
  struct pieces* const far = malloc(sizeof *far);
  const int is_indexed = below(worker, 2) != 0;
  size_t near_count, far_count, total, near_length = 0, far_length = 0;
  gex_Event_t event;
  if (is_indexed) {
    /* All pieces of a side have the same length. Both sides have the same number of bytes. */
    const size_t unit = 1 + below(worker, below(worker, 3) ? 20 : 300);
    const size_t units = below(worker, 8) == 0 ? 0 : 1 + below(worker, MIN(500, 60000 / unit));
    size_t divisor = 1 + below(worker, 8);
    while (units % divisor != 0) --divisor;
    near_length = below(worker, 2) ? unit * divisor : unit;
    far_length = below(worker, 2) ? unit * divisor : unit;
    total = unit * units;
    near_count = total / near_length;
    far_count = total / far_length;
    for (size_t i = 0; i < near_count; ++i) near_lengths[i] = near_length;
    for (size_t i = 0; i < far_count; ++i) far_lengths[i] = far_length;
  } else {
    total = below(worker, 8) == 0 ? 0 : below(worker, below(worker, 2) ? 600 : 90000);
    near_count = cut(worker, total, kMostPieces, near_lengths);
    far_count = cut(worker, total, kMostPieces, far_lengths);
  }
  place(worker, near_lengths, near_count, is_put && below(worker, 2), near_offsets);
  place(worker, far_lengths, far_count, !is_put && below(worker, 2), far_offsets);
  if (below(worker, 2)) shuffle(worker, near_offsets, near_lengths, near_count);
  if (below(worker, 2)) shuffle(worker, far_offsets, far_lengths, far_count);
  describe(near, worker->local, near_offsets, near_lengths, near_count);
  describe(far, region(worker, peer), far_offsets, far_lengths, far_count);
  if (is_put)
    move_lists(worker->model[peer], far_offsets, far_lengths, worker->before, near_offsets,
               near_lengths, total);
  else
    move_lists(worker->before, near_offsets, near_lengths, worker->model[peer], far_offsets,
               far_lengths, total);
  if (is_put && is_indexed)
    event = START(form, IndexedPut, flags, worker->team, peer, far_count, far->indexed, far_length,
                  near_count, near->indexed, near_length);
  else if (is_put)
    event = START(form, VectorPut, flags, worker->team, peer, far_count, far->vector, near_count,
                  near->vector);
  else if (is_indexed)
    event = START(form, IndexedGet, flags, worker->team, near_count, near->indexed, near_length,
                  peer, far_count, far->indexed, far_length);
  else
    event = START(form, VectorGet, flags, worker->team, near_count, near->vector, peer, far_count,
                  far->vector);
  finish(worker, form, event, is_put);
  free(near);
  free(far);
}

/* Nested strides. The innermost level has the smallest stride, each level has a gap, some go
 * downwards. Then the levels are shuffled. So no two pieces overlap. */
static void choose_strides(struct worker* worker, size_t element, const size_t* count,
                           size_t levels, const size_t* order, ptrdiff_t* strides, size_t* origin) {
  size_t extent = element;
  *origin = 0;
  for (size_t n = 0; n < levels; ++n) {
    const size_t level = order[n];
    const size_t stride = extent + (below(worker, 2) ? below(worker, 1 + extent / 4) : 0);
    strides[level] = (ptrdiff_t)stride;
    if (count[level] > 1) extent = stride * (count[level] - 1) + extent;
    if (below(worker, 4) == 0) {
      strides[level] = -strides[level];
      if (count[level] > 1) *origin += stride * (count[level] - 1);
    }
  }
  CHECK(extent <= REGION_BYTES);
  *origin += below(worker, REGION_BYTES - extent + 1);
}
static void random_order(struct worker* worker, size_t levels, size_t* order) {
  for (size_t i = 0; i < levels; ++i) order[i] = i;
  if (below(worker, 2))
    for (size_t i = 0; i + 1 < levels; ++i) {
      const size_t other = i + below(worker, levels - i);
      const size_t level = order[i];
      order[i] = order[other];
      order[other] = level;
    }
}

static void strided_round(struct worker* worker, gex_Rank_t peer, int is_put, enum form form,
                          gex_Flags_t flags) {
  const size_t levels = below(worker, kMostLevels + 1);
  size_t element = below(worker, 12) == 0 ? 0 : 1 + below(worker, below(worker, 3) ? 16 : 1400);
  size_t count[kMostLevels + 1], index[kMostLevels + 1], order[kMostLevels + 1];
  ptrdiff_t near_strides[kMostLevels + 1], far_strides[kMostLevels + 1];
  size_t near_origin = 0, far_origin = 0, pieces = 1, room = REGION_BYTES / 4;
  gex_Event_t event;
  if (element != 0) room /= element;
  for (size_t i = 0; i < levels; ++i) {
    const size_t most = MIN(room, 40);
    count[i] = below(worker, 12) == 0 ? 0 : 1 + below(worker, most != 0 ? most : 1);
    /* The gaps enlarge each level by up to a quarter. */
    if (count[i] > 1) room /= count[i] + (count[i] + 2) / 3;
    pieces *= count[i];
    index[i] = 0;
  }
  random_order(worker, levels, order);
  choose_strides(worker, element, count, levels, order, near_strides, &near_origin);
  if (below(worker, 2)) random_order(worker, levels, order);
  choose_strides(worker, element, count, levels, order, far_strides, &far_origin);
  /* The source of several pieces may be the same. */
  if (levels != 0 && below(worker, 8) == 0) {
    ptrdiff_t* const strides = is_put ? near_strides : far_strides;
    if (strides[0] >= 0) strides[0] = 0;
  }
  for (size_t n = 0; n < pieces && element != 0; ++n) {
    ptrdiff_t near = (ptrdiff_t)near_origin, far = (ptrdiff_t)far_origin;
    for (size_t i = 0; i < levels; ++i) {
      near += near_strides[i] * (ptrdiff_t)index[i];
      far += far_strides[i] * (ptrdiff_t)index[i];
    }
    if (is_put)
      move_model(worker->model[peer], (size_t)far, worker->before, (size_t)near, element);
    else
      move_model(worker->before, (size_t)near, worker->model[peer], (size_t)far, element);
    for (size_t i = 0; i < levels && ++index[i] == count[i]; ++i) index[i] = 0;
  }
  if (is_put)
    event = START(form, StridedPut, flags, worker->team, peer, region(worker, peer) + far_origin,
                  far_strides, worker->local + near_origin, near_strides, element, count, levels);
  else
    event = START(form, StridedGet, flags, worker->team, worker->local + near_origin, near_strides,
                  peer, region(worker, peer) + far_origin, far_strides, element, count, levels);
  /* The library has read these. */
  memset(near_strides, 0x5A, sizeof near_strides);
  memset(far_strides, 0x5A, sizeof far_strides);
  memset(count, 0x5A, sizeof count);
  finish(worker, form, event, is_put);
}

/* A put with a peer completion. */
static void told_round(struct worker* worker, gex_Rank_t peer) {
  struct notice notice;
  uint64_t values[8];
  const size_t count = 1 + below(worker, 4);
  const ptrdiff_t near_stride = 8, far_stride = 16;
  char* const place =
      region(worker, peer) + REGION_BYTES + worker->completions[peer]++ * TOLD_BYTES;
  CHECK(worker->completions[peer] <= TOLD_PLACES);
  for (size_t i = 0; i < count; ++i) values[i] = next_random(worker);
  /* A call without pieces reads neither team nor rank. It consumes the peer completion, so the call
   * after it sends none. */
  const size_t none = 0;
  gex_VIS_SetPeerCompletionHandler(kDone, NULL, 0, 0);
  gex_VIS_StridedPutBlocking(GEX_TM_INVALID, GEX_RANK_INVALID, NULL, &far_stride, NULL,
                             &near_stride, 8, &none, 1, 0);
  gex_VIS_SetPeerCompletionHandler(kDone, NULL, 0, 0);
  gex_VIS_StridedPutBlocking(GEX_TM_INVALID, GEX_RANK_INVALID, NULL, NULL, NULL, NULL, 0, NULL, 1,
                             0);
  gex_VIS_StridedPutBlocking(team, peer, place, &far_stride, values, &near_stride, 8, &count, 1, 0);
  memset(&notice, 1, sizeof notice);
  notice.where = (uint64_t*)(void*)(place + 16 * (count - 1));
  notice.value = values[count - 1];
  gex_VIS_SetPeerCompletionHandler(kDone, NULL, 0, 0);
  gex_VIS_SetPeerCompletionHandler(0, NULL, 0, 0);
  gex_VIS_SetPeerCompletionHandler(kDone, &notice, sizeof notice, 0);
  if (below(worker, 2))
    gex_Event_Wait(gex_VIS_StridedPutNB(team, peer, place, &far_stride, values, &near_stride, 8,
                                        &count, 1, 0));
  else
    gex_VIS_StridedPutNBI(team, peer, place, &far_stride, values, &near_stride, 8, &count, 1, 0);
  gex_NBI_Wait(GEX_EC_PUT, 0);
}

/* The same with the calls of GASNet-1. */
static void legacy_round(struct worker* worker, gex_Rank_t peer) {
  enum { kCount = 50, kBytes = 24 };
  const size_t near_stride = kBytes, far_stride = 3 * kBytes, count[] = {kBytes, kCount};
  gasnet_memvec_t near[kCount], far[kCount];
  void *near_list[kCount], *far_list[kCount];
  char* const base = region(worker, peer);
  char got[kCount * kBytes];
  for (size_t i = 0; i < kCount; ++i) {
    near[i].addr = near_list[i] = worker->near + i * kBytes;
    far[i].addr = far_list[i] = base + i * 3 * kBytes;
    near[i].len = far[i].len = kBytes;
    memcpy(worker->model[peer] + i * 3 * kBytes, worker->near + i * kBytes, kBytes);
  }
  switch (below(worker, 3)) {
    case 0:
      gasnet_putv_bulk(peer, kCount, far, kCount, near);
      break;
    case 1:
      gasnet_wait_syncnb(
          gasnet_puti_nb_bulk(peer, kCount, far_list, kBytes, kCount, near_list, kBytes));
      break;
    default:
      gasnet_puts_nbi_bulk(peer, base, &far_stride, worker->near, &near_stride, count, 1);
      gasnet_wait_syncnbi_puts();
      break;
  }
  for (size_t i = 0; i < kCount; ++i) near[i].addr = near_list[i] = got + i * kBytes;
  switch (below(worker, 3)) {
    case 0:
      gasnet_getv_nbi_bulk(kCount, near, peer, kCount, far);
      gasnet_wait_syncnbi_gets();
      break;
    case 1:
      gasnet_geti_bulk(kCount, near_list, kBytes, peer, kCount, far_list, kBytes);
      break;
    default:
      gasnet_wait_syncnb(gasnet_gets_nb_bulk(got, &near_stride, peer, base, &far_stride, count, 1));
      break;
  }
  CHECK(memcmp(got, worker->near, sizeof got) == 0);
}

static void run_round(struct worker* worker) {
  const gex_Rank_t peer = (gex_Rank_t)below(worker, size);
  const int is_put = below(worker, 2) != 0;
  enum form form = (enum form)below(worker, kForms);
  gex_Flags_t flags = below(worker, 2) ? GEX_FLAG_IMMEDIATE : 0;
  const size_t first = below(worker, REGION_BYTES);
  if (!is_put && (form == kLeaf || form == kLeafNBI)) form = kNB;
  if (form == kLeaf || form == kLeafNBI) flags |= GEX_FLAG_ENABLE_LEAF_LC;
  worker->team = below(worker, 2) ? team : gex_TM_Pair(endpoint, 0);
  if (devices) worker->team = to_devices(devices == kAtBoth);
  for (size_t i = 0; i < 8192; ++i)
    worker->near[(first + 8 * i) % REGION_BYTES] = (char)next_random(worker);
  memcpy(worker->before, worker->near, REGION_BYTES);
  store(worker);
  if (form == kRegion) gex_NBI_BeginAccessRegion(0);
  if (below(worker, 2))
    lists_round(worker, peer, is_put, form, flags);
  else
    strided_round(worker, peer, is_put, form, flags);
  if (devices == kAtBoth) copy_of_device(worker->near, worker->local, REGION_BYTES);
  if (form != kLeaf && form != kLeafNBI)
    CHECK(memcmp(worker->near, worker->before, REGION_BYTES) == 0);
  if (!devices && below(worker, 8) == 0) told_round(worker, peer);
  if (!devices && below(worker, 8) == 0) legacy_round(worker, peer);
  gex_RMA_GetBlocking(devices ? to_devices(0) : team, worker->fetched, peer, region(worker, peer),
                      REGION_BYTES, 0);
  CHECK(memcmp(worker->fetched, worker->model[peer], REGION_BYTES) == 0);
}

static unsigned int told[kMostThreads][kMostRanks];

static void* work(void* argument) {
  struct worker* const worker = argument;
  worker->random = 88172645463325252u + 7919u * (me * threads + worker->thread);
  worker->near = calloc(REGION_BYTES, 1);
  worker->local = devices == kAtBoth
                      ? device_segment + (size * threads + worker->thread) * WHOLE_BYTES
                      : worker->near;
  worker->before = calloc(REGION_BYTES, 1);
  worker->fetched = calloc(REGION_BYTES, 1);
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    worker->model[peer] = calloc(REGION_BYTES, 1);
    worker->completions[peer] = 0;
  }
  for (unsigned int round = 0; round < rounds; ++round) run_round(worker);
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    told[worker->thread][peer] = worker->completions[peer];
    free(worker->model[peer]);
  }
  free(worker->near);
  free(worker->before);
  free(worker->fetched);
  return NULL;
}

static void misuse(const char* how) {
  const gex_Rank_t peer = size - 1 - me; /* the other of two ranks */
  char bytes[64];
  const ptrdiff_t stride = 1 << 20;
  const size_t count = 4000;
  gex_Memvec_t near, far;
  near.gex_addr = bytes;
  near.gex_len = 64;
  far.gex_addr = segments[peer];
  far.gex_len = 32;
  if (!strcmp(how, "lengths")) gex_VIS_VectorPutBlocking(team, peer, 1, &far, 1, &near, 0);
  gex_VIS_StridedPutBlocking(team, peer, segments[peer], &stride, bytes, &stride, 8, &count, 1, 0);
  gasnet_exit(0);
}

/* A rank that only waits still runs handlers: in waits for events that are complete, and in
 * barriers that it ends itself. */
static void only_waits(void) {
  struct notice notice;
  const uint64_t value = 77;
  const ptrdiff_t stride = 8;
  const size_t count = 1;
  CHECK(size == 1);
  memset(&notice, 0, sizeof notice);
  notice.where = (uint64_t*)(void*)segments[0];
  notice.value = value;
  for (uint32_t way = 0; way < 4; ++way) {
    gex_VIS_SetPeerCompletionHandler(kDone, &notice, sizeof notice, 0);
    gex_VIS_StridedPutNBI(team, 0, segments[0], &stride, (void*)(uintptr_t)&value, &stride, 8,
                          &count, 1, 0);
    for (int i = 0; i < 1000; ++i) {
      gex_Event_t none = GEX_EVENT_INVALID;
      if (way == 0) gex_Event_Wait(none);
      if (way == 1) gex_Event_WaitAll(&none, 1, 0);
      if (way == 2) gex_NBI_Wait(GEX_EC_ALL, 0);
      if (way == 3) gex_Coll_BarrierBlocking(team, 0);
    }
    CHECK(gasnett_atomic32_read(&completions, 0) == way + 1);
  }
  printf("handlers run in waits: all are good\n");
  gasnet_exit(0);
}

/* Pieces that are one range at the peer need no progress by the peer: rank 1 only computes. */
static void one_range(void) {
  enum { kPieces = 64, kBytes = 300, kApart = 1000 };
  static char source[kPieces * kApart], back[kPieces * kApart];
  uint64_t* const over = (uint64_t*)(void*)(segments[1] + kPieces * kBytes + 32);
  if (me == 0) {
    const size_t count = kPieces;
    const ptrdiff_t apart = kApart, dense = kBytes;
    gex_Memvec_t near[kPieces], far;
    far.gex_addr = segments[1];
    far.gex_len = kPieces * kBytes;
    for (int i = 0; i < kPieces * kApart; ++i) source[i] = (char)(i % 251);
    for (int i = 0; i < kPieces; ++i) {
      near[i].gex_addr = source + i * kApart;
      near[i].gex_len = kBytes;
    }
    gex_VIS_VectorPutBlocking(team, 1, 1, &far, kPieces, near, 0);
    gex_VIS_StridedGetBlocking(team, back, &apart, 1, segments[1], &dense, kBytes, &count, 1, 0);
    for (int i = 0; i < kPieces; ++i)
      CHECK(memcmp(back + i * kApart, source + i * kApart, kBytes) == 0);
    gex_RMA_PutBlockingVal(team, 1, over, 1, 8, 0);
  } else {
    const gasnett_tick_t start = gasnett_ticks_now();
    while (*(volatile uint64_t*)over == 0)
      CHECK(gasnett_ticks_to_us(gasnett_ticks_now() - start) < 30000000);
    for (int i = 0; i < kPieces * kBytes; ++i)
      CHECK(segments[1][i] == (char)((i / kBytes * kApart + i % kBytes) % 251));
  }
  barrier();
  if (me == 0) printf("pieces in one range are good\n");
  fflush(stdout);
  barrier();
  gasnet_exit(0);
}

int main(int argc, char** argv) {
  struct worker workers[kMostThreads];
  uint32_t expected = 0;
  start_client("VIS_PROBE", &argc, &argv, handlers, 1, GEX_FLAG_USES_GASNET1);
  CHECK(argc >= 2 && size <= kMostRanks);
  threads = argc > 2 ? (unsigned int)atoi(argv[1]) : 1;
  CHECK(threads >= 1 && threads <= kMostThreads);
  CHECK(gex_Segment_Attach(&segment, team, size * threads * WHOLE_BYTES) == GASNET_OK);
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    CHECK(gex_Segment_QueryBound(team, peer, (void**)&segments[peer], NULL, NULL) == 0);
  if (argc == 2 && !strcmp(argv[1], "range")) one_range();
  if (argc == 2 && !strcmp(argv[1], "waits")) only_waits();
  if (argc == 2) misuse(argv[1]);
  rounds = (unsigned int)atoi(argv[2]);
  if (argc == 4) {
    use_devices(argv[3], (size + 1) * threads * WHOLE_BYTES);
    clear_device(device_segment, size * threads * WHOLE_BYTES);
    for (gex_Rank_t peer = 0; peer < size; ++peer) segments[peer] = segment_of(to_devices(0), peer);
  }
  for (unsigned int i = 0; i < threads; ++i) workers[i].thread = i;
  barrier();
#ifdef GASNET_PAR
  pthread_t started[kMostThreads];
  for (unsigned int i = 0; i < threads; ++i)
    CHECK(pthread_create(&started[i], NULL, work, &workers[i]) == 0);
  for (unsigned int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
#else
  work(&workers[0]);
#endif
  barrier();
  /* Each rank sends how many peer completions it requested. */
  for (gex_Rank_t peer = 0; devices && peer < size; ++peer) segments[peer] = segment_of(team, peer);
  uint32_t* const counts = (uint32_t*)(void*)segments[me];
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    uint32_t sum = 0;
    for (unsigned int i = 0; i < threads; ++i) sum += told[i][peer];
    gex_RMA_PutBlocking(team, peer, (uint32_t*)(void*)segments[peer] + me, &sum, sizeof sum, 0);
  }
  barrier();
  for (gex_Rank_t peer = 0; peer < size; ++peer) expected += counts[peer];
  GASNET_BLOCKUNTIL(gasnett_atomic32_read(&completions, 0) == expected);
  barrier();
  if (me == 0) {
    printf("pieces of %u ranks are good\n", size);
    fflush(stdout);
  }
  barrier();
  gasnet_exit(0);
}
