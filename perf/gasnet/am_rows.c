/* am_rows.c: times of Shorts between two ranks, to be compared with ptl_perf. rows.py runs both.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>

#include "rows.h"

enum { kPing = 200, kPong, kFlood };

static volatile unsigned int pongs, floods;

static void ping(gex_Token_t token) { gex_AM_ReplyShort0(token, kPong, 0); }
static void pong(gex_Token_t token) {
  (void)token;
  ++pongs;
}
static void flood(gex_Token_t token) {
  (void)token;
  ++floods;
}
int main(int argc, char** argv) {
  gex_AM_Entry_t handlers[] = {
      {kPing, (gex_AM_Fn_t)ping, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "ping"},
      {kPong, (gex_AM_Fn_t)pong, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "pong"},
      {kFlood, (gex_AM_Fn_t)flood, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "flood"}};
  start_client("AM_ROWS", &argc, &argv);
  gex_EP_RegisterHandlers(endpoint, handlers, sizeof handlers / sizeof *handlers);
  begin_pair();
  meet();
  /* Medians of batches: another process on the processor affects only few of them. */
  static double batches[1000];
  const unsigned int trips = 16, messages = 4096, floods_timed = 21;
  for (unsigned int batch = 0; me == 0 && batch < 1000; ++batch) {
    const gasnett_tick_t start = gasnett_ticks_now();
    for (unsigned int i = 0; i < trips; ++i) {
      const unsigned int before = pongs;
      gex_AM_RequestShort0(team, 1, kPing, 0);
      GASNET_BLOCKUNTIL(pongs != before);
    }
    batches[batch] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / trips;
  }
  meet();
  if (me == 0) printf("round_trip_ns %.1f\n", median(batches, 1000));
  for (unsigned int batch = 0; batch < floods_timed; ++batch) {
    const gasnett_tick_t start = gasnett_ticks_now();
    if (me == 0)
      for (unsigned int i = 0; i < messages; ++i) gex_AM_RequestShort0(team, 1, kFlood, 0);
    else
      GASNET_BLOCKUNTIL(floods == (batch + 1) * messages);
    meet();
    batches[batch] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / messages;
  }
  if (me == 0) printf("flood_ns %.1f\n", median(batches, floods_timed));
  fflush(stdout);
  meet();
  gasnet_exit(0);
}
