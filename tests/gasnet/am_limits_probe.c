/* am_limits_probe.c: the guarantees of the queries of payloads, messages by teams and pairs, and
 * that each argument of a call is evaluated once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>

#include "checks.h"

enum { kShort = 200, kMedium, kLong, kDone };

typedef size_t (*Query)(gex_TM_t, gex_Rank_t, const gex_Event_t*, gex_Flags_t, unsigned int);

static const Query queries[] = {gex_AM_MaxRequestMedium, gex_AM_MaxReplyMedium,
                                gex_AM_MaxRequestLong, gex_AM_MaxReplyLong};
static const gex_Flags_t all_flags[] = {0, GEX_FLAG_IMMEDIATE, GEX_FLAG_AM_PREPARE_LEAST_CLIENT,
                                        GEX_FLAG_AM_PREPARE_LEAST_ALLOC,
                                        GEX_FLAG_AM_PREPARE_LEAST_ALLOC | GEX_FLAG_IMMEDIATE};
enum { kQueries = 4, kAllFlags = sizeof all_flags / sizeof *all_flags };

static size_t lub(int query) {
  const size_t found[] = {gex_AM_LUBRequestMedium(), gex_AM_LUBReplyMedium(),
                          gex_AM_LUBRequestLong(), gex_AM_LUBReplyLong()};
  return found[query];
}

/* -------------------------------------------------------------------------------------- limits */

/* The limits of this rank for messages to another, in a fixed order. */
static unsigned int limits_of(gex_TM_t tm, gex_Rank_t other, uint64_t* limits) {
  unsigned int count = 0;
  gex_Event_t event;
  const gex_Event_t* const local[] = {GEX_EVENT_NOW, GEX_EVENT_GROUP, &event, NULL};
  for (int query = 0; query < kQueries; ++query)
    for (int lc = 0; lc < 4; ++lc)
      for (unsigned int flags = 0; flags < kAllFlags; ++flags)
        for (unsigned int arguments = 0; arguments <= gex_AM_MaxArgs(); ++arguments) {
          const size_t limit = queries[query](tm, other, local[lc], all_flags[flags], arguments);
          CHECK(limit >= 512);
          CHECK(flags >= 2 || limit >= lub(query));
          /* More arguments never raise the limit, and all pointers have the same limit. */
          CHECK(arguments == 0 || limit <= limits[count - 1]);
          CHECK(lc != 3 || limit == limits[count - kAllFlags * (gex_AM_MaxArgs() + 1)]);
          limits[count++] = limit;
        }
  return count;
}

static void test_limits(void) {
  enum { kMost = kQueries * 4 * kAllFlags * 17 };
  static uint64_t here[kMost], other[kMost], of_all[kMost];
  const unsigned int count = limits_of(team, GEX_RANK_INVALID, of_all);
  CHECK(count == kMost);
  for (int query = 0; query < kQueries; ++query) CHECK(lub(query) >= 512);
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    limits_of(team, peer, here);
    for (unsigned int i = 0; i < count; ++i) CHECK(of_all[i] <= here[i]);
    /* The limits do not depend on how the endpoints are named. */
    limits_of(gex_TM_Pair(endpoint, 0), peer, other);
    CHECK(memcmp(here, other, sizeof here) == 0);
    /* The limits are the same at the other side. */
    uint64_t* const place = (uint64_t*)segment_of(team, peer) + me * kMost;
    gex_RMA_PutBlocking(team, peer, place, here, sizeof here, 0);
  }
  barrier();
  for (gex_Rank_t peer = 0; peer < size; ++peer) {
    limits_of(team, peer, here);
    CHECK(memcmp((uint64_t*)segment_of(team, me) + peer * kMost, here, sizeof here) == 0);
  }
  barrier();
  /* A payload of the largest size that may be requested can be prepared. */
  char* const buffer = calloc(gex_AM_LUBRequestLong(), 1);
  for (int of_client = 0; of_client < 2; ++of_client) {
    const gex_Flags_t flag =
        of_client ? GEX_FLAG_AM_PREPARE_LEAST_CLIENT : GEX_FLAG_AM_PREPARE_LEAST_ALLOC;
    gex_Event_t event = GEX_EVENT_INVALID;
    gex_Event_t* const lc_opt = of_client ? &event : NULL;
    const size_t medium = gex_AM_MaxRequestMedium(team, 0, lc_opt, flag, 3);
    const size_t along = gex_AM_MaxRequestLong(team, 0, lc_opt, flag, 3);
    CHECK(!of_client || along <= gex_AM_LUBRequestLong());
    void* const source = of_client ? buffer : NULL;
    gex_AM_SrcDesc_t sd =
        gex_AM_PrepareRequestMedium(team, 0, source, medium, SIZE_MAX, lc_opt, 0, 3);
    CHECK(gex_AM_SrcDescSize(sd) >= medium);
    memset(gex_AM_SrcDescAddr(sd), 1, medium);
    gex_AM_CancelRequestMedium(sd, 0);
    sd = gex_AM_PrepareRequestLong(team, 0, source, along, SIZE_MAX, NULL, lc_opt, 0, 3);
    CHECK(gex_AM_SrcDescSize(sd) >= along);
    memset(gex_AM_SrcDescAddr(sd), 1, along);
    gex_AM_CancelRequestLong(sd, 0);
  }
  free(buffer);
}

/* ------------------------------------------------------------------------------ teams and pairs */

static volatile unsigned int done;

static void check_token(gex_Token_t token, int is_long) {
  gex_Token_Info_t info;
  /* First a part of the fields, then all. */
  CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK | GEX_TI_EP) & GEX_TI_SRCRANK);
  CHECK(info.gex_ep == endpoint);
  CHECK((gex_Token_Info(token, &info, GEX_TI_ALL) & GEX_TI_ALL) == GEX_TI_ALL);
  CHECK(info.gex_is_req == 1 && info.gex_is_long == is_long);
  gex_Rank_t source = GEX_RANK_INVALID;
  CHECK(gasnet_AMGetMsgSource(token, &source) == GASNET_OK && source == info.gex_srcrank);
  for (unsigned int flags = 0; flags < kAllFlags; ++flags) {
    CHECK(gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, all_flags[flags], 2) ==
          gex_AM_MaxReplyMedium(team, source, GEX_EVENT_NOW, all_flags[flags], 2));
    CHECK(gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, all_flags[flags], 2) ==
          gex_AM_MaxReplyLong(team, source, GEX_EVENT_NOW, all_flags[flags], 2));
  }
}
static void on_short(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b) {
  CHECK(a == 11 && b == 12);
  check_token(token, 0);
  gex_AM_ReplyShort(token, kDone, 0);
}
static void on_medium(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t a) {
  CHECK(a == 13 && bytes == 4 && memcmp(data, "team", 4) == 0);
  check_token(token, 0);
  gex_AM_ReplyShort(token, kDone, 0);
}
static void on_long(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t a) {
  /* An empty payload has an address, too. */
  CHECK(a == 14 && (bytes == 0 || memcmp(data, "team", 4) == 0));
  CHECK(data == gex_Segment_QueryAddr(segment));
  check_token(token, 1);
  gex_AM_ReplyShort(token, kDone, 0);
}
static void on_done(gex_Token_t token) {
  (void)token;
  ++done;
}
static gex_AM_Entry_t handlers[] = {
    {kShort, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 2, NULL, "short"},
    {kMedium, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 1, NULL, "medium"},
    {kLong, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_LONG, 1, NULL, "long"},
    {kDone, (gex_AM_Fn_t)on_done, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "done"}};

/* Every kind of message to a rank of a team or pair. The values are counters. */
static void test_messages(gex_TM_t tm, gex_Rank_t rank, gex_Rank_t jobrank) {
  void* const place = segment_of(team, jobrank);
  int calls = 0, value = 11;
  const char* text = "team";
  done = 0;
  CHECK(gex_AM_RequestShort((++calls, tm), rank, kShort, 0, value++, 12) == 0);
  CHECK(value++ == 12);
  GASNET_BLOCKUNTIL(done == 1);
  CHECK(gex_AM_RequestMedium(tm, (++calls, rank), kMedium, text, 4, GEX_EVENT_NOW, 0, value++) ==
        0);
  GASNET_BLOCKUNTIL(done == 2);
  CHECK(gex_AM_RequestLong(tm, rank, (++calls, kLong), text, 4, place, GEX_EVENT_NOW, 0, value) ==
        0);
  GASNET_BLOCKUNTIL(done == 3);
  CHECK(gex_AM_RequestLong(tm, rank, kLong, NULL, (++calls, 0), place, GEX_EVENT_NOW, 0, value++) ==
        0);
  GASNET_BLOCKUNTIL(done == 4);
  gex_AM_SrcDesc_t sd =
      gex_AM_PrepareRequestMedium(tm, rank, text, 4, (++calls, 4), GEX_EVENT_NOW, 0, 1);
  gex_AM_CommitRequestMedium((++calls, sd), kMedium, 4, value++ - 2);
  GASNET_BLOCKUNTIL(done == 5);
  CHECK(calls == 6 && value == 16);
}

/* The tools and calls that are macros. */
static void test_evaluation(void) {
  gex_HSL_t lock = GEX_HSL_INITIALIZER, *locks[] = {&lock, &lock, &lock, &lock};
  gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER, *mutexes[] = {&mutex, &mutex, &mutex, &mutex};
  gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER, *rwlocks[] = {&rwlock, &rwlock, &rwlock};
  gasnett_atomic_t number = gasnett_atomic_init(0), *numbers[] = {&number, &number, &number};
  int i = 0;
  gex_HSL_Lock(locks[i++]);
  gex_HSL_Unlock(locks[i++]);
  CHECK(gex_HSL_Trylock(locks[i++]) == GASNET_OK);
  gasnet_hsl_unlock(locks[i++]);
  CHECK(i == 4);
  i = 0;
  gasnett_mutex_lock(mutexes[i++]);
  gasnett_mutex_assertlocked(mutexes[i++]);
  gasnett_mutex_unlock(mutexes[i++]);
  gasnett_mutex_assertunlocked(mutexes[i++]);
  CHECK(i == 4);
  i = 0;
  gasnett_rwlock_rdlock(rwlocks[i++]);
  gasnett_rwlock_assertrdlocked(rwlocks[i++]);
  gasnett_rwlock_unlock(rwlocks[i++]);
  CHECK(i == 3);
  i = 0;
  gasnett_atomic_increment(numbers[i++], 0);
  CHECK(gasnett_atomic_add(numbers[i++], 2, 0) == 3);
  CHECK(gasnett_atomic_compare_and_swap(numbers[i++], 3, 4, 0));
  CHECK(i == 3);
  i = 0;
  GASNETT_UNUSED_ARGS3(i++, i++, i++);
  CHECK(i == 3);
  if_pf(i++ != 3) CHECK(0);
  if_pt(i++ == 4) CHECK(i == 5);
  CHECK(GASNETT_PREDICT_TRUE(i++) == 1 && GASNETT_PREDICT_FALSE(i++) == 1 && i == 7);
  CHECK(GEX_OP_TO_FETCHING((i++, GEX_OP_ADD)) == GEX_OP_FADD && i == 8);
  CHECK(GEX_OP_TO_NONFETCHING((i++, GEX_OP_FADD)) == GEX_OP_ADD && i == 9);
  CHECK(gasnett_atomic_signed((i++, (gasnett_atomic_val_t)-1)) == -1 && i == 10);
  GASNETT_TRACE_SETSOURCELINE("file", (unsigned)i++);
  CHECK(i == 11);
}

int main(int argc, char** argv) {
  gex_TM_t backwards;
  start_client("AM_LIMITS_PROBE", &argc, &argv, handlers, sizeof handlers / sizeof *handlers,
               GEX_FLAG_USES_GASNET1);
  CHECK(gex_Segment_Attach(&segment, team, (uintptr_t)1 << 20) == GASNET_OK);
  test_evaluation();
  test_limits();
  gex_TM_Split(&backwards, team, 0, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  for (gex_Rank_t rank = 0; rank < size; ++rank) {
    /* One rank at a time: all Longs have the same destination. */
    if (rank == me)
      for (gex_Rank_t peer = 0; peer < size; ++peer) {
        test_messages(team, peer, peer);
        test_messages(backwards, size - 1 - peer, peer);
        test_messages(gex_TM_Pair(endpoint, 0), peer, peer);
      }
    barrier();
  }
  gex_TM_Destroy(backwards, NULL, 0);
  if (me == 0) printf("limits of %u ranks are good\n", size);
  fflush(stdout);
  barrier();
  gasnet_exit(0);
}
