/* send.h: filling records with Shorts, Mediums and Longs. Message path.
 *
 * All return when the source may be changed. Records come from Messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_SEND_H
#define LINTEL_GASNET_AM_SEND_H

#include "am/messages.h"

namespace lintel::gasnet {

constexpr size_t kLargestLong = size_t{1} << 20;

/** The target of a message, and the parameters that all kinds have. */
struct Message {
  SendRecord* record;
  gex_Rank_t target;
  bool is_reply;
  gex_AM_Index_t handler;
  unsigned int numargs;
  const gex_AM_Arg_t* args;
};

void send_short(const Message& message);
void send_medium(const Message& message, const void* source, size_t bytes);
/** Data for neighbours are stored into their segment. For other targets, data that fit travel with
 * the message. Longer data are sent by a separate put. */
void send_long(const Message& message, const void* source, size_t bytes, void* address);

/** @return where the data of a Medium or Long begin in the buffer of a record. A caller that writes
 *         them there saves a copy. */
char* place_for_data(const SendRecord& record, bool is_long, unsigned int numargs);

/** Completes the event of an operation whose source is free. */
inline void source_is_free_now(gex_Event_t* lc_opt) {
  if (reinterpret_cast<uintptr_t>(lc_opt) > reinterpret_cast<uintptr_t>(GEX_EVENT_GROUP))
    *lc_opt = GEX_EVENT_INVALID;
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_SEND_H
