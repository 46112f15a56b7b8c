// Portal table entries (spec 3.7). Set-up path.
#include "api/in_use.h"
#include "api/resolve.h"
#include "core/objects/portal_operations.h"
#include "portals4_lintel.h"
#include "util/clock.h"

using namespace lintel;
using namespace lintel::api;

namespace {
constexpr unsigned portal_options = PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_FLOWCTRL |
                                    PTL_PT_ALLOC_DISABLED | PTL_PT_MATCH_UNORDERED;
}

extern "C" {

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
               ptl_pt_index_t pt_index_req, ptl_pt_index_t* pt_index) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  EventQueueObject* event_queue = nullptr;
  if (interface == nullptr || pt_index == nullptr || (options & ~portal_options) != 0 ||
      !resolve_optional_event_queue(*interface, eq_handle, &event_queue))
    return code_of_bad_handle();
  if (pt_index_req != PTL_PT_ANY &&
      pt_index_req > static_cast<ptl_pt_index_t>(interface->limits().max_pt_index))
    return PTL_ARG_INVALID;
  if ((options & PTL_PT_FLOWCTRL) != 0 && event_queue == nullptr) return PTL_PT_EQ_NEEDED;
  return allocate_portal(*interface, options, event_queue, pt_index_req, pt_index);
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return code_of_bad_handle();
  return poll_before_refusal(interface->physical(), PTL_PT_IN_USE,
                             [&] { return free_portal(*interface, pt_index); });
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return code_of_bad_handle();
  const int code = disable_portal(*interface, pt_index);
  if (code != PTL_OK) return code;
  // PtlAbort ends waits for events, but not this wait: it lasts as long as deliveries in progress
  // (spec 3.7.3).
  const auto quiet = [&] { return portal_is_quiet(*interface, pt_index); };
  while (!quiet()) interface->physical().wait_until(quiet, now_ns() + 1'000'000);
  // A message is counted after the lock has been released.
  interface->physical().poller().token().finish_round();
  return PTL_OK;
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) noexcept {
  NetworkInterface* interface = find_interface(ni_handle);
  return interface == nullptr ? code_of_bad_handle() : enable_portal(*interface, pt_index);
}

}  // extern "C"
