/* negotiated.cc: Prepare, Commit, Cancel. Message path.
 *
 * Prepare takes record and credit, so Commit cannot fail. The buffer of the library is that of the
 * record: the data are sent from where the client writes them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>

#include "am/send.h"
#include "am/token.h"
#include "job/thread.h"
#include "team/team.h"

/** Each thread has at most one. */
struct gasneti_source_descriptor {
  lintel::gasnet::SendRecord* record = nullptr;
  gex_Rank_t target = 0;
  gex_Token_t token = nullptr; /* token of the request that the reply answers */
  void* address = nullptr;
  size_t bytes = 0;
  gex_Event_t* lc_opt = nullptr;
  unsigned int numargs = 0;
};

using namespace lintel::gasnet;

namespace {

LINTEL_GASNET_PER_THREAD gasneti_source_descriptor g_descriptor;

gex_AM_SrcDesc_t prepare(SendRecord* record, gex_Rank_t target, gex_Token_t token, bool is_long,
                         const void* client_buf, size_t least, size_t most, gex_Event_t* lc_opt,
                         unsigned int numargs) {
  if (!record) return GEX_AM_SRCDESC_NO_OP;
  const size_t limit = is_long && client_buf ? kLargestLong : kLargestData;
  if (least > most || least > limit)
    gasnett_fatalerror_nopos("gex_AM_Prepare: least_payload %zu, most_payload %zu; at most %zu",
                             least, most, limit);
  gasneti_source_descriptor& sd = g_descriptor;
  sd.record = record;
  sd.target = target;
  sd.token = token;
  sd.address =
      client_buf ? const_cast<void*>(client_buf) : place_for_data(*record, is_long, numargs);
  sd.bytes = std::min(most, limit);
  sd.lc_opt = lc_opt;
  sd.numargs = numargs;
  this_thread().is_prepared = true;
  return &sd;
}

gex_AM_SrcDesc_t prepare_request(gex_TM_t tm, gex_Rank_t rank, bool is_long, const void* client_buf,
                                 size_t least, size_t most, gex_Event_t* lc_opt, gex_Flags_t flags,
                                 unsigned int numargs) {
  check_may_communicate("gex_AM_PrepareRequest");
  return prepare(messages().request_record(flags), endpoint_of(tm, rank).jobrank, nullptr, is_long,
                 client_buf, least, most, lc_opt, numargs);
}

gex_AM_SrcDesc_t prepare_reply(gex_Token_t token, bool is_long, const void* client_buf,
                               size_t least, size_t most, gex_Event_t* lc_opt, gex_Flags_t flags,
                               unsigned int numargs) {
  check_may_reply("gex_AM_PrepareReply", token->has_replied);
  return prepare(messages().reply_record(flags), token->source, token, is_long, client_buf, least,
                 most, lc_opt, numargs);
}

Message begin_commit(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                     unsigned int numargs, const gex_AM_Arg_t* args) {
  if (nbytes > sd->bytes || numargs != sd->numargs)
    gasnett_fatalerror_nopos("gex_AM_Commit: %zu bytes and %u arguments; prepared were %zu and %u",
                             nbytes, numargs, sd->bytes, sd->numargs);
  this_thread().is_prepared = false;
  if (sd->token) sd->token->has_replied = true;
  return {sd->record, sd->target, sd->token != nullptr, handler, numargs, args};
}

int commit_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, unsigned int numargs,
                  const gex_AM_Arg_t* args) {
  const Message message = begin_commit(sd, handler, nbytes, numargs, args);
  source_is_free_now(sd->lc_opt);
  send_medium(message, sd->address, nbytes);
  return 0;
}

int commit_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, void* dest_addr,
                unsigned int numargs, const gex_AM_Arg_t* args) {
  const Message message = begin_commit(sd, handler, nbytes, numargs, args);
  // Sending may run handlers, which may prepare replies.
  gex_Event_t* const lc_opt = sd->lc_opt;
  send_long(message, sd->address, nbytes, dest_addr);
  source_is_free_now(lc_opt);
  return 0;
}

int cancel(gex_AM_SrcDesc_t sd) {
  this_thread().is_prepared = false;
  messages().cancel(sd->record);
  return 0;
}

}  // namespace

void* gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd) { return sd->address; }
size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd) { return sd->bytes; }

gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void* client_buf,
                                             size_t least_payload, size_t most_payload,
                                             gex_Event_t* lc_opt, gex_Flags_t flags,
                                             unsigned int numargs) {
  return prepare_request(tm, rank, false, client_buf, least_payload, most_payload, lc_opt, flags,
                         numargs);
}
gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void* client_buf,
                                           size_t least_payload, size_t most_payload,
                                           gex_Event_t* lc_opt, gex_Flags_t flags,
                                           unsigned int numargs) {
  return prepare_reply(token, false, client_buf, least_payload, most_payload, lc_opt, flags,
                       numargs);
}
gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void* client_buf,
                                           size_t least_payload, size_t most_payload,
                                           void* /*dest_addr*/, gex_Event_t* lc_opt,
                                           gex_Flags_t flags, unsigned int numargs) {
  return prepare_request(tm, rank, true, client_buf, least_payload, most_payload, lc_opt, flags,
                         numargs);
}
gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void* client_buf,
                                         size_t least_payload, size_t most_payload,
                                         void* /*dest_addr*/, gex_Event_t* lc_opt,
                                         gex_Flags_t flags, unsigned int numargs) {
  return prepare_reply(token, true, client_buf, least_payload, most_payload, lc_opt, flags,
                       numargs);
}

int gasneti_am_commit_request_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                     gex_Flags_t /*flags*/, unsigned int numargs,
                                     const gex_AM_Arg_t* args) {
  return commit_medium(sd, handler, nbytes, numargs, args);
}
int gasneti_am_commit_reply_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                   gex_Flags_t /*flags*/, unsigned int numargs,
                                   const gex_AM_Arg_t* args) {
  return commit_medium(sd, handler, nbytes, numargs, args);
}
int gasneti_am_commit_request_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                   void* dest_addr, gex_Flags_t /*flags*/, unsigned int numargs,
                                   const gex_AM_Arg_t* args) {
  return commit_long(sd, handler, nbytes, dest_addr, numargs, args);
}
int gasneti_am_commit_reply_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                 void* dest_addr, gex_Flags_t /*flags*/, unsigned int numargs,
                                 const gex_AM_Arg_t* args) {
  return commit_long(sd, handler, nbytes, dest_addr, numargs, args);
}

int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t /*flags*/) { return cancel(sd); }
int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t /*flags*/) { return cancel(sd); }
int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t /*flags*/) { return cancel(sd); }
int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t /*flags*/) { return cancel(sd); }
