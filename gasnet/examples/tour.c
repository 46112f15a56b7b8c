/* tour.c: a tour of GASNet-EX in one program. Each part checks its results.
 *
 * The ranks form a ring, and share a table of counters on rank 0. The parts: active messages, puts
 * and gets, strided puts, remote atomics, a team of the even and one of the odd ranks, a barrier, a
 * broadcast, reductions.
 *
 *   cc $(pkg-config --cflags gasnet-portals4-seq) tour.c -o tour \
 *     $(pkg-config --libs gasnet-portals4-seq)
 *   gasnetrun_portals4 -n 4 ./tour
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>
#include <gasnetex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "rank %u: line %d: not so: %s\n", rank, __LINE__, #condition); \
      gasnet_exit(1);                                                                \
    }                                                                                \
  } while (0)

/* The contents of the segment of each rank. */
enum { kRows = 64, kColumns = 16 };
struct shared {
  double matrix[kRows][kColumns];
  uint64_t from_left;
  uint64_t tickets;
  double sum;
  char text[64];
};

static gex_Client_t client;
static gex_EP_t endpoint;
static gex_TM_t team;
static gex_Segment_t segment;
static gex_Rank_t rank, size, right;
static struct shared* mine;
static struct shared* shared_of[1024]; /* by rank: the address in that process */

/* ------------------------------------------------------------------------------ active messages */

enum { kGreet = GEX_AM_INDEX_BASE, kAnswer, kNote };
static unsigned int answers, notes;
static char note[32];

static void greet(gex_Token_t token, gex_AM_Arg_t number) {
  gex_AM_ReplyShort1(token, kAnswer, 0, 2 * number);
}
static void answer(gex_Token_t token, gex_AM_Arg_t number) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  if (info.gex_srcrank == right && number == 84) ++answers;
}
static void take_note(gex_Token_t token, void* text, size_t bytes) {
  (void)token;
  memcpy(note, text, bytes < sizeof note ? bytes : sizeof note);
  ++notes;
}
static gex_AM_Entry_t handlers[] = {
    {kGreet, (gex_AM_Fn_t)greet, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 1, NULL, "greet"},
    {kAnswer, (gex_AM_Fn_t)answer, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 1, NULL, "answer"},
    {kNote, (gex_AM_Fn_t)take_note, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 0, NULL, "note"}};

static void messages(void) {
  const char text[] = "to the right";
  gex_AM_RequestShort1(team, right, kGreet, 0, 42);
  gex_AM_RequestMedium0(team, right, kNote, text, sizeof text, GEX_EVENT_NOW, 0);
  GASNET_BLOCKUNTIL(answers == 1 && notes == 1);
  EXPECT(strcmp(note, text) == 0);
}

/* ------------------------------------------------------------------------------- puts and gets */

static void meet(gex_TM_t members) { gex_Event_Wait(gex_Coll_BarrierNB(members, 0)); }

static void puts_and_gets(void) {
  char got[64] = "";
  uint64_t value;
  gex_Event_t events[2];
  snprintf(mine->text, sizeof mine->text, "segment of rank %u", rank);
  meet(team);
  events[0] = gex_RMA_PutNBVal(team, right, &shared_of[right]->from_left, rank, 8, 0);
  events[1] = gex_RMA_GetNB(team, got, right, shared_of[right]->text, sizeof got, 0);
  gex_Event_WaitAll(events, 2, 0);
  EXPECT((gex_Rank_t)atoi(got + strlen("segment of rank ")) == right);
  meet(team);
  EXPECT(mine->from_left == (rank + size - 1) % size);
  value = gex_RMA_GetBlockingVal(team, right, &shared_of[right]->from_left, 8, 0);
  EXPECT(value == rank);
}

/* The first column of this matrix becomes the last one of the right neighbour; row 3 comes back. */
static void strides(void) {
  const ptrdiff_t row = sizeof mine->matrix[0];
  const size_t count = kRows;
  double column[kRows][kColumns], line[kColumns];
  gex_Memvec_t to, from;
  memset(column, 0, sizeof column);
  for (int i = 0; i < kRows; ++i) column[i][0] = rank + i / 100.0;
  gex_VIS_StridedPutBlocking(team, right, &shared_of[right]->matrix[0][kColumns - 1], &row, column,
                             &row, sizeof(double), &count, 1, 0);
  meet(team);
  for (int i = 0; i < kRows; ++i)
    EXPECT(mine->matrix[i][kColumns - 1] == (rank + size - 1) % size + i / 100.0);
  to.gex_addr = line;
  from.gex_addr = shared_of[right]->matrix[3];
  to.gex_len = from.gex_len = sizeof line;
  gex_Event_Wait(gex_VIS_VectorGetNB(team, 1, &to, right, 1, &from, 0));
  EXPECT(line[kColumns - 1] == rank + 3 / 100.0);
}

/* ------------------------------------------------------------------------------ remote atomics */

static void atomics(void) {
  gex_AD_t counters, sums;
  uint64_t ticket, all = 0;
  double sum = 0;
  gex_AD_Create(&counters, team, GEX_DT_U64, GEX_OP_FINC | GEX_OP_GET, 0);
  gex_AD_Create(&sums, team, GEX_DT_DBL, GEX_OP_ADD | GEX_OP_GET, 0);
  gex_Event_Wait(
      gex_AD_OpNB_U64(counters, &ticket, 0, &shared_of[0]->tickets, GEX_OP_FINC, 0, 0, 0));
  EXPECT(ticket < size);
  gex_AD_OpNBI_DBL(sums, NULL, 0, &shared_of[0]->sum, GEX_OP_ADD, 0.5, 0, 0);
  gex_NBI_Wait(GEX_EC_RMW, 0);
  meet(team);
  gex_Event_Wait(gex_AD_OpNB_U64(counters, &all, 0, &shared_of[0]->tickets, GEX_OP_GET, 0, 0, 0));
  gex_Event_Wait(gex_AD_OpNB_DBL(sums, &sum, 0, &shared_of[0]->sum, GEX_OP_GET, 0, 0, 0));
  EXPECT(all == size && sum == 0.5 * size);
  meet(team);
  gex_AD_Destroy(counters);
  gex_AD_Destroy(sums);
}

/* ----------------------------------------------------------------------- teams and collectives */

static void longer(const void* left, void* right_and_out, size_t count, const void* cdata) {
  const uint64_t* a = left;
  uint64_t* b = right_and_out;
  (void)cdata;
  for (size_t i = 0; i < count; ++i)
    if (a[i] > b[i]) b[i] = a[i];
}

static void teams_and_collectives(void) {
  gex_TM_t half;
  uint64_t value = rank, sum = 0, most = 0, root_sum = 0;
  double source[100], table[100];
  gex_TM_Split(&half, team, (int)(rank % 2), (int)rank, NULL, 0, 0);
  EXPECT(gex_TM_QueryRank(half) == rank / 2);
  EXPECT(gex_TM_TranslateRankToJobrank(half, 0) == rank % 2);
  gex_Event_Wait(
      gex_Coll_ReduceToAllNB(half, &sum, &value, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
  for (gex_Rank_t i = rank % 2; i < size; i += 2) sum -= i;
  EXPECT(sum == 0);
  gex_Event_Wait(
      gex_Coll_ReduceToAllNB(team, &most, &value, GEX_DT_USER, 8, 1, GEX_OP_USER, longer, NULL, 0));
  EXPECT(most == size - 1);
  gex_Event_Wait(gex_Coll_ReduceToOneNB(team, size - 1, &root_sum, &value, GEX_DT_U64, 8, 1,
                                        GEX_OP_ADD, NULL, NULL, 0));
  if (rank == size - 1) EXPECT(root_sum == (uint64_t)size * (size - 1) / 2);
  for (int i = 0; i < 100; ++i) source[i] = i * i;
  gex_Event_Wait(gex_Coll_BroadcastNB(team, 0, table, source, sizeof table, 0));
  EXPECT(table[99] == 99 * 99);
  meet(half);
  gex_TM_Destroy(half, NULL, 0);
}

int main(int argc, char** argv) {
  gex_Client_Init(&client, &endpoint, &team, "TOUR", &argc, &argv, 0);
  rank = gex_TM_QueryRank(team);
  size = gex_TM_QuerySize(team);
  right = (rank + 1) % size;
  EXPECT(size <= 1024);
  EXPECT(gex_EP_RegisterHandlers(endpoint, handlers, sizeof handlers / sizeof *handlers) ==
         GASNET_OK);
  EXPECT(gex_Segment_Attach(&segment, team, 4 * GASNET_PAGESIZE) == GASNET_OK);
  mine = gex_Segment_QueryAddr(segment);
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, peer, (void**)&shared_of[peer], NULL, NULL, 0));
  messages();
  puts_and_gets();
  strides();
  atomics();
  teams_and_collectives();
  if (rank == 0) {
    printf("tour of %u ranks is good\n", size);
    fflush(stdout);
  }
  meet(team); /* the first rank that exits ends the job */
  gasnet_exit(0);
}
