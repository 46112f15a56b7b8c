// Portal table entries (spec 3.7). Set-up path.
#include "api/refusal.h"
#include "api/resolve.h"
#include "core/objects/portal_operations.h"
#include "memory_kind/memory_kind.h"
#include "portals4_lintel.h"
#include "util/clock.h"

using namespace lintel;
using namespace lintel::api;

namespace {
constexpr unsigned portal_options = PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_FLOWCTRL |
                                    PTL_PT_ALLOC_DISABLED | PTL_PT_MATCH_UNORDERED |
                                    PTL_LINTEL_PT_HOLD;
constexpr Call pt_alloc{"PtlPTAlloc", "spec 3.7.1"};
constexpr Call pt_free{"PtlPTFree", "spec 3.7.2"};
constexpr Call pt_disable{"PtlPTDisable", "spec 3.7.3"};
constexpr Call pt_enable{"PtlPTEnable", "spec 3.7.4"};

// Reports `code`, which is not PTL_OK, of a call that names an entry.
int refuse_entry(int code, const Call& call, ptl_pt_index_t pt_index) noexcept {
  switch (code) {
    case PTL_PT_IN_USE:
      return refuse(code, call, "pt_index", pt_index,
                    "the entry must be unused: without list entries, headers and operations");
    default:
      return refuse(code, call, "pt_index", pt_index, "must name an allocated entry");
  }
}

int refuse_allocation(int code, ptl_pt_index_t requested, const ptl_ni_limits_t& limits) noexcept {
  switch (code) {
    case PTL_PT_IN_USE:
      return refuse(code, pt_alloc, "pt_index_req", requested, "must name an entry that is free");
    case PTL_PT_FULL:
      return refuse(code, pt_alloc, "max_pt_index", static_cast<uint64_t>(limits.max_pt_index),
                    "all entries up to that one are allocated");
    default:
      return refuse(code, pt_alloc, "pt_index_req", requested, "there is no memory for the entry");
  }
}
}  // namespace

extern "C" {

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
               ptl_pt_index_t pt_index_req, ptl_pt_index_t* pt_index) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(pt_alloc, ni_handle);
  if (pt_index == nullptr) return refuse_null(pt_alloc, "pt_index");
  look_for_drivers();
  if ((options & ~portal_options) != 0)
    return refuse_bits(PTL_ARG_INVALID, pt_alloc, "options", options,
                       "must consist of options of portal table entries");
  if ((options & PTL_LINTEL_PT_HOLD) != 0 && (options & PTL_PT_FLOWCTRL) != 0)
    return refuse_bits(PTL_ARG_INVALID, pt_alloc, "options", options,
                       "must not have both PTL_PT_FLOWCTRL and PTL_LINTEL_PT_HOLD");
  EventQueueObject* event_queue = nullptr;
  if (!resolve_optional_event_queue(*interface, eq_handle, &event_queue))
    return refuse_handle(pt_alloc, "eq_handle", eq_handle, HandleType::event_queue);
  if (pt_index_req != PTL_PT_ANY &&
      pt_index_req > static_cast<ptl_pt_index_t>(interface->limits().max_pt_index))
    return refuse(PTL_ARG_INVALID, pt_alloc, "pt_index_req", pt_index_req,
                  "must be PTL_PT_ANY or at most max_pt_index, see 3.6.1");
  if ((options & PTL_PT_FLOWCTRL) != 0 && event_queue == nullptr)
    return refuse_bits(PTL_PT_EQ_NEEDED, pt_alloc, "options", options,
                       "PTL_PT_FLOWCTRL must come with an event queue");
  const int code = allocate_portal(*interface, options, event_queue, pt_index_req, pt_index);
  return code == PTL_OK ? code : refuse_allocation(code, pt_index_req, interface->limits());
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(pt_free, ni_handle);
  const int code = poll_before_refusal(interface->physical(), PTL_PT_IN_USE,
                                       [&] { return free_portal(*interface, pt_index); });
  return code == PTL_OK ? code : refuse_entry(code, pt_free, pt_index);
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(pt_disable, ni_handle);
  const int code = set_portal_enabled(*interface, pt_index, false);
  if (code != PTL_OK) return refuse_entry(code, pt_disable, pt_index);
  // PtlAbort ends waits for events, but not this wait: it lasts as long as deliveries in progress
  // (spec 3.7.3).
  const auto quiet = [&] { return portal_is_quiet(*interface, pt_index); };
  while (!quiet()) interface->physical().wait_until(quiet, now_ns() + 1'000'000);
  // A message is counted after the lock has been released.
  interface->physical().poller().token().finish_round();
  return PTL_OK;
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(pt_enable, ni_handle);
  const int code = set_portal_enabled(*interface, pt_index, true);
  return code == PTL_OK ? code : refuse_entry(code, pt_enable, pt_index);
}

}  // extern "C"
