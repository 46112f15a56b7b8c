/* am_probe.c: active messages between the ranks of a job. Started by run_am_test.py.
 *
 * Usage: am_probe nid | arity | negotiated | immediate | flood | threads | hostile
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
#include <portals4_runtime.h>
#include <signal.h>
#include <stdatomic.h>
#ifdef GASNET_PAR
#include <pthread.h>
#endif

#include "am_arities.h"
#include "checks.h"

enum {
  kRequest = 0,
  kReply = 1,
  /* The first indexes of handlers, one handler for each number of arguments. */
  kShortRequest = 128,
  kShortReply = 145,
  kMediumRequest = 162,
  kMediumReply = 179,
  kLongRequest = 196,
  kLongReply = 213,
  /* Other handlers. */
  kCounted = 230,
  kExpect,
  kFloodShort,
  kFloodMedium,
  kFloodLong,
  kFloodReplyShort,
  kFloodReplyMedium,
  kFloodReplyLong,
  kPreparedRequest,
  kPreparedReply,
  kPreparedLongRequest,
  kPreparedLongReply
};

#define LARGEST ((size_t)1 << 20)
/* Requests store their Longs into the first half of the segments, replies into the second. */
enum { kSlots = 32, kSlotSize = 16384, kFloodRanks = 16, kFloodThreads = 3 };
#define REPLY_OFFSET ((size_t)kFloodRanks * kSlots * kSlotSize)
#define SEGMENT_BYTES (2 * REPLY_OFFSET)

static char** segments; /* by rank */
static atomic_uint counted, expected, announcements, replies, reply_bytes;

static gex_AM_Arg_t argument(unsigned int count, int direction, unsigned int index) {
  return (gex_AM_Arg_t)(0x9E3779B9u * (index + 1) + 0x85EBCA6Bu * count +
                        0xC2B2AE35u * (unsigned)direction);
}
static unsigned char byte_at(size_t index, unsigned int seed) {
  return (unsigned char)(index * 7 + (index >> 8) + seed);
}
static void fill(void* buffer, size_t bytes, unsigned int seed) {
  for (size_t i = 0; i < bytes; ++i) ((unsigned char*)buffer)[i] = byte_at(i, seed);
}
static void check_bytes(const void* buffer, size_t bytes, unsigned int seed) {
  const unsigned char* const given = buffer;
  for (size_t i = 0; i < bytes; ++i) {
    if (given[i] == byte_at(i, seed)) continue;
    fprintf(stderr, "rank %u: byte %zu of %zu is %u, not %u (seed %u)\n", me, i, bytes, given[i],
            byte_at(i, seed), seed);
    abort();
  }
}
static void check_arguments(unsigned int count, int direction, const gex_AM_Arg_t* given) {
  for (unsigned int i = 0; i < count; ++i) CHECK(given[i] == argument(count, direction, i));
}
static gex_Rank_t source_of(gex_Token_t token, int is_request, int is_long, gex_AM_Index_t index) {
  gex_Token_Info_t info;
  CHECK((gex_Token_Info(token, &info, GEX_TI_ALL) & GEX_TI_ALL) == GEX_TI_ALL);
  CHECK(info.gex_srcrank < size && info.gex_ep == endpoint);
  CHECK(info.gex_is_req == is_request && info.gex_is_long == is_long);
  CHECK(info.gex_entry->gex_index == index);
  return info.gex_srcrank;
}

/* ---------------------------------------------------------------- every number of arguments */

/* Replies take turns in the forms: fixed, variadic, negotiated with either buffer. */
static unsigned int next_form;

#define HANDLERS(M)                                                                               \
  static void short_request##M(gex_Token_t token PARAMETERS##M) {                                 \
    const gex_AM_Arg_t given[] = {GIVEN##M};                                                      \
    check_arguments(M, kRequest, given + 1);                                                      \
    source_of(token, 1, 0, kShortRequest + M);                                                    \
    if (next_form++ % 2)                                                                          \
      gex_AM_ReplyShort##M(token, kShortReply + M, 0 VALUES##M(M, kReply));                       \
    else                                                                                          \
      gex_AM_ReplyShort(token, kShortReply + M, 0 VALUES##M(M, kReply));                          \
  }                                                                                               \
  static void short_reply##M(gex_Token_t token PARAMETERS##M) {                                   \
    const gex_AM_Arg_t given[] = {GIVEN##M};                                                      \
    check_arguments(M, kReply, given + 1);                                                        \
    source_of(token, 0, 0, kShortReply + M);                                                      \
    atomic_fetch_add(&replies, 1);                                                                \
  }                                                                                               \
  static void medium_request##M(gex_Token_t token, void* data, size_t bytes PARAMETERS##M) {      \
    const gex_AM_Arg_t given[] = {GIVEN##M};                                                      \
    check_arguments(M, kRequest, given + 1);                                                      \
    source_of(token, 1, 0, kMediumRequest + M);                                                   \
    CHECK((uintptr_t)data % 16 == 0);                                                             \
    check_bytes(data, bytes, M);                                                                  \
    gex_Event_t event = GEX_EVENT_NO_OP;                                                          \
    gex_AM_SrcDesc_t sd;                                                                          \
    switch (next_form++ % 4) {                                                                    \
      case 0:                                                                                     \
        gex_AM_ReplyMedium##M(token, kMediumReply + M, data, bytes, GEX_EVENT_NOW,                \
                              0 VALUES##M(M, kReply));                                            \
        return;                                                                                   \
      case 1:                                                                                     \
        gex_AM_ReplyMedium(token, kMediumReply + M, data, bytes, &event, 0 VALUES##M(M, kReply)); \
        break;                                                                                    \
      case 2:                                                                                     \
        sd = gex_AM_PrepareReplyMedium(token, data, bytes, bytes, &event, 0, M);                  \
        gex_AM_CommitReplyMedium##M(sd, kMediumReply + M, bytes VALUES##M(M, kReply));            \
        break;                                                                                    \
      default:                                                                                    \
        sd = gex_AM_PrepareReplyMedium(token, NULL, bytes, bytes, NULL, 0, M);                    \
        memcpy(gex_AM_SrcDescAddr(sd), data, bytes);                                              \
        gex_AM_CommitReplyMedium(sd, kMediumReply + M, bytes VALUES##M(M, kReply));               \
        return;                                                                                   \
    }                                                                                             \
    CHECK(event == GEX_EVENT_INVALID);                                                            \
  }                                                                                               \
  static void medium_reply##M(gex_Token_t token, void* data, size_t bytes PARAMETERS##M) {        \
    const gex_AM_Arg_t given[] = {GIVEN##M};                                                      \
    check_arguments(M, kReply, given + 1);                                                        \
    source_of(token, 0, 0, kMediumReply + M);                                                     \
    check_bytes(data, bytes, M);                                                                  \
    atomic_store(&reply_bytes, (unsigned)bytes);                                                  \
    atomic_fetch_add(&replies, 1);                                                                \
  }                                                                                               \
  static void long_request##M(gex_Token_t token, void* data, size_t bytes PARAMETERS##M) {        \
    const gex_AM_Arg_t given[] = {GIVEN##M};                                                      \
    check_arguments(M, kRequest, given + 1);                                                      \
    const gex_Rank_t source = source_of(token, 1, 1, kLongRequest + M);                           \
    CHECK(data == segments[me] + M);                                                              \
    check_bytes(data, bytes, M);                                                                  \
    /* The source may be changed as soon as the call returns. */                                  \
    char* const copy = memcpy(malloc(bytes + 1), data, bytes);                                    \
    gex_Event_t event = GEX_EVENT_NO_OP;                                                          \
    char* const target = segments[source] + REPLY_OFFSET + M;                                     \
    const int in_library = bytes <= gex_AM_LUBReplyMedium();                                      \
    gex_AM_SrcDesc_t sd;                                                                          \
    switch (next_form++ % 4) {                                                                    \
      case 0:                                                                                     \
        gex_AM_ReplyLong##M(token, kLongReply + M, copy, bytes, target, &event,                   \
                            0 VALUES##M(M, kReply));                                              \
        break;                                                                                    \
      case 1:                                                                                     \
        gex_AM_ReplyLong(token, kLongReply + M, copy, bytes, target, GEX_EVENT_NOW,               \
                         0 VALUES##M(M, kReply));                                                 \
        event = GEX_EVENT_INVALID;                                                                \
        break;                                                                                    \
      case 2:                                                                                     \
        sd = gex_AM_PrepareReplyLong(token, copy, bytes, bytes, target, &event, 0, M);            \
        gex_AM_CommitReplyLong##M(sd, kLongReply + M, bytes, target VALUES##M(M, kReply));        \
        break;                                                                                    \
      default:                                                                                    \
        sd = gex_AM_PrepareReplyLong(token, in_library ? NULL : copy, bytes, bytes, NULL,         \
                                     in_library ? NULL : &event, 0, M);                           \
        if (in_library) {                                                                         \
          memcpy(gex_AM_SrcDescAddr(sd), copy, bytes);                                            \
          event = GEX_EVENT_INVALID;                                                              \
        }                                                                                         \
        gex_AM_CommitReplyLong(sd, kLongReply + M, bytes, target VALUES##M(M, kReply));           \
        break;                                                                                    \
    }                                                                                             \
    CHECK(event == GEX_EVENT_INVALID);                                                            \
    memset(copy, 0xFF, bytes);                                                                    \
    free(copy);                                                                                   \
  }                                                                                               \
  static void long_reply##M(gex_Token_t token, void* data, size_t bytes PARAMETERS##M) {          \
    const gex_AM_Arg_t given[] = {GIVEN##M};                                                      \
    check_arguments(M, kReply, given + 1);                                                        \
    source_of(token, 0, 1, kLongReply + M);                                                       \
    CHECK(data == segments[me] + REPLY_OFFSET + M);                                               \
    check_bytes(data, bytes, M);                                                                  \
    atomic_store(&reply_bytes, (unsigned)bytes);                                                  \
    atomic_fetch_add(&replies, 1);                                                                \
  }
FOR_EACH_ARITY(HANDLERS)

static void await_reply(size_t bytes) {
  GASNET_BLOCKUNTIL(atomic_load(&replies) == 1);
  CHECK(atomic_load(&reply_bytes) == bytes);
  atomic_store(&replies, 0);
  atomic_store(&reply_bytes, 0);
}

/* Each call in three forms: with the number in its name, counting its arguments, negotiated. */
#define EXCHANGE(M)                                                                               \
  static void exchange##M(gex_Rank_t peer, char* buffer, const size_t* sizes,                     \
                          unsigned int count) {                                                   \
    gex_Event_t event;                                                                            \
    gex_AM_SrcDesc_t sd;                                                                          \
    CHECK(gex_AM_RequestShort##M(team, peer, kShortRequest + M, 0 VALUES##M(M, kRequest)) == 0);  \
    await_reply(0);                                                                               \
    gex_AM_RequestShort(team, peer, kShortRequest + M, 0 VALUES##M(M, kRequest));                 \
    await_reply(0);                                                                               \
    for (unsigned int i = 0; i < count; ++i) {                                                    \
      const size_t bytes = sizes[i];                                                              \
      char* const target = segments[peer] + M;                                                    \
      if (bytes <= gex_AM_MaxRequestMedium(team, peer, GEX_EVENT_NOW, 0, M)) {                    \
        fill(buffer, bytes, M);                                                                   \
        gex_AM_RequestMedium##M(team, peer, kMediumRequest + M, buffer, bytes, GEX_EVENT_NOW,     \
                                0 VALUES##M(M, kRequest));                                        \
        memset(buffer, 0xEE, bytes);                                                              \
        await_reply(bytes);                                                                       \
        fill(buffer, bytes, M);                                                                   \
        event = GEX_EVENT_NO_OP;                                                                  \
        gex_AM_RequestMedium(team, peer, kMediumRequest + M, buffer, bytes, &event,               \
                             0 VALUES##M(M, kRequest));                                           \
        CHECK(event == GEX_EVENT_INVALID);                                                        \
        await_reply(bytes);                                                                       \
        gex_AM_RequestMedium##M(team, peer, kMediumRequest + M, buffer, bytes, GEX_EVENT_GROUP,   \
                                0 VALUES##M(M, kRequest));                                        \
        await_reply(bytes);                                                                       \
        event = GEX_EVENT_NO_OP;                                                                  \
        sd = gex_AM_PrepareRequestMedium(team, peer, buffer, bytes, bytes, &event, 0, M);         \
        gex_AM_CommitRequestMedium##M(sd, kMediumRequest + M, bytes VALUES##M(M, kRequest));      \
        CHECK(event == GEX_EVENT_INVALID);                                                        \
        await_reply(bytes);                                                                       \
        sd = gex_AM_PrepareRequestMedium(team, peer, NULL, bytes, bytes, NULL, 0, M);             \
        memcpy(gex_AM_SrcDescAddr(sd), buffer, bytes);                                            \
        gex_AM_CommitRequestMedium(sd, kMediumRequest + M, bytes VALUES##M(M, kRequest));         \
        await_reply(bytes);                                                                       \
      }                                                                                           \
      fill(buffer, bytes, M);                                                                     \
      gex_AM_RequestLong##M(team, peer, kLongRequest + M, buffer, bytes, target, GEX_EVENT_NOW,   \
                            0 VALUES##M(M, kRequest));                                            \
      memset(buffer, 0xEE, bytes);                                                                \
      await_reply(bytes);                                                                         \
      fill(buffer, bytes, M);                                                                     \
      event = GEX_EVENT_NO_OP;                                                                    \
      gex_AM_RequestLong(team, peer, kLongRequest + M, buffer, bytes, target, &event,             \
                         0 VALUES##M(M, kRequest));                                               \
      CHECK(event == GEX_EVENT_INVALID);                                                          \
      await_reply(bytes);                                                                         \
      gex_AM_RequestLong##M(team, peer, kLongRequest + M, buffer, bytes, target, GEX_EVENT_GROUP, \
                            0 VALUES##M(M, kRequest));                                            \
      await_reply(bytes);                                                                         \
      event = GEX_EVENT_NO_OP;                                                                    \
      sd = gex_AM_PrepareRequestLong(team, peer, buffer, bytes, bytes, target, &event, 0, M);     \
      gex_AM_CommitRequestLong##M(sd, kLongRequest + M, bytes, target VALUES##M(M, kRequest));    \
      CHECK(event == GEX_EVENT_INVALID);                                                          \
      await_reply(bytes);                                                                         \
      if (bytes > gex_AM_LUBRequestMedium()) continue;                                            \
      sd = gex_AM_PrepareRequestLong(team, peer, NULL, bytes, bytes, NULL, NULL, 0, M);           \
      memcpy(gex_AM_SrcDescAddr(sd), buffer, bytes);                                              \
      gex_AM_CommitRequestLong(sd, kLongRequest + M, bytes, target VALUES##M(M, kRequest));       \
      await_reply(bytes);                                                                         \
    }                                                                                             \
  }
FOR_EACH_ARITY(EXCHANGE)

static void arity(void) {
  char* const buffer = malloc(LARGEST);
  const size_t few[8] = {0, 17, 513, 1, 15, 16, 8192, 8193};
  const size_t largest[] = {gex_AM_MaxRequestLong(team, 0, GEX_EVENT_NOW, 0, 16)};
  CHECK(largest[0] <= LARGEST && largest[0] >= gex_AM_LUBRequestLong());
  CHECK(gex_AM_LUBReplyMedium() >= 512 && gex_AM_MaxArgs() == 16);
  /* One rank at a time: requests of two ranks would overwrite each other in a third. */
  for (gex_Rank_t turn = 0; turn < size; ++turn) {
    if (turn == me)
      for (gex_Rank_t peer = 0; peer < size; ++peer) {
        /* All lengths for those numbers of arguments that change the header. */
#define EXCHANGE_FEW(M) exchange##M(peer, buffer, few, M % 4 == 0 || M == 5 ? 8 : 3);
        FOR_EACH_ARITY(EXCHANGE_FEW)
        exchange0(peer, buffer, largest, 1);
        exchange16(peer, buffer, largest, 1);
      }
    barrier();
  }
  free(buffer);
}

/* ------------------------------------------------------------------------- negotiated payload */

static void reply_prepared(gex_Token_t token, void* data, size_t bytes, int is_long,
                           int is_client) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  check_bytes(data, bytes, 3);
  void* const buffer = is_client ? malloc(bytes + 1) : NULL;
  gex_Event_t event = GEX_EVENT_NO_OP;
  gex_Event_t* const lc_opt = is_client ? &event : NULL;
  char* const target = segments[info.gex_srcrank] + REPLY_OFFSET;
  gex_AM_SrcDesc_t sd = is_long
                            ? gex_AM_PrepareReplyLong(token, buffer, 0, bytes, target, lc_opt, 0, 1)
                            : gex_AM_PrepareReplyMedium(token, buffer, 0, bytes, lc_opt, 0, 1);
  CHECK(sd != GEX_AM_SRCDESC_NO_OP && gex_AM_SrcDescSize(sd) <= bytes);
  CHECK(!is_client || gex_AM_SrcDescAddr(sd) == buffer);
  const size_t sent = gex_AM_SrcDescSize(sd);
  fill(gex_AM_SrcDescAddr(sd), sent, 4);
  if (is_long)
    gex_AM_CommitReplyLong1(sd, kPreparedLongReply, sent, target, (gex_AM_Arg_t)sent);
  else
    gex_AM_CommitReplyMedium1(sd, kPreparedReply, sent, (gex_AM_Arg_t)sent);
  CHECK(!is_client || event == GEX_EVENT_INVALID);
  free(buffer);
}
static void prepared_request(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t is_client) {
  reply_prepared(token, data, bytes, 0, is_client);
}
static void prepared_long_request(gex_Token_t token, void* data, size_t bytes,
                                  gex_AM_Arg_t is_client) {
  CHECK(data == segments[me]);
  reply_prepared(token, data, bytes, 1, is_client);
}
static void prepared_reply(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t sent) {
  (void)token;
  CHECK(bytes == (size_t)sent);
  check_bytes(data, bytes, 4);
  atomic_fetch_add(&replies, 1);
}

static void negotiate(gex_Rank_t peer, size_t most, int is_long, int is_client) {
  char* const buffer = is_client ? malloc(most + 1) : NULL;
  gex_Event_t event = GEX_EVENT_NO_OP;
  gex_Event_t* const lc_opt = is_client ? &event : NULL;
  gex_AM_SrcDesc_t sd;
  /* The first one is cancelled: its credit must be returned. */
  for (int cancelled = 0; cancelled < 2; ++cancelled) {
    sd = is_long ? gex_AM_PrepareRequestLong(team, peer, buffer, most < 8192 ? most : 8192, most,
                                             segments[peer], lc_opt, 0, 1)
                 : gex_AM_PrepareRequestMedium(team, peer, buffer, most < 8192 ? most : 8192, most,
                                               lc_opt, 0, 1);
    CHECK(sd != GEX_AM_SRCDESC_NO_OP);
    if (cancelled == 0)
      CHECK((is_long ? gex_AM_CancelRequestLong(sd, 0) : gex_AM_CancelRequestMedium(sd, 0)) == 0);
  }
  size_t sent = gex_AM_SrcDescSize(sd);
  CHECK(sent <= most && (sent == most || sent >= 8192));
  CHECK(is_client ? gex_AM_SrcDescAddr(sd) == buffer : (uintptr_t)gex_AM_SrcDescAddr(sd) % 16 == 0);
  if (sent > 1) --sent; /* less than was prepared */
  fill(gex_AM_SrcDescAddr(sd), sent, 3);
  if (is_long)
    CHECK(gex_AM_CommitRequestLong1_v2(sd, kPreparedLongRequest, sent, segments[peer],
                                       GEX_FLAG_IMMEDIATE, is_client) == 0);
  else
    gex_AM_CommitRequestMedium(sd, kPreparedRequest, sent, is_client);
  CHECK(!is_client || event == GEX_EVENT_INVALID);
  if (is_client) memset(buffer, 0xEE, most);
  GASNET_BLOCKUNTIL(atomic_load(&replies) == 1);
  atomic_store(&replies, 0);
  free(buffer);
}

static void negotiated(void) {
  const size_t sizes[] = {0, 1, 100, 8192, 100000, LARGEST};
  for (gex_Rank_t turn = 0; turn < size; ++turn) {
    if (turn == me)
      for (gex_Rank_t peer = 0; peer < size; ++peer)
        for (unsigned int i = 0; i < sizeof sizes / sizeof *sizes; ++i)
          for (int form = 0; form < 4; ++form) negotiate(peer, sizes[i], form & 1, form >> 1);
    barrier();
  }
}

/* -------------------------------------------------------------------------- all that were sent */

static void counted_request(gex_Token_t token) {
  (void)token;
  atomic_fetch_add(&counted, 1);
}
static void expect_request(gex_Token_t token, gex_AM_Arg_t number) {
  (void)token;
  atomic_fetch_add(&expected, (unsigned)number);
  atomic_fetch_add(&announcements, 1);
}

/* Each rank sends each other how many requests it sent. Each request must arrive exactly once. */
static void check_counts(const atomic_uint* sent) {
  for (gex_Rank_t rank = 0; rank < size; ++rank)
    gex_AM_RequestShort1(team, rank, kExpect, 0, (gex_AM_Arg_t)atomic_load(&sent[rank]));
  GASNET_BLOCKUNTIL(atomic_load(&announcements) == size &&
                    atomic_load(&counted) >= atomic_load(&expected));
  barrier();
  barrier();
  CHECK(atomic_load(&counted) == atomic_load(&expected));
}

/* ---------------------------------------------------------------------------------- immediate */

/* Without a poll between the requests no credit is returned. So at most as many requests are
 * accepted as there are credits. */
static void immediate(void) {
  const unsigned int credits = (unsigned)atoi(getenv("GASNET_AM_CREDITS"));
  const gex_Rank_t peer = (me + 1) % size;
  atomic_uint* const sent = calloc(size, sizeof *sent);
  char byte = 0;
  const gex_Event_t untouched = (gex_Event_t)(void*)&byte;
  gex_Event_t event = untouched;
  barrier();
  while (atomic_load(&sent[peer]) < 4 * credits) {
    unsigned int accepted = 0;
    while (gex_AM_RequestShort0(team, peer, kCounted, GEX_FLAG_IMMEDIATE) == 0) ++accepted;
    CHECK(accepted <= credits);
    atomic_fetch_add(&sent[peer], accepted);
    CHECK(gex_AM_RequestMedium0(team, peer, kCounted, &byte, 1, &event, GEX_FLAG_IMMEDIATE) != 0);
    CHECK(gex_AM_RequestLong0(team, peer, kCounted, &byte, 1, segments[peer], &event,
                              GEX_FLAG_IMMEDIATE) != 0);
    CHECK(gex_AM_PrepareRequestMedium(team, peer, NULL, 1, 1, NULL, GEX_FLAG_IMMEDIATE, 0) ==
          GEX_AM_SRCDESC_NO_OP);
    CHECK(gex_AM_PrepareRequestLong(team, peer, NULL, 1, 1, NULL, NULL, GEX_FLAG_IMMEDIATE, 0) ==
          GEX_AM_SRCDESC_NO_OP);
    CHECK(event == untouched);
    gasnet_AMPoll();
  }
  check_counts(sent);
  free(sent);
}

/* -------------------------------------------------------------------------------------- flood */

/* Each rank has its own places in the segments of all ranks, and each thread a part of them. A
 * place is used again when the reply has arrived. */
static atomic_uchar is_in_use[kFloodRanks][kSlots];
enum { kUsesPlace = 1 << 8 }; /* in an argument, beside the number of the slot */

static char* place(gex_Rank_t owner, gex_Rank_t sender, unsigned int slot) {
  return segments[owner] + ((size_t)sender * kSlots + slot) * kSlotSize;
}
static size_t bytes_of(unsigned int slot) {
  return slot % 8 == 7 ? 9000 + slot : slot % 8 == 6 ? 8192 : slot * 9;
}
static size_t medium_bytes_of(unsigned int slot) {
  const size_t bytes = bytes_of(slot);
  return bytes < 8192 ? bytes : 8192;
}

/* A reply may wait for room, but must not handle another request meanwhile. */
static __thread int is_replying;

static void answer(gex_Token_t token, gex_AM_Arg_t number, gex_AM_Arg_t kind) {
  char buffer[16384];
  gex_Token_Info_t info;
  CHECK(!is_replying);
  is_replying = 1;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  const unsigned int slot = (unsigned)number % kUsesPlace;
  fill(buffer, bytes_of(slot), slot);
  if (kind == 1) gex_AM_ReplyShort1(token, kFloodReplyShort, 0, number);
  if (kind == 2)
    gex_AM_ReplyMedium1(token, kFloodReplyMedium, buffer, medium_bytes_of(slot), GEX_EVENT_NOW, 0,
                        number);
  if (kind == 3)
    gex_AM_ReplyLong1(token, kFloodReplyLong, buffer, bytes_of(slot),
                      place(info.gex_srcrank, me, slot) + REPLY_OFFSET, GEX_EVENT_NOW, 0, number);
  is_replying = 0;
}
static void flood_short(gex_Token_t token, gex_AM_Arg_t number, gex_AM_Arg_t reply) {
  answer(token, number, reply);
  atomic_fetch_add(&counted, 1);
}
static void flood_data(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t number,
                       gex_AM_Arg_t reply) {
  check_bytes(data, bytes, (unsigned)number % kUsesPlace);
  answer(token, number, reply);
  atomic_fetch_add(&counted, 1);
}
static void flood_reply_short(gex_Token_t token, gex_AM_Arg_t number) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  CHECK(number % kUsesPlace < kSlots);
  if (number & kUsesPlace) {
    CHECK(atomic_exchange(&is_in_use[info.gex_srcrank][number % kUsesPlace], 0) == 1);
  }
  atomic_fetch_add(&replies, 1);
}
static void flood_reply_data(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t number) {
  const unsigned int slot = (unsigned)number % kUsesPlace;
  CHECK(bytes == bytes_of(slot) || bytes == medium_bytes_of(slot));
  check_bytes(data, bytes, slot);
  flood_reply_short(token, number);
}

static atomic_uint flood_sent[kFloodRanks], flood_asked;

/* Sends from `slots` slots, beginning with `first`. */
static void flood_from(unsigned int seed, unsigned int count, unsigned int first,
                       unsigned int slots) {
  char* const buffer = malloc(kSlotSize);
  for (unsigned int i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const gex_Rank_t peer = (seed >> 8) % size;
    const unsigned int kind = (seed >> 16) % 3, slot = first + (seed >> 24) % slots;
    /* Only a reply shows that a Long is complete, so each Long gets one. */
    const gex_AM_Arg_t wish = (gex_AM_Arg_t)((seed >> 20) % 4);
    const gex_AM_Arg_t reply = kind == 2 && wish == 0 ? 1 : wish;
    const int uses_place = kind == 2 || reply == 3;
    const gex_AM_Arg_t number = (gex_AM_Arg_t)(slot | (uses_place ? kUsesPlace : 0));
    if (uses_place) {
      GASNET_BLOCKUNTIL(!atomic_load(&is_in_use[peer][slot]));
      atomic_store(&is_in_use[peer][slot], 1);
    }
    if (kind != 0) fill(buffer, bytes_of(slot), slot);
    if (kind == 0) gex_AM_RequestShort2(team, peer, kFloodShort, 0, number, reply);
    if (kind == 1)
      gex_AM_RequestMedium2(team, peer, kFloodMedium, buffer, medium_bytes_of(slot), GEX_EVENT_NOW,
                            0, number, reply);
    if (kind == 2)
      gex_AM_RequestLong2(team, peer, kFloodLong, buffer, bytes_of(slot), place(peer, me, slot),
                          GEX_EVENT_NOW, 0, number, reply);
    atomic_fetch_add(&flood_sent[peer], 1);
    if (reply != 0) atomic_fetch_add(&flood_asked, 1);
  }
  free(buffer);
}

static void finish_flood(void) {
  GASNET_BLOCKUNTIL(atomic_load(&replies) == atomic_load(&flood_asked));
  check_counts(flood_sent);
  CHECK(atomic_load(&replies) == atomic_load(&flood_asked));
  printf("rank %u: %llu refusals\n", me, (unsigned long long)gasneti_am_refusals());
}

static void flood(void) {
  const char* const count = getenv("AM_PROBE_FLOOD");
  CHECK(size <= kFloodRanks);
  flood_from(me + 1, count ? (unsigned)atoi(count) : 3000, 0, kSlots);
  finish_flood();
}

/* Rank 0 sends to a process that is stopped and receives nothing. A call that waited for that
 * process would not return. */
static void stopped(void) {
  enum { kSlot = 6, kPuts = 64, kPutBytes = 4096 };
  char* const buffer = calloc(kPuts, kPutBytes);
  gex_Event_t puts[kPuts];
  barrier();
  if (me == 1) gex_RMA_PutBlockingVal(team, 0, segments[0], (gex_RMA_Value_t)getpid(), 8, 0);
  barrier();
  if (me == 0) {
    const pid_t process = (pid_t) * (volatile uint64_t*)(void*)segments[0];
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    CHECK(kill(process, SIGSTOP) == 0);
    while (state != 'T') {
      FILE* const file = fopen(path, "r");
      CHECK(file && fscanf(file, "%*d %*s %c", &state) == 1);
      fclose(file);
    }
    fill(buffer, bytes_of(kSlot), kSlot);
    while (gex_AM_RequestMedium2(team, 1, kFloodMedium, buffer, bytes_of(kSlot), GEX_EVENT_NOW,
                                 GEX_FLAG_IMMEDIATE, kSlot, 0) == 0)
      atomic_fetch_add(&flood_sent[1], 1);
    for (int i = 0; i < kPuts; ++i)
      puts[i] = gex_RMA_PutNB(team, 1, segments[1] + i * kPutBytes, buffer + i * kPutBytes,
                              kPutBytes, GEX_EVENT_DEFER, 0);
    CHECK(kill(process, SIGCONT) == 0);
    gex_Event_WaitAll(puts, kPuts, 0);
    CHECK(atomic_load(&flood_sent[1]) >= (unsigned)atoi(getenv("GASNET_AM_CREDITS")));
  }
  check_counts(flood_sent);
  free(buffer);
}

#ifdef GASNET_PAR
static void* flood_thread(void* argument) {
  const unsigned int thread = (unsigned)(uintptr_t)argument, slots = kSlots / kFloodThreads;
  flood_from(me * kFloodThreads + thread + 1, 1000, thread * slots, slots);
  return NULL;
}
#endif
static void threads(void) {
#ifdef GASNET_PAR
  pthread_t started[kFloodThreads];
  for (unsigned int i = 0; i < kFloodThreads; ++i)
    pthread_create(&started[i], NULL, flood_thread, (void*)(uintptr_t)i);
  for (unsigned int i = 0; i < kFloodThreads; ++i) pthread_join(started[i], NULL);
#endif
  finish_flood();
}

/* ------------------------------------------------------------------------------------ hostile */

/* Rank 1 sends, by Portals alone, a message that is not valid: 31 arguments without a payload. */
static void hostile(void) {
  ptl_handle_ni_t interface;
  ptl_handle_md_t memory;
  ptl_process_t target;
  ptl_md_t md;
  memset(&md, 0, sizeof md);
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = PTL_CT_NONE;
  target.rank = 0;
  if (me == 1) {
    CHECK(PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &interface) ==
          PTL_OK);
    CHECK(PtlMDBind(interface, &md, &memory) == PTL_OK);
    CHECK(PtlPut(memory, 0, 0, PTL_NO_ACK_REQ, target, 238, 31 << 8, 0, NULL, 0) == PTL_OK);
  }
  GASNET_BLOCKUNTIL(0);
}

/* -------------------------------------------------------------------------------------- start */

#define REQUEST_FLAGS(kind) GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_##kind
#define REPLY_FLAGS(kind) GEX_FLAG_AM_REPLY | GEX_FLAG_AM_##kind
#define ENTRIES(M)                                                                               \
  {kShortRequest + M, (gex_AM_Fn_t)short_request##M, REQUEST_FLAGS(SHORT), M, NULL, "short"},    \
      {kShortReply + M, (gex_AM_Fn_t)short_reply##M, REPLY_FLAGS(SHORT), M, NULL, "short"},      \
      {kMediumRequest + M, (gex_AM_Fn_t)medium_request##M, REQUEST_FLAGS(MEDIUM), M, NULL, "m"}, \
      {kMediumReply + M, (gex_AM_Fn_t)medium_reply##M, REPLY_FLAGS(MEDIUM), M, NULL, "medium"},  \
      {kLongRequest + M, (gex_AM_Fn_t)long_request##M, REQUEST_FLAGS(LONG), M, NULL, "long"},    \
      {kLongReply + M, (gex_AM_Fn_t)long_reply##M, REPLY_FLAGS(LONG), M, NULL, "long"},

static gex_AM_Entry_t handlers[] = {
    FOR_EACH_ARITY(ENTRIES){kCounted, (gex_AM_Fn_t)counted_request, REQUEST_FLAGS(SHORT), 0, NULL,
                            "counted"},
    {kExpect, (gex_AM_Fn_t)expect_request, REQUEST_FLAGS(SHORT), 1, NULL, "expect"},
    {kFloodShort, (gex_AM_Fn_t)flood_short, REQUEST_FLAGS(SHORT), 2, NULL, "flood"},
    {kFloodMedium, (gex_AM_Fn_t)flood_data, REQUEST_FLAGS(MEDIUM), 2, NULL, "flood"},
    {kFloodLong, (gex_AM_Fn_t)flood_data, REQUEST_FLAGS(LONG), 2, NULL, "flood"},
    {kFloodReplyShort, (gex_AM_Fn_t)flood_reply_short, REPLY_FLAGS(SHORT), 1, NULL, "flood"},
    {kFloodReplyMedium, (gex_AM_Fn_t)flood_reply_data, REPLY_FLAGS(MEDIUM), 1, NULL, "flood"},
    {kFloodReplyLong, (gex_AM_Fn_t)flood_reply_data, REPLY_FLAGS(LONG), 1, NULL, "flood"},
    {kPreparedRequest, (gex_AM_Fn_t)prepared_request, REQUEST_FLAGS(MEDIUM), 1, NULL, "prepared"},
    {kPreparedReply, (gex_AM_Fn_t)prepared_reply, REPLY_FLAGS(MEDIUM), 1, NULL, "prepared"},
    {kPreparedLongRequest, (gex_AM_Fn_t)prepared_long_request, REQUEST_FLAGS(LONG), 1, NULL, "p"},
    {kPreparedLongReply, (gex_AM_Fn_t)prepared_reply, REPLY_FLAGS(LONG), 1, NULL, "prepared"},
};

/* A launcher needs this: the nid of this node. */
static int print_nid(void) {
  ptl_handle_ni_t interface;
  ptl_process_t id;
  if (PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                &interface) != PTL_OK ||
      PtlGetPhysId(interface, &id) != PTL_OK)
    return 1;
  printf("%u\n", (unsigned)id.phys.nid);
  PtlNIFini(interface);
  PtlFini();
  return 0;
}

int main(int argc, char** argv) {
  const char* const name = argc == 2 ? argv[1] : "";
  if (strcmp(name, "nid") == 0) return print_nid();
  const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"arity", arity},    {"negotiated", negotiated}, {"immediate", immediate},
               {"flood", flood},    {"threads", threads},       {"hostile", hostile},
               {"stopped", stopped}};
  start_client("AM_PROBE", &argc, &argv, handlers, sizeof handlers / sizeof *handlers, 0);
  CHECK(gex_Segment_Attach(&segment, team, SEGMENT_BYTES) == GASNET_OK);
  segments = malloc(size * sizeof *segments);
  for (gex_Rank_t rank = 0; rank < size; ++rank) segments[rank] = segment_of(team, rank);
  barrier(); /* handlers of faster ranks use the addresses */
  int found = 0;
  for (unsigned int i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(name, cases[i].name) != 0) continue;
    cases[i].run();
    found = 1;
  }
  if (found && me == 0) printf("%s: done\n", name);
  fflush(stdout);
  barrier();
  gasnet_exit(found ? 0 : 2);
}
