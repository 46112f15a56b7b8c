// List entries and match list entries (spec 3.11, 3.12). Message path for appends.
#include <atomic>

#include "api/refusal.h"
#include "api/resolve.h"
#include "core/objects/append_entry.h"
#include "core/objects/list_operations.h"
#include "portals4.h"
#include "util/log.h"

using namespace lintel;
using namespace lintel::api;

namespace {

constexpr const char* list_rule = "must be PTL_PRIORITY_LIST or PTL_OVERFLOW_LIST";
constexpr Call le_append{"PtlLEAppend", "spec 3.11.2"};
constexpr Call le_unlink{"PtlLEUnlink", "spec 3.11.3"};
constexpr Call le_search{"PtlLESearch", "spec 3.11.4"};
constexpr Call me_append{"PtlMEAppend", "spec 3.12.2"};
constexpr Call me_unlink{"PtlMEUnlink", "spec 3.12.3"};
constexpr Call me_search{"PtlMESearch", "spec 3.12.4"};
constexpr Call triggered_me_append{"PtlTriggeredMEAppend", "spec 3.12.2, 3.16"};
constexpr Call triggered_me_unlink{"PtlTriggeredMEUnlink", "spec 3.12.3, 3.16"};

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

// Legal, and probably not meant. Searches count whatever the options (spec 3.11.4).
[[gnu::cold, gnu::noinline]] void warn_of_counting(bool has_counter) noexcept {
  static std::atomic<bool> said_uncounted{false};
  static std::atomic<bool> said_no_counter{false};
  if (has_counter)
    log_once(said_uncounted, LogLevel::warn,
             "an entry has a ct_handle, but neither PTL_ME_EVENT_CT_COMM nor "
             "PTL_ME_EVENT_CT_OVERFLOW (spec 3.11.1, 3.12.1): nothing will be counted");
  else
    log_once(said_no_counter, LogLevel::warn,
             "an entry has PTL_ME_EVENT_CT_COMM or PTL_ME_EVENT_CT_OVERFLOW, but its ct_handle is "
             "PTL_CT_NONE (spec 3.11.1, 3.12.1): nothing will be counted");
}

// Does not check the portal table index.
[[gnu::always_inline]] inline bool entry_is_valid(const NetworkInterface& interface, bool matching,
                                                  const ptl_me_t& entry,
                                                  CountingEvent** counter) noexcept {
  return entry_options_are_valid(interface, matching, entry) &&
         resolve_optional_counter(interface, entry.ct_handle, counter);
}

bool arguments_are_valid(const NetworkInterface& interface, const ptl_me_t& entry,
                         ptl_pt_index_t pt_index, CountingEvent** counter) noexcept {
  return pt_index <= static_cast<ptl_pt_index_t>(interface.limits().max_pt_index) &&
         entry_is_valid(interface, interface.matching(), entry, counter);
}

int refuse_index(const Call& call, ptl_pt_index_t pt_index) noexcept {
  return refuse(PTL_ARG_INVALID, call, "pt_index", pt_index,
                "must be at most max_pt_index, see 3.6.1");
}

// Refuses arguments for which arguments_are_valid() is false.
[[gnu::cold, gnu::noinline]] int refuse_arguments(const Call& call,
                                                  const NetworkInterface& interface,
                                                  ptl_pt_index_t pt_index, unsigned options,
                                                  ptl_size_t length,
                                                  ptl_handle_ct_t ct_handle) noexcept {
  if ((options & ~entry_options(interface.matching())) != 0)
    return refuse_bits(PTL_ARG_INVALID, call, "options", options,
                       interface.matching() ? "must consist of options of entries, see 3.12.1"
                                            : "must consist of options of entries, see 3.11.1");
  if (pt_index > static_cast<ptl_pt_index_t>(interface.limits().max_pt_index))
    return refuse_index(call, pt_index);
  if ((options & PTL_IOVEC) != 0 && length > static_cast<ptl_size_t>(interface.limits().max_iovecs))
    return refuse(PTL_ARG_INVALID, call, "length", length,
                  "must be at most max_iovecs with PTL_IOVEC, see 3.6.1");
  return refuse_handle(call, "ct_handle", ct_handle, HandleType::counter);
}

// Reports a `code` of the core, which is not PTL_OK, with the argument concerned.
[[gnu::cold, gnu::noinline]] int refuse_entry(int code, const Call& call,
                                              const NetworkInterface& interface,
                                              ptl_pt_index_t pt_index) noexcept {
  const ptl_ni_limits_t& limits = interface.limits();
  switch (code) {
    case PTL_NO_SPACE:
      return refuse(code, call, "max_entries", static_cast<uint64_t>(limits.max_entries),
                    "that many entries exist");
    case PTL_LIST_TOO_LONG:
      return refuse(code, call, "max_list_size", static_cast<uint64_t>(limits.max_list_size),
                    "that many entries are on the list");
    default:
      if (pt_index > static_cast<ptl_pt_index_t>(limits.max_pt_index))
        return refuse_index(call, pt_index);
      return refuse(code, call, "pt_index", pt_index,
                    "must name an allocated portal table entry; with PTL_IOVEC, start must point "
                    "to readable elements");
  }
}

[[gnu::always_inline]] inline int append(const Call& call, NetworkInterface& interface,
                                         bool matching, ptl_pt_index_t pt_index,
                                         const ptl_me_t& entry, ptl_list_t list, void* user_ptr,
                                         ptl_handle_any_t* handle) noexcept {
  CountingEvent* counter = nullptr;
  if (handle == nullptr) [[unlikely]]
    return refuse_null(call, matching ? "me_handle" : "le_handle");
  if (list != PTL_PRIORITY_LIST && list != PTL_OVERFLOW_LIST) [[unlikely]]
    return refuse(PTL_ARG_INVALID, call, "ptl_list", list, list_rule);
  if (!entry_is_valid(interface, matching, entry, &counter)) [[unlikely]]
    return refuse_arguments(call, interface, pt_index, entry.options, entry.length,
                            entry.ct_handle);
  if ((counter != nullptr) != ((entry.options & counting_options) != 0)) [[unlikely]]
    warn_of_counting(counter != nullptr);
  const int code =
      append_entry(interface, matching, {entry, counter, pt_index, user_ptr}, list, handle);
  return code == PTL_OK ? code : refuse_entry(code, call, interface, pt_index);
}

int search(const Call& call, NetworkInterface& interface, ptl_pt_index_t pt_index,
           const ptl_me_t& entry, ptl_search_op_t operation, void* user_ptr) noexcept {
  const LongCall running(interface_index_of(interface.handle()));
  CountingEvent* counter = nullptr;
  if (operation != PTL_SEARCH_ONLY && operation != PTL_SEARCH_DELETE)
    return refuse(PTL_ARG_INVALID, call, "ptl_search_op", operation,
                  "must be PTL_SEARCH_ONLY or PTL_SEARCH_DELETE");
  if (!arguments_are_valid(interface, entry, pt_index, &counter))
    return refuse_arguments(call, interface, pt_index, entry.options, entry.length,
                            entry.ct_handle);
  const int code = search_unexpected(interface, {entry, counter, pt_index, user_ptr}, operation);
  return code == PTL_OK ? code : refuse_entry(code, call, interface, pt_index);
}

// Returns nullptr if the handle is not one of an interface of this kind.
[[gnu::always_inline]] inline NetworkInterface* find_interface_of_kind(ptl_handle_ni_t handle,
                                                                       bool matching) noexcept {
  NetworkInterface* interface = find_interface(handle);
  return interface != nullptr && interface->matching() == matching ? interface : nullptr;
}

// Refuses a call whose handle find_interface_of_kind() did not find.
[[gnu::cold, gnu::noinline]] int refuse_interface(const Call& call, ptl_handle_ni_t handle,
                                                  bool matching) noexcept {
  if (find_interface(handle) == nullptr) return refuse_interface_handle(call, handle);
  return refuse_bits(PTL_ARG_INVALID, call, "ni_handle", handle,
                     matching ? "must be of an interface with PTL_NI_MATCHING"
                              : "must be of an interface with PTL_NI_NO_MATCHING");
}

[[gnu::cold, gnu::noinline]] int refuse_unlink(const Call& call, NetworkInterface& interface,
                                               ptl_handle_any_t handle,
                                               UnlinkResult result) noexcept {
  switch (result) {
    case UnlinkResult::in_use:
      return refuse_expected(PTL_IN_USE, call, "handle", handle,
                             "messages or unexpected headers refer to the entry: repeat the call");
    case UnlinkResult::ended:
      // Required before the next append, permitted after it. Programs that repeat the call until
      // the entry is not in use must come to an end without an append, too.
      if (tell_end(interface, decode_handle(handle)))
        return refuse_expected(PTL_IN_USE, call, "handle", handle, "the entry has unlinked itself");
      return refuse_expected(PTL_ARG_INVALID, call, "handle", handle,
                             "the entry has ended, and no event of it follows");
    default:
      return refuse_handle(call, "handle", handle, HandleType::entry);
  }
}

int unlink(const Call& call, ptl_handle_any_t handle, bool matching) noexcept {
  const LongCall running(interface_index_of(handle));
  const HandleFields fields = decode_handle(handle);
  NetworkInterface* interface = fields.type == HandleType::entry ? interface_of(fields) : nullptr;
  if (interface == nullptr || interface->matching() != matching)
    return refuse_handle(call, "handle", handle, HandleType::entry);
  UnlinkResult result{};
  const int code = poll_before_refusal(interface->physical(), PTL_IN_USE, [&] {
    result = unlink_by_handle(*interface, fields);
    return result == UnlinkResult::in_use ? PTL_IN_USE : PTL_OK;
  });
  // A message is counted after the lock of the portal table entry has been released.
  if (code == PTL_OK) interface->physical().poller().token().finish_round();
  return result == UnlinkResult::unlinked ? PTL_OK
                                          : refuse_unlink(call, *interface, handle, result);
}

}  // namespace

extern "C" {

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                ptl_list_t ptl_list, void* user_ptr, ptl_handle_le_t* le_handle) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, false);
  if (interface == nullptr) [[unlikely]]
    return refuse_interface(le_append, ni_handle, false);
  if (le == nullptr) [[unlikely]]
    return refuse_null(le_append, "le");
  return append(le_append, *interface, false, pt_index, as_match_entry(*le), ptl_list, user_ptr,
                le_handle);
}

int PtlLEUnlink(ptl_handle_le_t le_handle) noexcept { return unlink(le_unlink, le_handle, false); }

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                ptl_search_op_t ptl_search_op, void* user_ptr) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, false);
  if (interface == nullptr) return refuse_interface(le_search, ni_handle, false);
  if (le == nullptr) return refuse_null(le_search, "le");
  return search(le_search, *interface, pt_index, as_match_entry(*le), ptl_search_op, user_ptr);
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                ptl_list_t ptl_list, void* user_ptr, ptl_handle_me_t* me_handle) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, true);
  if (interface == nullptr) [[unlikely]]
    return refuse_interface(me_append, ni_handle, true);
  if (me == nullptr) [[unlikely]]
    return refuse_null(me_append, "me");
  return append(me_append, *interface, true, pt_index, *me, ptl_list, user_ptr, me_handle);
}

int PtlMEUnlink(ptl_handle_me_t me_handle) noexcept { return unlink(me_unlink, me_handle, true); }

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                ptl_search_op_t ptl_search_op, void* user_ptr) noexcept {
  NetworkInterface* interface = find_interface_of_kind(ni_handle, true);
  if (interface == nullptr) return refuse_interface(me_search, ni_handle, true);
  if (me == nullptr) return refuse_null(me_search, "me");
  return search(me_search, *interface, pt_index, *me, ptl_search_op, user_ptr);
}

int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t* me,
                         ptl_list_t ptl_list, void* user_ptr, ptl_handle_me_t* me_handle,
                         ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) noexcept {
  const Call& call = triggered_me_append;
  NetworkInterface* interface = find_interface_of_kind(ni_handle, true);
  if (interface == nullptr) return refuse_interface(call, ni_handle, true);
  if (me == nullptr) return refuse_null(call, "me");
  if (me_handle == nullptr) return refuse_null(call, "me_handle");
  const CounterOfInterface trigger = resolve_counter(trig_ct_handle);
  if (trigger.counter == nullptr || trigger.interface != interface)
    return refuse_handle(call, "trig_ct_handle", trig_ct_handle, HandleType::counter);
  if (ptl_list != PTL_PRIORITY_LIST && ptl_list != PTL_OVERFLOW_LIST)
    return refuse(PTL_ARG_INVALID, call, "ptl_list", ptl_list, list_rule);
  CountingEvent* counter = nullptr;
  if (!arguments_are_valid(*interface, *me, pt_index, &counter))
    return refuse_arguments(call, *interface, pt_index, me->options, me->length, me->ct_handle);
  const uint32_t index = interface->triggered_operations().allocate();
  if (index == Arena<TriggeredOperation>::no_index)
    return refuse_triggered(call, interface->limits().max_triggered_ops);
  if (const int code = reserve_entry(*interface, pt_index, me_handle); code != PTL_OK) {
    interface->triggered_operations().release(index);
    return refuse_entry(code, call, *interface, pt_index);
  }
  TriggeredOperation& operation = interface->triggered_operations().at(index);
  operation.kind = TriggeredKind::me_append;
  operation.threshold = threshold;
  operation.entry = {
      .handle = *me_handle,
      .pt_index = pt_index,
      .list = ptl_list,
      .user_ptr = user_ptr,
      .description = me,
      .failures = (me->options & counting_options) != 0 ? me->ct_handle : PTL_CT_NONE};
  trigger.counter->attach(operation);
  return PTL_OK;
}

int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
                         ptl_size_t threshold) noexcept {
  const HandleFields fields = decode_handle(me_handle);
  NetworkInterface* interface = fields.type == HandleType::entry ? interface_of(fields) : nullptr;
  const CounterOfInterface trigger = resolve_counter(trig_ct_handle);
  if (interface == nullptr)
    return refuse_handle(triggered_me_unlink, "me_handle", me_handle, HandleType::entry);
  if (trigger.counter == nullptr || trigger.interface != interface)
    return refuse_handle(triggered_me_unlink, "trig_ct_handle", trig_ct_handle,
                         HandleType::counter);
  const uint32_t index = interface->triggered_operations().allocate();
  if (index == Arena<TriggeredOperation>::no_index)
    return refuse_triggered(triggered_me_unlink, interface->limits().max_triggered_ops);
  TriggeredOperation& operation = interface->triggered_operations().at(index);
  operation.kind = TriggeredKind::me_unlink;
  operation.threshold = threshold;
  operation.entry = {};
  operation.entry.handle = me_handle;
  trigger.counter->attach(operation);
  return PTL_OK;
}

}  // extern "C"
