/* checks.h: the start of the programs of jobs: their rank, CHECK, a barrier.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_TESTS_GASNET_CHECKS_H
#define LINTEL_TESTS_GASNET_CHECKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gex_Client_t client;
static gex_EP_t endpoint;
static gex_TM_t team;
static gex_Segment_t segment;
static gex_Rank_t me, size;

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "rank %u, line %d: not so: %s\n", me, __LINE__, #condition); \
      abort();                                                                     \
    }                                                                              \
  } while (0)

/* The first rank to exit ends the others, so each program ends with a barrier. */
static inline void barrier(void) { gex_Coll_BarrierBlocking(team, 0); }

/* Starts a client with these handlers. */
static inline void start_client(const char* name, int* argc, char*** argv, gex_AM_Entry_t* handlers,
                                size_t count, gex_Flags_t flags) {
  CHECK(gex_Client_Init(&client, &endpoint, &team, name, argc, argv, flags) == GASNET_OK);
  me = gex_TM_QueryRank(team);
  size = gex_TM_QuerySize(team);
  CHECK(gex_EP_RegisterHandlers(endpoint, handlers, count) == GASNET_OK);
}

/* The address of the segment of a rank in its owner. */
static inline void* segment_of(gex_TM_t tm, gex_Rank_t rank) {
  void* owner = NULL;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, rank, &owner, NULL, NULL, 0));
  CHECK(owner != NULL);
  return owner;
}

#endif /* LINTEL_TESTS_GASNET_CHECKS_H */
