/* probe.c: a program of a job, for run_gasnet_test.py. The first argument selects what it does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet_coll.h>
#include <gasnet_mk.h>
#include <gasnetex.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static gex_Client_t client;
static gex_EP_t endpoint;
static gex_TM_t team;
static gex_Segment_t segment;
static gex_Rank_t rank, size;
static int code;

static void fail(const char* text, int line) {
  fprintf(stderr, "rank %u, line %d: not true: %s\n", rank, line, text);
  fflush(stderr);
  gasnet_exit(99);
}
#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

/* Computes, without a call of the library. */
static void compute(void) {
  for (;;) gasnett_spinloop_hint();
}

/* Writes behind a block, so that the next malloc() aborts. It holds the lock of the heap then. */
static void abort_in_malloc(void) {
  enum { bytes = 100000 };
  char* volatile block = malloc(bytes);
  memset(block + malloc_usable_size(block), 0xff, sizeof(size_t));
  block = malloc(bytes);
}

static void* memory_of(gex_Rank_t peer) {
  void* local = NULL;
  CHECK(gex_EP_QueryBoundSegmentNB(team, peer, NULL, &local, NULL, 0) == GEX_EVENT_INVALID);
  return local;
}

/* How many mappings of memory that neighbours share this process has. */
static unsigned int shared_mappings(void) {
  char line[512];
  unsigned int found = 0;
  FILE* const maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps)) found += strstr(line, "memfd:gasnet") != NULL;
  fclose(maps);
  return found;
}

/* The value of a line of /proc/self/status, such as "VmLck:". */
static long status_kib(const char* name) {
  char line[256];
  long value = -1;
  FILE* const status = fopen("/proc/self/status", "r");
  CHECK(status != NULL);
  while (fgets(line, sizeof line, status))
    if (!strncmp(line, name, strlen(name))) value = atol(line + strlen(name));
  fclose(status);
  CHECK(value >= 0);
  return value;
}

/* Segments have different sizes. */
static uintptr_t bytes_of(gex_Rank_t owner, uintptr_t least) {
  return least + owner % 3 * GASNET_PAGESIZE;
}

/* Each rank writes into the segment of each neighbour. There are two rounds, so that no rank exits
 * early. Only the owner writes the word kMark of a page. */
static void test_segments(uintptr_t least) {
  enum { kMark = 1000, kWords = GASNET_PAGESIZE / 4 };
  const uintptr_t bytes = bytes_of(rank, least);
  gex_RankInfo_t* neighbours;
  gex_Rank_t count, index, i;
  int round;
  uintptr_t page;
  uint32_t volatile* own;
  CHECK(gex_Segment_Attach(&segment, team, bytes) == GASNET_OK);
  CHECK(gex_Segment_QuerySize(segment) == bytes && gex_EP_QuerySegment(endpoint) == segment);
  CHECK(gex_Segment_QueryClient(segment) == client && gex_Segment_QueryFlags(segment) == 0);
  gex_System_QueryNbrhdInfo(&neighbours, &count, &index);
  CHECK(neighbours[index].gex_jobrank == rank);
  own = (uint32_t volatile*)gex_Segment_QueryAddr(segment);
  CHECK(memory_of(rank) == (void*)(uintptr_t)own);
  /* One mapping has the segments of all neighbours, however many they are. */
  CHECK(shared_mappings() == 2);
  for (page = 0; page < bytes / GASNET_PAGESIZE && page < 64; ++page) {
    CHECK(own[page * kWords + kMark] == 0);
    own[page * kWords + kMark] = rank + 1;
  }
  for (round = 0; round < 2; ++round) {
    for (i = 0; i < count; ++i) {
      const gex_Rank_t peer = neighbours[i].gex_jobrank;
      uint32_t* there = (uint32_t*)memory_of(peer);
      void* owner;
      uintptr_t length;
      CHECK(there != NULL);
      gex_Event_t none = gex_EP_QueryBoundSegmentNB(team, peer, &owner, NULL, &length, 0);
      CHECK(none == GEX_EVENT_INVALID && length == bytes_of(peer, least));
      CHECK(gasneti_mapped_address(team, peer, owner) == (void*)there);
      /* Also writes the last page. */
      __atomic_store_n(there + bytes_of(peer, least) / 4 - 1024 + index, rank + 1,
                       __ATOMIC_RELEASE);
      __atomic_store_n(there + round * 256 + index, rank + 1, __ATOMIC_RELEASE);
    }
    for (i = 0; i < count; ++i)
      while (__atomic_load_n(own + round * 256 + i, __ATOMIC_ACQUIRE) !=
             neighbours[i].gex_jobrank + 1)
        gasnett_sched_yield();
  }
  for (i = 0; i < count; ++i) CHECK(own[bytes / 4 - 1024 + i] == neighbours[i].gex_jobrank + 1);
  for (page = 0; page < bytes / GASNET_PAGESIZE && page < 64; ++page)
    CHECK(own[page * kWords + kMark] == rank + 1);
  for (i = 0; i < size; ++i) {
    gex_Rank_t n = 0;
    while (n < count && neighbours[n].gex_jobrank != i) ++n;
    CHECK((memory_of(i) != NULL) == (n < count));
  }
}

static void test_queries(void) {
  gex_Rank_t sets, set, hosts, host, count, index;
  gex_RankInfo_t* info;
  gex_MK_t kind = GEX_MK_INVALID;
  gex_MK_Create_args_t arguments;
  const gex_TM_t pair = gex_TM_Pair(endpoint, 3);
  gasnet_nodeinfo_t* nodes = (gasnet_nodeinfo_t*)malloc(size * sizeof(gasnet_nodeinfo_t));
  CHECK((uintptr_t)GEX_EVENT_INVALID == 0 && (uintptr_t)GEX_EVENT_NO_OP == 1);
  CHECK((uintptr_t)GEX_EVENT_NOW == 1 && (uintptr_t)GEX_EVENT_DEFER == 2);
  CHECK((uintptr_t)GEX_EVENT_GROUP == 3 && (uintptr_t)GEX_MK_HOST == 1);
  CHECK(!strcmp(gex_Client_QueryName(client), "probe::Name 1") &&
        gex_Client_QueryFlags(client) == 0);
  CHECK(gex_TM_QueryClient(team) == client && gex_TM_QueryEP(team) == endpoint);
  CHECK(gex_EP_QueryClient(endpoint) == client && gex_EP_QueryIndex(endpoint) == 0);
  CHECK(gex_EP_QuerySegment(endpoint) == GEX_SEGMENT_INVALID);
  CHECK(gex_Client_QueryCData(client) == NULL && gex_TM_QueryCData(team) == NULL);
  gex_TM_SetCData(team, &sets);
  CHECK(gex_TM_QueryCData(team) == &sets);
  CHECK(rank == gex_System_QueryJobRank() && size == gex_System_QueryJobSize());
  CHECK(gasnet_getMaxLocalSegmentSize() >= gasnet_getMaxGlobalSegmentSize());
  CHECK(gasnet_getMaxGlobalSegmentSize() % GASNET_PAGESIZE == 0);
  gex_System_QueryMyPosition(&sets, &set, &hosts, &host);
  CHECK(set < sets && host < hosts && hosts <= sets);
  gex_System_QueryHostInfo(&info, &count, &index);
  CHECK(index < count && info[index].gex_jobrank == rank);
  CHECK(gasnet_getNodeInfo(nodes, (int)size) == GASNET_OK);
  CHECK(nodes[rank].supernode == set && nodes[rank].host == host);
  CHECK(pair == gex_TM_Pair(endpoint, 3) && pair != gex_TM_Pair(endpoint, 2) && pair != team);
  CHECK(gex_TM_TranslateRankToEP(pair, 0, 0).gex_ep_index == 3);
  memset(&arguments, 0, sizeof arguments);
  CHECK(gex_MK_Create(&kind, client, &arguments, 0) == GASNET_OK && kind == GEX_MK_HOST);
  gex_System_SetVerboseErrors(0);
  CHECK(gex_System_GetVerboseErrors() == 0);
  arguments.gex_class = GEX_MK_CLASS_CUDA_UVA;
  CHECK(gex_MK_Create(&kind, client, &arguments, 0) == GASNET_ERR_RESOURCE); /* no driver */
  CHECK(gex_Segment_Attach(&segment, team, 1) == GASNET_ERR_BAD_ARG);
  CHECK(gex_Client_Init(&client, &endpoint, &team, "OTHER", NULL, NULL, 0) == GASNET_ERR_RESOURCE);
  CHECK(!strcmp(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY"));
  CHECK(gasnet_ErrorDesc(4711) != NULL);
  CHECK(gasnett_run_diagnostics(1000, 1, NULL, team, NULL, 0, NULL, rank + 1) == 0);
  free(nodes);
}

static void handler0(gex_Token_t token) { (void)token; }

static void test_handlers(void) {
  gex_AM_Entry_t table[] = {
      {200, (gex_AM_Fn_t)handler0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "fixed"},
      {0, (gex_AM_Fn_t)handler0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "highest"},
      {255, (gex_AM_Fn_t)handler0, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP, 16, NULL, "last"},
      {0, (gex_AM_Fn_t)handler0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "next"}};
  CHECK(gex_EP_RegisterHandlers(endpoint, table, 4) == GASNET_OK);
  CHECK(table[1].gex_index == 254 && table[3].gex_index == 253);
  gex_System_SetVerboseErrors(0);
  CHECK(gex_EP_RegisterHandlers(endpoint, table, 1) == GASNET_ERR_BAD_ARG);
}

static void on_signal(int number) {
  (void)number;
  gasnet_exit(code);
}
static void at_exit(void) { gasnet_exit(code); }
static void* in_thread(void* argument) {
  (void)argument;
  gasnet_exit(code);
  return NULL;
}

/* Threads of all ranks end the job at the same time, while one thread of each polls. */
static void* poll_forever(void* argument) {
  GASNET_BLOCKUNTIL(0);
  return argument;
}
static void exit_together(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, poll_forever, NULL);
  gex_Coll_BarrierBlocking(team, 0);
  for (int i = 1; i < 3; ++i) pthread_create(&threads[i], NULL, in_thread, NULL);
  gasnet_exit(code);
}

/* A handler of a request or of a reply ends the job, while the other ranks poll. */
static void exit_or_reply(gex_Token_t token, gex_AM_Arg_t replies) {
  if (replies)
    gex_AM_ReplyShort0(token, 202, 0);
  else
    gasnet_exit(code);
}
static void exit_in_reply(gex_Token_t token) {
  (void)token;
  gasnet_exit(code);
}
static void exit_from_handler(int replies) {
  gex_AM_Entry_t table[] = {
      {201, (gex_AM_Fn_t)exit_or_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "first"},
      {202, (gex_AM_Fn_t)exit_in_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "second"}};
  CHECK(gex_EP_RegisterHandlers(endpoint, table, 2) == GASNET_OK);
  gex_Coll_BarrierBlocking(team, 0);
  if (rank == size - 1) gex_AM_RequestShort1(team, 0, 201, 0, replies);
  GASNET_BLOCKUNTIL(0);
}

/* Waits of four kinds, for gasnetrun_portals4 -limit. */
static void progress(const char* kind, int seconds) {
  const gasnett_tick_t start = gasnett_ticks_now();
  if (!strcmp(kind, "stuck")) {
    if (rank != 0) gex_Coll_BarrierBlocking(team, 0);
    GASNET_BLOCKUNTIL(0);
  }
  if (!strcmp(kind, "computes") && rank == 0)
    while (gasnett_ticks_to_ns(gasnett_ticks_now() - start) < seconds * UINT64_C(1000000000))
      gasnett_spinloop_hint();
  if (!strcmp(kind, "meets")) {
    int goes_on = 1;
    while (goes_on) {
      const int mine =
          gasnett_ticks_to_ns(gasnett_ticks_now() - start) < seconds * UINT64_C(1000000000);
      gex_Event_Wait(gex_Coll_BroadcastNB(team, 0, &goes_on, &mine, sizeof mine, 0));
      gex_Coll_BarrierBlocking(team, 0);
    }
  }
  gex_Coll_BarrierBlocking(team, 0);
  gasnet_exit(0);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  gex_Rank_t last;
  if (!strcmp(what, "early")) gasnet_exit(14);
  if (!strcmp(what, "setenv")) gasnett_setenv("GASNET_FS_SYNC", "1");
  if (!strcmp(what, "refused")) {
    gex_System_SetVerboseErrors(0);
    CHECK(gex_Client_Init(&client, &endpoint, &team, "probe", &argc, &argv, 1u << 20) ==
          GASNET_ERR_BAD_ARG);
    for (const char* const* name = (const char* const[]){"", "pro\nbe", "pro\177be", NULL}; *name;
         ++name)
      CHECK(gex_Client_Init(&client, &endpoint, &team, *name, &argc, &argv, 0) ==
            GASNET_ERR_BAD_ARG);
    return 0;
  }
  if (gex_Client_Init(&client, &endpoint, &team, "probe::Name 1", &argc, &argv, 0) != GASNET_OK)
    return 98;
  rank = gex_TM_QueryRank(team);
  size = gex_TM_QuerySize(team);
  last = size - 1;
  code = argc > 2 ? atoi(argv[2]) : 0;

  if (!strcmp(what, "queries")) {
    test_queries();
    test_handlers();
    return 0;
  }
  if (!strcmp(what, "segments")) {
    const int64_t bytes = gasnett_parse_int(argv[2], 1);
    test_segments((uintptr_t)bytes);
    /* The first rank that exits ends the job. */
    while (rank != 0) gasnett_nsleep(1000000000);
    printf("segments of %u ranks\n", size);
    gasnet_exit(0);
  }
  if (!strcmp(what, "attach-time")) {
    const gasnett_tick_t start = gasnett_ticks_now();
    CHECK(gex_Segment_Attach(&segment, team, (uintptr_t)8 << 30) == GASNET_OK);
    const uint64_t microseconds = gasnett_ticks_to_us(gasnett_ticks_now() - start);
    /* Nothing is pinned or touched. */
    CHECK(status_kib("VmLck:") == 0 && status_kib("VmPin:") == 0);
    CHECK(status_kib("RssShmem:") < 8192);
    while (rank != 0) gasnett_nsleep(1000000000);
    printf("attach_us=%lu\n", (unsigned long)microseconds);
    gasnet_exit(0);
  }
  if (!strcmp(what, "limits")) {
    while (rank != 0) gasnett_nsleep(1000000000);
    printf("limit=%lu memory=%lu\n", (unsigned long)gasnet_getMaxLocalSegmentSize(),
           (unsigned long)gasnett_getPhysMemSz(1));
    gasnet_exit(0);
  }
  if (!strcmp(what, "environment")) {
    const char* value = gasnett_getenv("PROBE_VALUE");
    CHECK(value && !strcmp(value, "of rank 0"));
    gasnett_setenv("PROBE_VALUE", "mine");
    CHECK(!strcmp(gasnett_getenv("PROBE_VALUE"), "mine"));
    gasnett_unsetenv("PROBE_VALUE");
    CHECK(gasnett_getenv("PROBE_VALUE") == NULL);
    return 0;
  }

  if (!strcmp(what, "progress")) progress(argv[2], 4);

  if (!strcmp(what, "leave")) {
    /* The last rank exits, and rank 0 detects that the process is gone. */
    pid_t volatile* own;
    CHECK(gex_Segment_Attach(&segment, team, GASNET_PAGESIZE) == GASNET_OK);
    own = (pid_t volatile*)gex_Segment_QueryAddr(segment);
    if (rank == last) {
      *(pid_t volatile*)memory_of(0) = getpid();
      exit(code);
    }
    while (*own == 0 || kill(*own, 0) == 0) gasnett_nsleep(1000000);
    printf("still here\n");
    gasnet_exit(0);
  }

  if (!strcmp(what, "traced")) {
    /* Two source lines: a put to the process itself, and one to a neighbour. */
    const gex_Rank_t next = (rank + 1) % size;
    CHECK(gex_Segment_Attach(&segment, team, GASNET_PAGESIZE) == GASNET_OK);
    void* there = NULL;
    gex_EP_QueryBoundSegmentNB(team, next, &there, NULL, NULL, 0);
    GASNETT_TRACE_SETSOURCELINE("own.c", 11);
    gex_RMA_PutBlockingVal(team, rank, memory_of(rank), 1, 8, 0);
    GASNETT_TRACE_SETSOURCELINE("near.c", 22);
    gex_RMA_PutBlockingVal(team, next, (char*)there + 8, 1, 8, 0);
    /* A mask that the program has got stays as it is. */
    const char* const mask = GASNETT_TRACE_GETMASK();
    char copy[32];
    snprintf(copy, sizeof copy, "%s", mask);
    GASNETT_TRACE_SETMASK("PB");
    CHECK(!strcmp(mask, copy) && strcmp(GASNETT_TRACE_GETMASK(), copy));
    GASNETT_TRACE_SETMASK(copy);
    gex_Coll_BarrierBlocking(team, 0);
    gasnet_exit(0);
  }

  /* Ends of the job. The other ranks compute. */
  if (!strcmp(what, "all") || !strcmp(what, "setenv")) gasnet_exit(code);
  if (!strcmp(what, "return")) return code;
  if (!strcmp(what, "no-attach") && rank == last) gasnet_exit(code);
  CHECK(gex_Segment_Attach(&segment, team, GASNET_PAGESIZE) == GASNET_OK);
  if (!strcmp(what, "handler")) exit_from_handler(0);
  if (!strcmp(what, "reply")) exit_from_handler(1);
  if (!strcmp(what, "together")) exit_together();
  if (rank != last) compute();
  if (!strcmp(what, "one")) gasnet_exit(code);
  if (!strcmp(what, "compute")) {
    fprintf(stderr, "computing\n");
    compute();
  }
  if (!strcmp(what, "plain")) exit(code);
  if (!strcmp(what, "quick")) _exit(code);
  if (!strcmp(what, "atexit")) {
    atexit(at_exit);
    return 0;
  }
  if (!strcmp(what, "signal")) {
    gasnett_reghandler(SIGUSR1, on_signal);
    raise(SIGUSR1);
  }
  if (!strcmp(what, "thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    compute();
  }
  if (!strcmp(what, "fatal")) gasnett_fatalerror("the reason is %d", 42);
  if (!strcmp(what, "heap")) abort_in_malloc();
  if (!strcmp(what, "fault")) raise(SIGSEGV);
  if (!strcmp(what, "killed")) raise(SIGKILL);
  return 97;
}
