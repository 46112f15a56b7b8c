// Failures of ptl_perf. Set-up path: nothing here runs unless something fails.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/errors.h"

#include <portals4_lintel.h>

namespace lintel::perf {
namespace {

std::function<std::string()> explain_lost_peer;

std::string lost_peer() { return explain_lost_peer ? explain_lost_peer() : ""; }

}  // namespace

LostPeerExplanation::LostPeerExplanation(std::function<std::string()> explain) {
  explain_lost_peer = std::move(explain);
}
LostPeerExplanation::~LostPeerExplanation() { explain_lost_peer = nullptr; }

void throw_call_failed(const char* call, int code) {
  throw Failure(ExitCode::failed, std::string(call) + " returned " + PtlLintelStrError(code));
}

void throw_event_failed(const char* call, int code, const ptl_event_t& event) {
  if (code != PTL_OK && code != PTL_EQ_DROPPED) throw_call_failed(call, code);
  if (code == PTL_EQ_DROPPED) {
    throw Failure(ExitCode::failed, std::string(call) +
                                        " returned PTL_EQ_DROPPED: events were lost although "
                                        "fewer were outstanding than the queue holds");
  }
  const bool lost = event.ni_fail_type == PTL_NI_UNDELIVERABLE;
  std::string text = std::string(PtlToStr(static_cast<int>(event.type), PTL_STR_EVENT)) +
                     " reports " +
                     PtlToStr(static_cast<int>(event.ni_fail_type), PTL_STR_FAIL_TYPE);
  if (lost) {
    const std::string reason = lost_peer();
    text += reason.empty() ? ": the peer cannot be reached" : ": " + reason;
  }
  throw Failure(lost ? ExitCode::peer_lost : ExitCode::failed, text);
}

void throw_count_failed(const char* call, int code, const ptl_ct_event_t& count) {
  if (code != PTL_OK) throw_call_failed(call, code);
  const std::string reason = lost_peer();
  throw Failure(reason.empty() ? ExitCode::failed : ExitCode::peer_lost,
                std::string(call) + ": a counting event counted " + std::to_string(count.failure) +
                    " failed operations after " + std::to_string(count.success) +
                    " successful ones" + (reason.empty() ? "" : ": " + reason));
}

}  // namespace lintel::perf
