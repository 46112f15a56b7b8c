/* calls.cc: requests and replies with a fixed payload. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/send.h"
#include "am/token.h"
#include "job/thread.h"
#include "team/team.h"

using namespace lintel::gasnet;

namespace {

/** @return false if the request would have to wait and GEX_FLAG_IMMEDIATE is set. */
bool begin_request(Message* message, gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags,
                   const char* call) {
  check_may_communicate(call);
  message->record = messages().request_record(flags);
  message->target = endpoint_of(tm, rank).jobrank;
  return message->record != nullptr;
}

bool begin_reply(Message* message, gex_Token_t token, gex_Flags_t flags, const char* call) {
  check_may_reply(call, token->has_replied);
  message->record = messages().reply_record(flags);
  if (!message->record) return false;
  message->target = token->source;
  token->has_replied = true;
  return true;
}

}  // namespace

int gasneti_am_request_short(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                             gex_Flags_t flags, unsigned int numargs, const gex_AM_Arg_t* args) {
  constexpr const char* kCall = "gex_AM_RequestShort";
  check_may_communicate(kCall);
  if (messages().send_short_near(endpoint_of(tm, rank).jobrank, false, handler, numargs, args))
    return 0;
  Message message{nullptr, rank, false, handler, numargs, args};
  if (!begin_request(&message, tm, rank, flags, kCall)) return 1;
  send_short(message);
  return 0;
}

int gasneti_am_request_medium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                              const void* source_addr, size_t nbytes, gex_Event_t* lc_opt,
                              gex_Flags_t flags, unsigned int numargs, const gex_AM_Arg_t* args) {
  Message message{nullptr, rank, false, handler, numargs, args};
  if (!begin_request(&message, tm, rank, flags, "gex_AM_RequestMedium")) return 1;
  send_medium(message, source_addr, nbytes);
  source_is_free_now(lc_opt);
  return 0;
}

int gasneti_am_request_long(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                            const void* source_addr, size_t nbytes, void* dest_addr,
                            gex_Event_t* lc_opt, gex_Flags_t flags, unsigned int numargs,
                            const gex_AM_Arg_t* args) {
  Message message{nullptr, rank, false, handler, numargs, args};
  if (!begin_request(&message, tm, rank, flags, "gex_AM_RequestLong")) return 1;
  send_long(message, source_addr, nbytes, dest_addr);
  source_is_free_now(lc_opt);
  return 0;
}

int gasneti_am_reply_short(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
                           unsigned int numargs, const gex_AM_Arg_t* args) {
  constexpr const char* kCall = "gex_AM_ReplyShort";
  check_may_reply(kCall, token->has_replied);
  if (messages().send_short_near(token->source, true, handler, numargs, args)) {
    token->has_replied = true;
    return 0;
  }
  Message message{nullptr, 0, true, handler, numargs, args};
  if (!begin_reply(&message, token, flags, kCall)) return 1;
  send_short(message);
  return 0;
}

int gasneti_am_reply_medium(gex_Token_t token, gex_AM_Index_t handler, const void* source_addr,
                            size_t nbytes, gex_Event_t* lc_opt, gex_Flags_t flags,
                            unsigned int numargs, const gex_AM_Arg_t* args) {
  Message message{nullptr, 0, true, handler, numargs, args};
  if (!begin_reply(&message, token, flags, "gex_AM_ReplyMedium")) return 1;
  send_medium(message, source_addr, nbytes);
  source_is_free_now(lc_opt);
  return 0;
}

int gasneti_am_reply_long(gex_Token_t token, gex_AM_Index_t handler, const void* source_addr,
                          size_t nbytes, void* dest_addr, gex_Event_t* lc_opt, gex_Flags_t flags,
                          unsigned int numargs, const gex_AM_Arg_t* args) {
  Message message{nullptr, 0, true, handler, numargs, args};
  if (!begin_reply(&message, token, flags, "gex_AM_ReplyLong")) return 1;
  send_long(message, source_addr, nbytes, dest_addr);
  source_is_free_now(lc_opt);
  return 0;
}
