/* legacy_probe.c: a program of GASNet-1: every put, get and completion, active messages of each
 * kind, and calls of GASNet-EX beside them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>

#include "checks.h"

enum { kBytes = 20000, kPlaces = 16 };

static gasnet_node_t peer;
static volatile unsigned int shorts, mediums, longs;
static unsigned char* mine;
static unsigned char* theirs;
static gasnet_handler_t request_index, reply_index;

static void request(gasnet_token_t token, void* data, size_t bytes, gasnet_handlerarg_t kind) {
  gasnet_node_t from;
  CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
  CHECK(from == (me + size - 1) % size);
  if (kind == 0)
    CHECK(gasnet_AMReplyMedium1(token, reply_index, data, bytes, 0) == GASNET_OK);
  else
    CHECK(gasnet_AMReplyShort(token, 203, 2, 7, 8) == GASNET_OK);
}
static void reply(gasnet_token_t token, void* data, size_t bytes, gasnet_handlerarg_t kind) {
  (void)token;
  CHECK(kind == 0 && bytes == 100 && ((char*)data)[99] == 'm');
  ++mediums;
}
static void short_reply(gasnet_token_t token, gasnet_handlerarg_t a, gasnet_handlerarg_t b) {
  (void)token;
  CHECK(a == 7 && b == 8);
  ++shorts;
}
static void long_request(gasnet_token_t token, void* data, size_t bytes) {
  (void)token;
  CHECK(bytes == kBytes && data == mine && mine[kBytes - 1] == 'l');
  ++longs;
}

static void transfers(void) {
  static unsigned char source[kBytes], back[kPlaces][kBytes / kPlaces];
  const size_t n = kBytes / kPlaces;
  gasnet_handle_t handles[4];
  for (size_t i = 0; i < kBytes; ++i) source[i] = (unsigned char)(i * 7 + i / 256 + me);
  gasnet_put(peer, theirs, source, n);
  gasnet_put_bulk(peer, theirs + n, source + n, n);
  handles[0] = gasnet_put_nb(peer, theirs + 2 * n, source + 2 * n, n);
  handles[1] = gasnet_put_nb_bulk(peer, theirs + 3 * n, source + 3 * n, n);
  gasnet_put_nbi(peer, theirs + 4 * n, source + 4 * n, n);
  gasnet_put_nbi_bulk(peer, theirs + 5 * n, source + 5 * n, n);
  gasnet_wait_syncnb_some(handles, 2);
  gasnet_wait_syncnb_all(handles, 2);
  gasnet_wait_syncnbi_puts();
  gasnet_begin_nbi_accessregion();
  gasnet_put_nbi_bulk(peer, theirs + 6 * n, source + 6 * n, 9 * n);
  gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
  gasnet_get(back[0], peer, theirs, n);
  gasnet_get_bulk(back[1], peer, theirs + n, n);
  handles[0] = gasnet_get_nb(back[2], peer, theirs + 2 * n, n);
  handles[1] = gasnet_get_nb_bulk(back[3], peer, theirs + 3 * n, n);
  gasnet_get_nbi(back[4], peer, theirs + 4 * n, n);
  gasnet_get_nbi_bulk(back[5], peer, theirs + 5 * n, n);
  while (gasnet_try_syncnb_some(handles, 2) != GASNET_OK) continue;
  while (gasnet_try_syncnb_all(handles, 2) != GASNET_OK) continue;
  while (gasnet_try_syncnbi_gets() != GASNET_OK) continue;
  CHECK(gasnet_try_syncnbi_puts() == GASNET_OK && gasnet_try_syncnbi_all() == GASNET_OK);
  for (size_t i = 6; i < 15; ++i) {
    handles[0] = gasnet_get_nb(back[i], peer, theirs + i * n, n);
    handles[1] = GASNET_INVALID_HANDLE;
    switch (i % 4) {
      case 0:
        while (gasnet_try_syncnb(handles[0]) != GASNET_OK) continue;
        break;
      case 1:
        while (gasnet_try_syncnb_nopoll(handles[0]) != GASNET_OK) gasnet_AMPoll();
        break;
      case 2:
        while (gasnet_try_syncnb_some_nopoll(handles, 2) != GASNET_OK) gasnet_AMPoll();
        break;
      default:
        while (gasnet_try_syncnb_all_nopoll(handles, 2) != GASNET_OK) gasnet_AMPoll();
        break;
    }
  }
  CHECK(memcmp(back, source, 15 * n) == 0);

  gasnet_memset(peer, theirs, 3, 9000);
  gasnet_wait_syncnb(gasnet_memset_nb(peer, theirs + 9000, 4, 10));
  gasnet_memset_nbi(peer, theirs + 9010, 5, 10);
  gasnet_wait_syncnbi_all();
  gasnet_get(source, peer, theirs, 9020);
  CHECK(source[0] == 3 && source[8999] == 3 && source[9000] == 4 && source[9009] == 4);
  CHECK(source[9010] == 5 && source[9019] == 5);

  gasnet_put_val(peer, theirs, 0x1122334455667788, 8);
  gasnet_wait_syncnb(gasnet_put_nb_val(peer, theirs + 8, 0x99aa, 2));
  gasnet_put_nbi_val(peer, theirs + 10, 0x01020304, 4);
  gasnet_wait_syncnbi_puts();
  CHECK(gasnet_get_val(peer, theirs, 8) == 0x1122334455667788);
  const gasnet_valget_handle_t first = gasnet_get_nb_val(peer, theirs + 8, 2);
  const gasnet_valget_handle_t second = gasnet_get_nb_val(peer, theirs + 10, 4);
  CHECK(gasnet_wait_syncnb_valget(second) == 0x01020304);
  CHECK(gasnet_wait_syncnb_valget(first) == 0x99aa);
  CHECK(gasnet_get_val(peer, theirs + 8, 1) == 0xaa);
}

static void messages(void) {
  char text[100];
  unsigned char* const data = malloc(kBytes);
  memset(text, 'm', sizeof text);
  memset(data, 'l', kBytes);
  CHECK(gasnet_AMMaxArgs() >= 16 && gasnet_AMMaxMedium() >= 512);
  CHECK(gasnet_AMMaxLongRequest() >= kBytes && gasnet_AMMaxLongReply() >= kBytes);
  for (int i = 0; i < 50; ++i) {
    CHECK(gasnet_AMRequestMedium1(peer, request_index, text, sizeof text, 0) == GASNET_OK);
    CHECK(gasnet_AMRequestMedium(peer, request_index, text, sizeof text, 1, 1) == GASNET_OK);
  }
  GASNET_BLOCKUNTIL(mediums == 50 && shorts == 50);
  barrier();
  CHECK(gasnet_AMRequestLong0(peer, 204, data, kBytes, theirs) == GASNET_OK);
  CHECK(gasnet_AMRequestLongAsync(peer, 204, data, kBytes, theirs, 0) == GASNET_OK);
  GASNET_BLOCKUNTIL(longs == 2);
  barrier();
  free(data);
}

int main(int argc, char** argv) {
  gasnet_handlerentry_t table[] = {{0, (gex_AM_Fn_t)request},
                                   {203, (gex_AM_Fn_t)short_reply},
                                   {0, (gex_AM_Fn_t)reply},
                                   {204, (gex_AM_Fn_t)long_request}};
  gasnet_seginfo_t* segments;
  CHECK(gasnet_attach(table, 0, 0, 0) == GASNET_ERR_NOT_INIT);
  CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
  me = gasnet_mynode();
  size = gasnet_nodes();
  peer = (me + 1) % size;
  CHECK(gasnet_getenv("PATH") != NULL);
  CHECK(gasnet_attach(table, 4, 16 * GASNET_PAGESIZE, 0) == GASNET_OK);
  request_index = table[0].index;
  reply_index = table[2].index;
  CHECK(request_index == 255 && reply_index == 254);
  segments = malloc(size * sizeof *segments);
  CHECK(gasnet_getSegmentInfo(segments, (int)size) == GASNET_OK);
  mine = segments[me].addr;
  theirs = segments[peer].addr;
  gasnet_QueryGexObjects(NULL, NULL, NULL, NULL);
  gasnet_QueryGexObjects(&client, &endpoint, &team, &segment);
  CHECK(gex_Client_QueryFlags(client) == GEX_FLAG_USES_GASNET1);
  CHECK(gex_EP_QueryClient(endpoint) == client && gex_TM_QuerySize(team) == size);
  CHECK(gex_Segment_QueryAddr(segment) == mine && gex_Segment_QuerySize(segment) == 65536);
  transfers();
  barrier();
  messages();
  /* A call of GASNet-EX beside those of GASNet-1. */
  gex_RMA_PutBlockingVal(team, peer, theirs, me + 1, 8, 0);
  barrier();
  CHECK(*(uint64_t*)(void*)mine == (me + size - 1) % size + 1);
  if (me == 0) printf("GASNet-1 with %u ranks is good\n", size);
  barrier();
  free(segments);
  gasnet_exit(0);
}
