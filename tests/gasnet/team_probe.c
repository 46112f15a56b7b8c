/* team_probe.c: teams by split and by lists, messages and puts in them, barriers of several teams
 * at once, and the barriers of GASNet-1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>
#include <gasnet_coll.h>

#include "checks.h"

enum { kMostRanks = 32, kHandler = 200 };

static volatile unsigned int handled;

static void handler(gex_Token_t token, gex_AM_Arg_t from) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_ALL);
  CHECK(info.gex_srcrank == (gex_Rank_t)from);
  ++handled;
}
static gex_AM_Entry_t handlers[] = {
    {kHandler, (gex_AM_Fn_t)handler, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 1, NULL, "handler"}};

static uint64_t* word_of(gex_TM_t tm, gex_Rank_t rank, size_t word) {
  return (uint64_t*)segment_of(tm, rank) + word;
}

/* Every member of a team writes and sends to every member. */
static void use(gex_TM_t tm, uint64_t mark) {
  const gex_Rank_t rank = gex_TM_QueryRank(tm), members = gex_TM_QuerySize(tm);
  handled = 0;
  gex_Coll_BarrierBlocking(tm, 0);
  for (gex_Rank_t peer = 0; peer < members; ++peer) {
    CHECK(gex_TM_TranslateJobrankToRank(tm, gex_TM_TranslateRankToJobrank(tm, peer)) == peer);
    CHECK(gex_TM_TranslateRankToEP(tm, peer, 0).gex_ep_index == 0);
    gex_RMA_PutBlockingVal(tm, peer, word_of(tm, peer, rank), mark + peer, 8, 0);
    gex_AM_RequestShort1(tm, peer, kHandler, 0, (gex_AM_Arg_t)me);
  }
  GASNET_BLOCKUNTIL(handled == members);
  gex_Coll_BarrierBlocking(tm, 0);
  for (gex_Rank_t peer = 0; peer < members; ++peer) CHECK(*word_of(tm, rank, peer) == mark + rank);
  gex_Coll_BarrierBlocking(tm, 0);
}

static void split(void) {
  char scratch[64];
  gex_Memvec_t given;
  gex_TM_t odd_even = GEX_TM_INVALID, backwards = GEX_TM_INVALID, of_some = GEX_TM_INVALID;
  CHECK(gex_TM_Split(&odd_even, team, 0, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED) != 0);
  CHECK(gex_TM_Split(NULL, team, 0, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED) == 0);
  CHECK(gex_TM_Split(&odd_even, team, 0, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_MIN) != 0);
  gex_TM_Split(&odd_even, team, (int)(me % 2), 0, scratch, sizeof scratch, 0);
  CHECK(gex_TM_QuerySize(odd_even) == (size + 1 - me % 2) / 2);
  CHECK(gex_TM_QueryRank(odd_even) == me / 2 && gex_TM_QueryEP(odd_even) == endpoint);
  CHECK(gex_TM_QueryClient(odd_even) == client && gex_TM_QueryCData(odd_even) == NULL);
  CHECK(gex_TM_QueryFlags(odd_even) == 0);
  if (size > 1)
    CHECK(gex_TM_TranslateJobrankToRank(odd_even, me ^ 1) == GEX_RANK_INVALID || (me ^ 1) >= size);
  use(odd_even, 1000);

  /* Keys reverse the order. The parent is a team that was made by a split. */
  gex_TM_Split(&backwards, odd_even, 5, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(gex_TM_QueryRank(backwards) ==
        gex_TM_QuerySize(backwards) - 1 - gex_TM_QueryRank(odd_even));
  CHECK(gex_TM_QueryFlags(backwards) == GEX_FLAG_TM_NO_SCRATCH);
  use(backwards, 2000);

  /* Some ranks do not take part. */
  gex_TM_Split(me == 0 ? NULL : &of_some, team, 1, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK((of_some == GEX_TM_INVALID) == (me == 0));
  if (me != 0) {
    CHECK(gex_TM_QuerySize(of_some) == size - 1 && gex_TM_QueryRank(of_some) == me - 1);
    use(of_some, 3000);
    CHECK(gex_TM_Destroy(of_some, &given, 0) == 0);
  }
  CHECK(gex_TM_Destroy(backwards, NULL, 0) == 0);
  gex_Coll_BarrierBlocking(team, 0);
  CHECK(gex_TM_Destroy(odd_even, &given, GEX_FLAG_GLOBALLY_QUIESCED) == 1);
  CHECK(given.gex_addr == scratch && given.gex_len == sizeof scratch);
}

static void create(void) {
  gex_EP_Location_t members[kMostRanks];
  gex_TM_t reversed = GEX_TM_INVALID, halves = GEX_TM_INVALID;
  gex_Addr_t scratch = gex_Segment_QueryAddr(segment);
  gex_Memvec_t given;
  const gex_Rank_t half = size / 2;
  memset(members, 0, sizeof members);
  for (gex_Rank_t i = 0; i < size; ++i) members[i].gex_rank = size - 1 - i;
  gex_TM_Create(&reversed, 1, team, members, size, &scratch, 64,
                GEX_FLAG_RANK_IS_JOBRANK | GEX_FLAG_TM_LOCAL_SCRATCH);
  CHECK(gex_TM_QueryRank(reversed) == size - 1 - me);
  CHECK(gex_TM_QueryFlags(reversed) == (GEX_FLAG_RANK_IS_JOBRANK | GEX_FLAG_TM_LOCAL_SCRATCH));
  use(reversed, 4000);
  /* One call makes two teams, named by ranks of the parent. Rank 0 of the parent is in neither: it
   * names no team, or one of the two. */
  const gex_Rank_t mine = gex_TM_QueryRank(reversed);
  if (mine == 0) {
    for (gex_Rank_t i = 0; i < half; ++i) members[i].gex_rank = i + 1;
    gex_TM_Create(NULL, 0, reversed, members, size % 2 ? half : 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  } else {
    const gex_Rank_t first = mine <= half ? 1 : half + 1, last = mine <= half ? half : size - 1;
    for (gex_Rank_t i = first; i <= last; ++i) members[i - first].gex_rank = i;
    gex_TM_Create(&halves, 1, reversed, members, last - first + 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK(gex_TM_QueryRank(halves) == mine - first);
    use(halves, 5000);
    CHECK(gex_TM_Destroy(halves, &given, 0) == 0);
  }
  CHECK(gex_TM_Destroy(reversed, &given, 0) == 1 && given.gex_addr == scratch);
}

/* Scratch space named by offsets in segments, in each of the three forms. It is returned as an
 * address or as an offset, as the flags request. */
static void offsets(void) {
  enum { kBytes = 64 };
  char* const start = (char*)gex_Segment_QueryAddr(segment);
  gex_EP_Location_t members[kMostRanks];
  gex_Addr_t places[kMostRanks];
  gex_Memvec_t given;
  gex_TM_t tm;
  const gex_Flags_t forms[] = {GEX_FLAG_TM_LOCAL_SCRATCH, GEX_FLAG_TM_SYMMETRIC_SCRATCH,
                               GEX_FLAG_TM_GLOBAL_SCRATCH};
  memset(members, 0, sizeof members);
  for (gex_Rank_t i = 0; i < size; ++i) members[i].gex_rank = i;
  for (unsigned int form = 0; form < 4; ++form) {
    for (gex_Rank_t i = 0; i < size; ++i) places[i] = (gex_Addr_t)(uintptr_t)(128 + 64 * i);
    uintptr_t own = 128;
    if (form == 3) {
      gex_TM_Split(&tm, team, 0, 0, places[0], kBytes, GEX_FLAG_SCRATCH_SEG_OFFSET);
    } else {
      if (forms[form] == GEX_FLAG_TM_GLOBAL_SCRATCH) own += 64 * me;
      gex_TM_Create(&tm, 1, team, members, size, places, kBytes,
                    forms[form] | GEX_FLAG_SCRATCH_SEG_OFFSET);
    }
    gex_Coll_BarrierBlocking(tm, 0);
    const int wants_offset = (form + me) % 2;
    CHECK(gex_TM_Destroy(tm, &given, wants_offset ? GEX_FLAG_SCRATCH_SEG_OFFSET : 0) != 0);
    CHECK(given.gex_len == kBytes);
    CHECK((uintptr_t)given.gex_addr == (wants_offset ? own : (uintptr_t)start + own));
  }
}

/* The sets of ranks of a team agree with those of the job, in any order of the team. */
static void host_sets(void) {
  gex_RankInfo_t *hosts, *neighbours;
  gex_Rank_t on_host, near, index, own_set, sets, host, own_host;
  gex_TM_t backwards;
  gex_TM_Split(&backwards, team, 0, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  gex_System_QueryHostInfo(&hosts, &on_host, &index);
  CHECK(hosts[index].gex_jobrank == me);
  gex_System_QueryNbrhdInfo(&neighbours, &near, &index);
  CHECK(neighbours[index].gex_jobrank == me);
  gex_System_QueryMyPosition(&sets, &own_set, &host, &own_host);
  CHECK(own_set < sets && own_host < host && host <= sets);
  /* The ranks run on one host, in neighbourhoods that the environment sets. */
  CHECK(on_host == size && host == 1);
  const char* const most = gasnett_getenv("GASNET_SUPERNODE_MAXSIZE");
  const gex_Rank_t largest = most && atoi(most) > 0 ? (gex_Rank_t)atoi(most) : size;
  CHECK(sets == (size + largest - 1) / largest && near <= largest && own_set == me / largest);
  for (gex_Rank_t i = 0; i < on_host; ++i) {
    const gex_Rank_t rank = gex_TM_TranslateJobrankToRank(backwards, hosts[i].gex_jobrank);
    CHECK(hosts[i].gex_jobrank == i && rank == size - 1 - i);
  }
  for (gex_Rank_t i = 0; i < near; ++i) {
    const gex_Rank_t rank = gex_TM_TranslateJobrankToRank(backwards, neighbours[i].gex_jobrank);
    CHECK(neighbours[i].gex_jobrank == own_set * largest + i);
    CHECK(gasneti_mapped_address(backwards, rank, segment_of(backwards, rank)) != NULL);
  }
  gex_TM_Destroy(backwards, NULL, 0);
}

/* Barriers of several teams, several of each in flight. */
static void barriers(void) {
  gex_TM_t teams[3];
  gex_Event_t events[9];
  teams[0] = team;
  gex_TM_Split(&teams[1], team, (int)(me % 3), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  gex_TM_Split(&teams[2], team, (int)(me / 2), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 9; ++i) events[i] = gex_Coll_BarrierNB(teams[i % 3], 0);
    if (round % 2) {
      gex_Event_WaitAll(events, 9, 0);
    } else {
      for (int i = 8; i >= 0; --i) gex_Event_Wait(events[i]);
    }
  }
  /* No rank leaves a barrier before the last rank has entered it. */
  for (gex_Rank_t last = 0; last < size; ++last) {
    uint64_t* const flag = word_of(team, last, kMostRanks);
    if (me == last) gex_RMA_PutBlockingVal(team, me, flag, last + 1, 8, 0);
    gex_Coll_BarrierBlocking(team, 0);
    CHECK(gex_RMA_GetBlockingVal(team, last, flag, 8, 0) == last + 1);
    gex_Coll_BarrierBlocking(team, 0);
  }
  gex_TM_Destroy(teams[1], NULL, 0);
  gex_TM_Destroy(teams[2], NULL, 0);
}

static void named_barriers(void) {
  const int named = 0, anonymous = GASNET_BARRIERFLAG_ANONYMOUS;
  const int mismatch = GASNET_BARRIERFLAG_MISMATCH;
  const int last = me == size - 1;
  int id = -1;
  for (int round = 0; round < 50; ++round) {
    CHECK(gasnet_barrier(round, named) == GASNET_OK);
    CHECK(gasnet_barrier_result(&id) == 0 && id == round);
    CHECK(gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED) == GASNET_OK);
    CHECK(gasnet_barrier_result(&id) != 0);
    gasnet_barrier_notify(7, last ? named : anonymous);
    CHECK(gasnet_barrier_wait(7, anonymous) == GASNET_OK);
    CHECK(gasnet_barrier_result(&id) == 0 && id == 7);
    gasnet_barrier_notify(0, last ? mismatch : anonymous);
    CHECK(gasnet_barrier_wait(0, anonymous) == GASNET_ERR_BARRIER_MISMATCH);
    gasnet_barrier_notify(size > 1 && last ? 8 : 9, named);
    CHECK((gasnet_barrier_wait(size > 1 && last ? 8 : 9, named) == GASNET_OK) == (size == 1));
    gasnet_barrier_notify(3, named);
    CHECK(gasnet_barrier_wait(4, named) == GASNET_ERR_BARRIER_MISMATCH);
    /* Not the name that the others have given. With one rank, nobody gives one. */
    gasnet_barrier_notify(0, last ? anonymous : named);
    CHECK((gasnet_barrier_wait(last ? 6 : 0, named) == GASNET_OK) == (size == 1 || !last));
    CHECK((gasnet_barrier_result(&id) == 0) == (size > 1 && !last));
    gasnet_barrier_notify(5, anonymous);
    for (int code = GASNET_ERR_NOT_READY; code != GASNET_OK;) {
      code = gasnet_barrier_try(5, named);
      CHECK(code == GASNET_OK || code == GASNET_ERR_NOT_READY);
    }
  }
}

/* More teams than the memory that neighbours share has room for at once. */
static void in_turn(void) {
  for (int i = 0; i < 40; ++i) {
    gex_TM_t same;
    gex_TM_Split(&same, team, 0, me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_Coll_BarrierBlocking(same, 0);
    gex_TM_Destroy(same, NULL, 0);
  }
}

/* A leader can return from the barrier, end the team and make the next one before its neighbours
 * have seen the end of the barrier. */
static void ended_after_barriers(void) {
  for (int i = 0; i < 60; ++i) {
    gex_TM_t same;
    gex_TM_Split(&same, team, 0, i % 2 ? (int)me : -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    /* Some rounds end at a barrier that the leaders have added. */
    for (int n = 0; n < i % 20; ++n) {
      gex_Rank_t word = me;
      const gex_Rank_t root = (gex_Rank_t)n % size;
      gex_Event_Wait(gex_Coll_BroadcastNB(same, root, &word, &word, sizeof word, 0));
      CHECK(word == gex_TM_TranslateRankToJobrank(same, root));
    }
    gex_Coll_BarrierBlocking(same, 0);
    gex_TM_Destroy(same, NULL, GEX_FLAG_GLOBALLY_QUIESCED);
    if (i % 3 == 0) gex_Coll_BarrierBlocking(team, 0);
  }
}

int main(int argc, char** argv) {
  gex_TM_t before_attach = GEX_TM_INVALID;
  start_client("TEAM_PROBE", &argc, &argv, handlers, 1, GEX_FLAG_USES_GASNET1);
  CHECK(size <= kMostRanks);
  gex_TM_Split(&before_attach, team, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(gex_Segment_Attach(&segment, team, 65536) == GASNET_OK);
  use(before_attach, 500);
  split();
  create();
  offsets();
  host_sets();
  barriers();
  named_barriers();
  in_turn();
  ended_after_barriers();
  gex_TM_Destroy(before_attach, NULL, 0);
  if (me == 0) printf("teams of %u ranks are good\n", size);
  barrier();
  gasnet_exit(0);
}
