/* misuse_probe.c: calls where they are not allowed, which debug builds detect. In each case rank 0
 * sends to rank 1, and one of them makes the call.
 *
 * Usage: misuse_probe [<case>]. Exits with 77 in other builds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
/* must follow gasnetex.h */
#include <gasnet_tools.h>

#include "checks.h"

enum { kRequest = 200, kReply };

static const char* what;
static void* place[2]; /* in the segment of each rank */
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
static int is(const char* name) { return strcmp(what, name) == 0; }

static void misuse_locks(void) {
  /* These calls are allowed. */
  gasnett_rwlock_rdlock(&rwlock);
  gasnett_rwlock_assertlocked(&rwlock);
  gasnett_rwlock_assertrdlocked(&rwlock);
  gasnett_rwlock_unlock(&rwlock);
  gasnett_rwlock_assertunlocked(&rwlock);
  CHECK(gasnett_rwlock_trywrlock(&rwlock) == 0);
  gasnett_rwlock_assertwrlocked(&rwlock);
  if (is("rwlock-written")) gasnett_rwlock_assertunlocked(&rwlock);
  if (is("rwlock-both")) gasnett_rwlock_rdlock(&rwlock);
  gasnett_rwlock_unlock(&rwlock);
  if (is("rwlock-free")) gasnett_rwlock_unlock(&rwlock);
  if (is("rwlock-not-read")) gasnett_rwlock_assertrdlocked(&rwlock);
  if (is("mutex-free")) gasnett_mutex_unlock(&mutex);
  gasnett_mutex_lock(&mutex);
  if (is("mutex-twice")) gasnett_mutex_lock(&mutex);
  gasnett_mutex_unlock(&mutex);
  gex_HSL_Lock(&lock);
  CHECK(gex_HSL_Trylock(&lock) == GASNET_ERR_NOT_READY);
  if (is("lock-twice")) gex_HSL_Lock(&lock);
  gex_HSL_Unlock(&lock);
  if (is("lock-free")) gex_HSL_Unlock(&lock);
}

static void request(gex_Token_t token) {
  uint64_t word = 0;
  if (is("request-in-request")) gex_AM_RequestShort0(team, 0, kRequest, 0);
  if (is("prepare-in-request")) gex_AM_PrepareRequestMedium(team, 0, NULL, 1, 1, NULL, 0, 0);
  if (is("poll-in-request")) gasnet_AMPoll();
  if (is("put-in-request")) gex_RMA_PutBlocking(team, 0, place[0], &word, 8, 0);
  if (is("get-in-request")) gex_RMA_GetNBI(team, &word, 0, place[0], 8, 0);
  if (is("test-in-request")) gex_Event_Test(GEX_EVENT_INVALID);
  if (is("test-all-in-request")) gex_NBI_Test(GEX_EC_ALL, 0);
  if (is("region-in-request")) gex_NBI_BeginAccessRegion(0);
  if (is("barrier-in-request")) gex_Coll_BarrierNB(team, 0);
  if (is("register-in-request")) gex_EP_RegisterHandlers(endpoint, NULL, 0);
  if (is("rank-in-request")) gex_TM_TranslateJobrankToRank(team, 0);
  if (is("bound-in-request")) gex_EP_QueryBoundSegmentNB(team, 0, NULL, NULL, NULL, 0);
  /* These calls are allowed. */
  gex_EP_QueryBoundSegmentNB(team, 0, NULL, NULL, NULL, GEX_FLAG_IMMEDIATE);
  gex_AM_MaxReplyMedium(team, 0, GEX_EVENT_NOW, 0, 0);
  if (is("locked-reply")) gex_HSL_Lock(&lock);
  if (is("prepared-reply")) gex_AM_PrepareReplyMedium(token, NULL, 1, 1, NULL, 0, 0);
  if (is("left-prepared")) {
    gex_AM_PrepareReplyMedium(token, NULL, 1, 1, NULL, 0, 0);
    return;
  }
  gex_AM_ReplyShort0(token, kReply, 0);
  if (is("second-reply")) gex_AM_ReplyShort0(token, kReply, 0);
  if (is("kept-lock")) gex_HSL_Lock(&lock);
}
static void reply(gex_Token_t token) {
  gex_Event_t none = GEX_EVENT_INVALID;
  if (is("reply-in-reply")) gex_AM_ReplyShort0(token, kReply, 0);
  if (is("request-in-reply")) gex_AM_RequestShort0(team, 0, kRequest, 0);
  if (is("wait-in-reply")) gex_Event_WaitAll(&none, 0, 0);
  if (is("block-in-reply")) GASNET_BLOCKUNTIL(0);
}
static gex_AM_Entry_t handlers[] = {
    {kRequest, (gex_AM_Fn_t)request, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "request"},
    {kReply, (gex_AM_Fn_t)reply, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "reply"}};

int main(int argc, char** argv) {
  const gex_Flags_t never_self = GEX_FLAG_PEER_NEVER_SELF, never_near = GEX_FLAG_PEER_NEVER_NBRHD;
  what = argc > 1 ? argv[1] : "";
#ifndef GASNET_DEBUG
  return 77;
#endif
  start_client("MISUSE_PROBE", &argc, &argv, handlers, sizeof handlers / sizeof *handlers, 0);
  CHECK(gex_Segment_Attach(&segment, team, GASNET_PAGESIZE) == GASNET_OK);
  for (gex_Rank_t peer = 0; peer < size; ++peer) place[peer] = segment_of(team, peer);
  barrier();
  misuse_locks();
  if (is("never-self")) gex_RMA_PutBlockingVal(team, me, place[me], 1, 8, never_self);
  if (is("never-near")) gex_RMA_PutBlockingVal(team, 0, place[0], 1, 8, never_near);
  if (me == 0 && size > 1) {
    if (is("locked-request") || is("locked-poll") || is("locked-put")) gex_HSL_Lock(&lock);
    if (is("locked-poll")) gasnet_AMPoll();
    if (is("locked-put")) gex_RMA_PutBlockingVal(team, 1, place[1], 1, 8, 0);
    if (is("prepared-request") || is("prepared-poll"))
      gex_AM_PrepareRequestMedium(team, 1, NULL, 1, 1, NULL, 0, 0);
    if (is("prepared-poll")) gasnet_AMPoll();
    gex_AM_RequestShort0(team, 1, kRequest, 0);
  }
  if (is("correct") || is("")) {
    barrier();
    gasnet_exit(0);
  }
  GASNET_BLOCKUNTIL(0);
}
