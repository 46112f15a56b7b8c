/* portals4_ext.h: status registers of this implementation beyond the three of the specification
 * (3.3.7). Read them with PtlNIStatus; they belong to one logical interface unless said otherwise,
 * start at zero in PtlNIInit, and are printed by its last PtlNIFini if PTL_STATS=1. Counting them
 * costs next to nothing, so a value may lag behind by the message in hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS4_EXT_H
#define PORTALS4_EXT_H

#include <portals4.h>

/* Kinds of messages, to be added to the first register of a group. */
enum {
  PTL_SR_LINTEL_PUT = 0,
  PTL_SR_LINTEL_GET = 1,
  PTL_SR_LINTEL_ATOMIC = 2,
  PTL_SR_LINTEL_FETCH_ATOMIC = 3, /* swaps included */
  PTL_SR_LINTEL_REPLY = 4,
  PTL_SR_LINTEL_ACK = 5,
  PTL_SR_LINTEL_KINDS = 6
};

/* Indexes for PtlNIStatus (ptl_sr_index_t). */
enum {
  /* Groups: PTL_SR_LINTEL_MESSAGES_SENT + PTL_SR_LINTEL_PUT, and so on. */
  PTL_SR_LINTEL_MESSAGES_SENT = 16,
  PTL_SR_LINTEL_MESSAGES_RECEIVED = 22,
  PTL_SR_LINTEL_BYTES_SENT = 28, /* payload */
  PTL_SR_LINTEL_BYTES_RECEIVED = 34,

  /* Sending. */
  PTL_SR_LINTEL_SENDS_QUEUED = 40,      /* messages that could not be sent at once */
  PTL_SR_LINTEL_LANE_FULL_RETRIES = 41, /* attempts that found the queue to the peer full */

  /* Unexpected headers. */
  PTL_SR_LINTEL_UNEXPECTED_DEPTH = 42, /* now on the unexpected lists */
  PTL_SR_LINTEL_UNEXPECTED_PEAK = 43,  /* the most there have been */

  /* Progress of the physical interface; the same for its logical interfaces. */
  PTL_SR_LINTEL_POLLS = 44,
  PTL_SR_LINTEL_POLLS_WITH_WORK = 45, /* those that found something */
  PTL_SR_LINTEL_SLEEPS = 46,          /* times that nobody polled and a thread slept */
  PTL_SR_LINTEL_WAKEUPS = 47,         /* times that a peer or a thread ended such a sleep */

  /* Faults; the same for the logical interfaces of a physical one. */
  PTL_SR_LINTEL_FRAMES_REFUSED = 48, /* arrived but malformed, or from a process not allowed */
  PTL_SR_LINTEL_PEERS_FAILED = 49,   /* peers found dead */

  PTL_SR_LINTEL_END = 50 /* one more than the largest index */
};

#endif /* PORTALS4_EXT_H */
