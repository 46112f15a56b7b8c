/* portals4_ext.h: status registers of this implementation beyond the three of the specification
 * (3.3.7). Read them with PtlNIStatus. Those of the unexpected lists belong to the logical
 * interface; the others count for all logical interfaces of a physical one together, from the time
 * that the first of them was opened. PTL_STATS=1 prints them at PtlNIFini. Counting costs next to
 * nothing and is not synchronised, so a value may lag behind by the message in hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS4_EXT_H
#define PORTALS4_EXT_H

#include <portals4.h>

/* Kinds of messages, to be added to the first register of a group. */
#define PTL_SR_LINTEL_PUT 0u
#define PTL_SR_LINTEL_GET 1u
#define PTL_SR_LINTEL_ATOMIC 2u
#define PTL_SR_LINTEL_FETCH_ATOMIC 3u /* swaps included */
#define PTL_SR_LINTEL_REPLY 4u
#define PTL_SR_LINTEL_ACK 5u
#define PTL_SR_LINTEL_KINDS 6u

/* Indexes for PtlNIStatus. Groups: PTL_SR_LINTEL_MESSAGES_SENT + PTL_SR_LINTEL_PUT, and so on. */
#define PTL_SR_LINTEL_MESSAGES_SENT 16u
#define PTL_SR_LINTEL_MESSAGES_RECEIVED 22u
#define PTL_SR_LINTEL_BYTES_SENT 28u /* payload */
#define PTL_SR_LINTEL_BYTES_RECEIVED 34u

/* Sending. */
#define PTL_SR_LINTEL_SENDS_QUEUED 40u      /* messages that could not be sent at once */
#define PTL_SR_LINTEL_LANE_FULL_RETRIES 41u /* attempts that found the queue to the peer full */

/* Unexpected headers of the logical interface. */
#define PTL_SR_LINTEL_UNEXPECTED_DEPTH 42u /* now on the unexpected lists */
#define PTL_SR_LINTEL_UNEXPECTED_PEAK 43u  /* the most there have been */

/* Progress. */
#define PTL_SR_LINTEL_POLLS 44u
#define PTL_SR_LINTEL_POLLS_WITH_WORK 45u /* those that found something */
#define PTL_SR_LINTEL_SLEEPS 46u          /* times that nobody polled and a thread slept */
#define PTL_SR_LINTEL_WAKEUPS 47u         /* times that a peer or a thread ended such a sleep */

/* Faults. */
#define PTL_SR_LINTEL_FRAMES_REFUSED 48u /* malformed, or from a process not allowed */
#define PTL_SR_LINTEL_PEERS_FAILED 49u   /* peers found dead */

#define PTL_SR_LINTEL_END 50u /* one more than the largest index */

#endif /* PORTALS4_EXT_H */
