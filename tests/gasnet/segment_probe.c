/* segment_probe.c: segments in memory of the client, bound to endpoints that the program makes.
 * Compiled with GASNET_SEGMENT_EVERYTHING: all memory as the segment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet_mk.h>
#include <gasnetex.h>

#include "checks.h"

enum { kMostRanks = 16, kHere = 200, kLong, kWords = 4096 };

static void* volatile places[kMostRanks];
static volatile unsigned int told, longs;

/* Handler: the sender reports the address of its memory. */
static void here(gex_Token_t token, gex_AM_Arg_t low, gex_AM_Arg_t high) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  places[info.gex_srcrank] = (void*)((uintptr_t)(uint32_t)low | (uintptr_t)(uint32_t)high << 32);
  ++told;
}
static void on_long(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t first) {
  (void)token;
  if (bytes >= 4 && *(uint32_t*)data == (uint32_t)first) ++longs;
}
static gex_AM_Entry_t handlers[] = {
    {kHere, (gex_AM_Fn_t)here, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 2, NULL, "here"},
    {kLong, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_LONG, 1, NULL, "long"}};

static uint64_t pattern(gex_Rank_t from, gex_Rank_t to, size_t word) {
  return (uint64_t)from << 48 | (uint64_t)to << 32 | word;
}

#ifdef GASNET_SEGMENT_EVERYTHING

static uint64_t in_data[kMostRanks][kWords];

static void exchange_places(void* mine) {
  barrier();
  told = 0;
  barrier();
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    gex_AM_RequestShort2(team, peer, kHere, 0, (gex_AM_Arg_t)(uintptr_t)mine,
                         (gex_AM_Arg_t)((uintptr_t)mine >> 32));
  GASNET_BLOCKUNTIL(told == size);
}

/* Every rank writes and reads memory of every other rank, wherever that is. */
static void use_memory(uint64_t (*mine)[kWords]) {
  uint64_t out[kWords], back[kWords];
  longs = 0;
  exchange_places(mine);
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    uint64_t(*const theirs)[kWords] = (uint64_t(*)[kWords])places[peer];
    for (size_t i = 0; i < kWords; ++i) out[i] = pattern(me, peer, i);
    CHECK(gex_RMA_PutBlocking(team, peer, theirs[me], out, sizeof out, 0) == 0);
    memset(back, 0, sizeof back);
    gex_Event_Wait(gex_RMA_GetNB(team, back, peer, theirs[me], sizeof back, 0));
    CHECK(memcmp(out, back, sizeof out) == 0);
    CHECK(gex_RMA_GetBlockingVal(team, peer, &theirs[me][7], 8, 0) == pattern(me, peer, 7));
    for (size_t bytes = 8; bytes <= sizeof out; bytes *= 8)
      gex_AM_RequestLong1(team, peer, kLong, out, bytes, theirs[me], GEX_EVENT_NOW, 0,
                          (gex_AM_Arg_t)(uint32_t)out[0]);
  }
  GASNET_BLOCKUNTIL(longs == 5 * size);
  barrier();
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    for (size_t i = 0; i < kWords; ++i) CHECK(mine[peer][i] == pattern(peer, me, i));
}

static long status(const char* key) {
  char line[256];
  long value = -1;
  FILE* const file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, key, strlen(key))) value = atol(line + strlen(key));
  if (file) fclose(file);
  return value;
}

static void run(void) {
  void *owner = &owner, *local = &local;
  uintptr_t bytes = 0;
  gasnet_seginfo_t table[kMostRanks];
  segment = (gex_Segment_t)&owner;
  uint64_t on_stack[kMostRanks][kWords];
  CHECK(gex_Client_QueryFlags(client) == 0);
  CHECK(gex_EP_QuerySegment(endpoint) == GEX_SEGMENT_INVALID);
  CHECK(gasnet_getMaxLocalSegmentSize() == UINTPTR_MAX);
  CHECK(gasnet_getMaxGlobalSegmentSize() == UINTPTR_MAX);
  CHECK(gasnet_getSegmentInfo(table, (int)size) == GASNET_OK);
  CHECK(table[size - 1].addr == NULL && table[size - 1].size == UINTPTR_MAX);
  CHECK(gex_EP_QueryBoundSegmentNB(team, size - 1, &owner, &local, &bytes, 0) == GEX_EVENT_INVALID);
  CHECK(owner == NULL && bytes == UINTPTR_MAX);
  use_memory(in_data); /* before the optional attach */
  CHECK(gex_Segment_Attach(&segment, team, 1) == GASNET_OK);
  CHECK(segment == GEX_SEGMENT_INVALID);
  use_memory(on_stack);
  uint64_t(*const in_heap)[kWords] = malloc(size * sizeof *in_heap);
  use_memory(in_heap);
  barrier();
  free(in_heap);
  /* RDMA pins its buffers and what it transfers, never the segment. In KiB. */
  CHECK(status("VmLck:") < 65536 && status("VmPin:") < 65536);
}

#else

/* Puts into, and gets from, endpoint `index` of each rank. */
static void use_endpoint(gex_EP_t from, gex_EP_Index_t index, const uint64_t* mine) {
  const gex_TM_t pair = gex_TM_Pair(from, index);
  uint64_t out[kWords / kMostRanks], back[kWords / kMostRanks];
  const size_t words = sizeof out / sizeof *out;
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    void* owner = NULL;
    uintptr_t bytes = 0;
    CHECK(gex_EP_QueryBoundSegmentNB(pair, peer, &owner, NULL, &bytes, 0) == GEX_EVENT_INVALID);
    CHECK(bytes == kWords * sizeof *mine && (peer != me || owner == (const void*)mine));
    uint64_t* const theirs = (uint64_t*)owner + me * words;
    for (size_t i = 0; i < words; ++i) out[i] = pattern(me, peer, i + index);
    gex_Event_Wait(gex_RMA_PutNB(pair, peer, theirs, out, sizeof out, GEX_EVENT_NOW, 0));
    CHECK(gex_RMA_GetNBI(pair, back, peer, theirs, sizeof back, 0) == 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(memcmp(out, back, sizeof out) == 0);
  }
  barrier();
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    for (size_t i = 0; i < words; ++i)
      CHECK(mine[peer * words + i] == pattern(peer, me, i + index));
  barrier();
}

static void run(void) {
  gex_Segment_t of_client, of_library, again;
  gex_EP_t endpoints[3];
  gex_MK_Create_args_t device;
  gex_MK_t kind = GEX_MK_INVALID;
  uintptr_t bytes = 1;
  uint64_t* const memory = calloc(kWords, sizeof *memory);
  endpoints[0] = endpoint;
  for (int i = 1; i < 3; ++i) {
    CHECK(gex_EP_Create(&endpoints[i], client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    CHECK(gex_EP_QueryIndex(endpoints[i]) == i);
    CHECK(gex_EP_QuerySegment(endpoints[i]) == GEX_SEGMENT_INVALID);
  }
  CHECK(gex_Segment_Create(&of_client, client, memory, kWords * sizeof *memory, GEX_MK_HOST, 0) ==
        GASNET_OK);
  CHECK(gex_Segment_QueryAddr(of_client) == memory);
  CHECK(gex_Segment_Create(&of_library, client, NULL, kWords * sizeof *memory, GEX_MK_HOST, 0) ==
        GASNET_OK);
  CHECK(gex_Segment_QueryAddr(of_library) != NULL);
  CHECK(gex_EP_BindSegment(endpoints[1], of_client, 0) == GASNET_OK);
  CHECK(gex_EP_QuerySegment(endpoints[1]) == of_client);

  gex_System_SetVerboseErrors(0);
  CHECK(gex_EP_BindSegment(endpoints[1], of_library, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_BindSegment(endpoints[2], of_library, 1) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_BindSegment(endpoints[2], GEX_SEGMENT_INVALID, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_PublishBoundSegment(team, endpoints, 3, 1) == GASNET_ERR_BAD_ARG);
  memset(&device, 0, sizeof device);
  for (int class = GEX_MK_CLASS_CUDA_UVA; class <= GEX_MK_CLASS_ZE; ++class) {
    device.gex_class = (gex_MK_Class_t) class;
    CHECK(gex_MK_Create(&kind, client, &device, 0) == GASNET_ERR_RESOURCE); /* no driver */
  }
  device.gex_class = GEX_MK_CLASS_HOST;
  CHECK(gex_MK_Create(&kind, client, &device, 0) == GASNET_OK);
  gex_MK_Destroy(kind, 0);
  gex_System_SetVerboseErrors(1);

  /* A segment that is not published is visible in its own process only. */
  barrier();
  CHECK(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(endpoint, 1), (me + 1) % size, NULL, NULL, &bytes,
                                   GEX_FLAG_IMMEDIATE) == GEX_EVENT_INVALID);
  CHECK((bytes != 0) == (size == 1));
  barrier();
  CHECK(gex_EP_PublishBoundSegment(team, endpoints, 2, 0) == GASNET_OK);
  use_endpoint(endpoints[0], 1, memory);
  use_endpoint(endpoints[1], 1, memory);
  CHECK(gex_Segment_Attach(&segment, team, kWords * sizeof *memory) == GASNET_OK);
  use_endpoint(endpoints[1], 0, gex_Segment_QueryAddr(segment));

  /* Some ranks publish nothing. */
  CHECK(gex_EP_BindSegment(endpoints[2], of_library, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(team, &endpoints[2], me % 2, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(team, &endpoints[2], 1, 0) == GASNET_OK);
  use_endpoint(endpoints[0], 2, gex_Segment_QueryAddr(of_library));
  use_endpoint(endpoints[0], 1, memory);

  /* Another segment for the same endpoint. */
  gex_Segment_Destroy(of_client, 0);
  CHECK(gex_EP_QuerySegment(endpoints[1]) == GEX_SEGMENT_INVALID);
  uint64_t* const other = calloc(kWords, sizeof *other);
  CHECK(gex_Segment_Create(&again, client, other, kWords * sizeof *other, GEX_MK_HOST, 0) ==
        GASNET_OK);
  CHECK(gex_EP_BindSegment(endpoints[1], again, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(team, &endpoints[1], 1, 0) == GASNET_OK);
  use_endpoint(endpoints[2], 1, other);
  gex_Segment_Destroy(again, 0);
  gex_Segment_Destroy(of_library, 0);
  gex_Segment_Destroy(segment, 0);
  CHECK(gex_EP_QuerySegment(endpoint) == GEX_SEGMENT_INVALID);
  barrier();
  free(other);
  free(memory);
}

#endif

int main(int argc, char** argv) {
  start_client("SEGMENT_PROBE", &argc, &argv, handlers, sizeof handlers / sizeof *handlers, 0);
  CHECK(size <= kMostRanks);
  CHECK(gex_EP_PublishBoundSegment(team, NULL, 0, 0) == GASNET_OK); /* a barrier here */
  run();
  if (me == 0) printf("segments of %u ranks are good\n", size);
  barrier();
  gasnet_exit(0);
}
