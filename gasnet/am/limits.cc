/* limits.cc: largest payloads, the same for all peers; queries of tokens.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/send.h"
#include "am/token.h"

using namespace lintel::gasnet;

namespace {

/** The buffers of the library hold the data of a Medium. */
size_t largest_long(gex_Flags_t flags) {
  return flags & GEX_FLAG_AM_PREPARE_LEAST_ALLOC ? kLargestData : kLargestLong;
}

}  // namespace

unsigned int gex_AM_MaxArgs() { return GASNETI_AM_MAX_ARGS; }
size_t gex_AM_MaxRequestLong(gex_TM_t, gex_Rank_t, const gex_Event_t*, gex_Flags_t flags,
                             unsigned int) {
  return largest_long(flags);
}
size_t gex_AM_MaxReplyLong(gex_TM_t, gex_Rank_t, const gex_Event_t*, gex_Flags_t flags,
                           unsigned int) {
  return largest_long(flags);
}
size_t gex_AM_MaxRequestMedium(gex_TM_t, gex_Rank_t, const gex_Event_t*, gex_Flags_t,
                               unsigned int) {
  return kLargestData;
}
size_t gex_AM_MaxReplyMedium(gex_TM_t, gex_Rank_t, const gex_Event_t*, gex_Flags_t, unsigned int) {
  return kLargestData;
}
size_t gex_Token_MaxReplyLong(gex_Token_t, const gex_Event_t*, gex_Flags_t flags, unsigned int) {
  return largest_long(flags);
}
size_t gex_Token_MaxReplyMedium(gex_Token_t, const gex_Event_t*, gex_Flags_t, unsigned int) {
  return kLargestData;
}
size_t gex_AM_LUBRequestLong() { return kLargestLong; }
size_t gex_AM_LUBReplyLong() { return kLargestLong; }
size_t gex_AM_LUBRequestMedium() { return kLargestData; }
size_t gex_AM_LUBReplyMedium() { return kLargestData; }

gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t* info, gex_TI_t /*mask*/) {
  info->gex_srcrank = token->source;
  info->gex_ep = token->endpoint;
  info->gex_entry = token->entry;
  info->gex_is_req = token->is_request;
  info->gex_is_long = token->is_long;
  return GEX_TI_ALL;
}

uint64_t gasneti_am_refusals() { return messages().refusals(); }
