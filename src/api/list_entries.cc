// List entries and match list entries (spec 3.11, 3.12). Message path for appends.
#include "api/in_use.h"
#include "api/resolve.h"
#include "core/objects/list_operations.h"
#include "portals4.h"

using namespace lintel;
using namespace lintel::api;

namespace {

constexpr unsigned common_options =
    PTL_IOVEC | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE |
    PTL_ME_IS_ACCESSIBLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
    PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_OVER_DISABLE |
    PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW |
    PTL_ME_EVENT_CT_BYTES;
constexpr unsigned matching_options =
    PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE | PTL_ME_MAY_ALIGN | PTL_ME_LOCAL_INC_UH_RLENGTH;

// The fields that an LE has, as an ME that matches everything.
ptl_me_t as_match_entry(const ptl_le_t& le) noexcept {
  ptl_me_t me{};
  me.start = le.start;
  me.length = le.length;
  me.ct_handle = le.ct_handle;
  me.uid = le.uid;
  me.options = le.options;
  me.ignore_bits = ~ptl_match_bits_t{0};
  return me;
}

bool arguments_are_valid(const NetworkInterface& interface, const ptl_me_t& entry,
                         ptl_pt_index_t pt_index, CountingEvent** counter) noexcept {
  const unsigned allowed = common_options | (interface.matching() ? matching_options : 0);
  if ((entry.options & ~allowed) != 0) return false;
  if (pt_index > static_cast<ptl_pt_index_t>(interface.limits().max_pt_index)) return false;
  if ((entry.options & PTL_IOVEC) != 0 &&
      entry.length > static_cast<ptl_size_t>(interface.limits().max_iovecs))
    return false;
  return resolve_optional_counter(interface, entry.ct_handle, counter);
}

[[gnu::always_inline]] inline int append(NetworkInterface& interface, ptl_pt_index_t pt_index,
                                         const ptl_me_t& entry, ptl_list_t list, void* user_ptr,
                                         ptl_handle_any_t* handle) noexcept {
  CountingEvent* counter = nullptr;
  if (handle == nullptr || (list != PTL_PRIORITY_LIST && list != PTL_OVERFLOW_LIST) ||
      !arguments_are_valid(interface, entry, pt_index, &counter))
    return PTL_ARG_INVALID;
  return append_entry(interface, {entry, counter, pt_index, user_ptr}, list, handle);
}

int search(NetworkInterface& interface, ptl_pt_index_t pt_index, const ptl_me_t& entry,
           ptl_search_op_t operation, void* user_ptr) noexcept {
  CountingEvent* counter = nullptr;
  if ((operation != PTL_SEARCH_ONLY && operation != PTL_SEARCH_DELETE) ||
      !arguments_are_valid(interface, entry, pt_index, &counter))
    return PTL_ARG_INVALID;
  return search_unexpected(interface, {entry, counter, pt_index, user_ptr}, operation);
}

// nullptr if the handle is not one of an interface of this kind.
[[gnu::always_inline]] inline NetworkInterface* find_interface_of_kind(ptl_handle_ni_t handle,
                                                                       bool matching) noexcept {
  NetworkInterface* interface = find_interface(handle);
  return interface != nullptr && interface->matching() == matching ? interface : nullptr;
}

int unlink(ptl_handle_any_t handle, bool matching) noexcept {
  const HandleFields fields = decode_handle(handle);
  NetworkInterface* interface = fields.type == HandleType::entry ? interface_of(fields) : nullptr;
  if (interface == nullptr || interface->matching() != matching) return code_of_bad_handle();
  const int code = poll_before_refusal(interface->physical(), PTL_IN_USE,
                                       [&] { return unlink_by_handle(*interface, fields); });
  // A message is counted after the lock of the portal table entry has been released.
  if (code == PTL_OK) interface->physical().poller().token().finish_round();
  return code;
}

}  // namespace

extern "C" {

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                ptl_list_t ptl_list, void* user_ptr, ptl_handle_le_t* le_handle) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, false);
  if (interface == nullptr || le == nullptr) [[unlikely]]
    return code_of_bad_handle();
  return append(*interface, pt_index, as_match_entry(*le), ptl_list, user_ptr, le_handle);
}

int PtlLEUnlink(ptl_handle_le_t le_handle) noexcept { return unlink(le_handle, false); }

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                ptl_search_op_t ptl_search_op, void* user_ptr) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, false);
  if (interface == nullptr || le == nullptr) return code_of_bad_handle();
  return search(*interface, pt_index, as_match_entry(*le), ptl_search_op, user_ptr);
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                ptl_list_t ptl_list, void* user_ptr, ptl_handle_me_t* me_handle) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, true);
  if (interface == nullptr || me == nullptr) [[unlikely]]
    return code_of_bad_handle();
  return append(*interface, pt_index, *me, ptl_list, user_ptr, me_handle);
}

int PtlMEUnlink(ptl_handle_me_t me_handle) noexcept { return unlink(me_handle, true); }

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                ptl_search_op_t ptl_search_op, void* user_ptr) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, true);
  if (interface == nullptr || me == nullptr) return code_of_bad_handle();
  return search(*interface, pt_index, *me, ptl_search_op, user_ptr);
}

int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t* me,
                         ptl_list_t ptl_list, void* user_ptr, ptl_handle_me_t* me_handle,
                         ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, true);
  CountingEvent* counter = nullptr;
  const CounterOfInterface trigger = resolve_counter(trig_ct_handle);
  if (interface == nullptr || me == nullptr || me_handle == nullptr || trigger.counter == nullptr ||
      trigger.interface != interface ||
      (ptl_list != PTL_PRIORITY_LIST && ptl_list != PTL_OVERFLOW_LIST) ||
      !arguments_are_valid(*interface, *me, pt_index, &counter))
    return code_of_bad_handle();
  const uint32_t index = interface->triggered_operations().allocate();
  if (index == Arena<TriggeredOperation>::no_index) return PTL_NO_SPACE;
  if (const int code = reserve_entry(*interface, pt_index, me_handle); code != PTL_OK) {
    interface->triggered_operations().release(index);
    return code;
  }
  TriggeredOperation& operation = interface->triggered_operations().at(index);
  operation.kind = TriggeredKind::me_append;
  operation.threshold = threshold;
  operation.entry = {ni_handle, *me_handle, pt_index, ptl_list, user_ptr, *me};
  trigger.counter->attach(operation);
  return PTL_OK;
}

int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
                         ptl_size_t threshold) noexcept {
  const HandleFields fields = decode_handle(me_handle);
  NetworkInterface* interface = fields.type == HandleType::entry ? interface_of(fields) : nullptr;
  const CounterOfInterface trigger = resolve_counter(trig_ct_handle);
  if (interface == nullptr || trigger.counter == nullptr || trigger.interface != interface)
    return code_of_bad_handle();
  const uint32_t index = interface->triggered_operations().allocate();
  if (index == Arena<TriggeredOperation>::no_index) return PTL_NO_SPACE;
  TriggeredOperation& operation = interface->triggered_operations().at(index);
  operation.kind = TriggeredKind::me_unlink;
  operation.threshold = threshold;
  operation.entry = {};
  operation.entry.handle = me_handle;
  trigger.counter->attach(operation);
  return PTL_OK;
}

}  // extern "C"
