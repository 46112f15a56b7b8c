// How ptl_perf fails. Set-up path: nothing here runs while all is well.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/errors.h"

#include "common/portals_names.h"

namespace lintel::perf {

void throw_call_failed(const char* call, int code) {
  throw Failure(ExitCode::failed, std::string(call) + " returned " + tools::return_code_name(code));
}

void throw_event_failed(const char* call, int code, const ptl_event_t& event) {
  if (code != PTL_OK && code != PTL_EQ_DROPPED) throw_call_failed(call, code);
  if (code == PTL_EQ_DROPPED) {
    throw Failure(ExitCode::failed, std::string(call) +
                                        " returned PTL_EQ_DROPPED: events were lost although "
                                        "fewer were outstanding than the queue holds");
  }
  const bool lost = event.ni_fail_type == PTL_NI_UNDELIVERABLE;
  throw Failure(lost ? ExitCode::peer_lost : ExitCode::failed,
                tools::event_kind_name(event.type) + " reports " +
                    tools::fail_type_name(event.ni_fail_type) +
                    (lost ? ": the peer cannot be reached" : ""));
}

void throw_count_failed(const char* call, int code, const ptl_ct_event_t& count) {
  if (code != PTL_OK) throw_call_failed(call, code);
  throw Failure(ExitCode::failed, std::string(call) + ": a counting event counted " +
                                      std::to_string(count.failure) + " failed operations after " +
                                      std::to_string(count.success) + " successful ones");
}

}  // namespace lintel::perf
