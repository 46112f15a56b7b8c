#include <cinttypes>

#include "core/objects/append_entry.h"
#include "core/objects/list_operations.h"
#include "util/guarded_memory.h"
#include "util/lock.h"
#include "util/log.h"

namespace lintel {

namespace {

struct Failure {
  ptl_ni_fail_t kind;
  const char* reason;
};

// The slot of an append that was neither performed nor cancelled. The caller does one of the two.
ListEntry* take_reserved(NetworkInterface& interface, const HandleFields& handle) noexcept {
  ListEntry* const entry = interface.entry_slot(handle.index);
  uint32_t generation = handle.generation;
  return entry != nullptr && generation_is_live(generation) &&
                 entry->reserved_for.compare_exchange_strong(generation, 0)
             ? entry
             : nullptr;
}

// The call returned before: only an event and a count can report the failure (spec 3.13.1,
// PTL_EVENT_ERROR; 3.14.1).
[[gnu::cold]] void report_failed_append(NetworkInterface& interface,
                                        const TriggeredEntry& arguments, CountingEvent* counter,
                                        const Failure& failure) noexcept {
  log_message(LogLevel::error,
              "PtlTriggeredMEAppend to portal table entry %u failed at its threshold: %s "
              "(user_ptr 0x%" PRIxPTR ")",
              arguments.pt_index, failure.reason, reinterpret_cast<uintptr_t>(arguments.user_ptr));
  if (PortalEntry* const portal = interface.portal(arguments.pt_index); portal != nullptr) {
    const LockGuard guard(portal->lock);
    if (portal->allocated && portal->event_queue != nullptr) {
      ptl_event_t event{};
      event.type = PTL_EVENT_ERROR;
      event.user_ptr = arguments.user_ptr;
      event.pt_index = portal->index;
      event.ptl_list = arguments.list;
      event.ni_fail_type = failure.kind;
      portal->event_queue->queue.post(event);
    }
  }
  if (counter != nullptr) counter->add_failure(1);
}

const char* reason_of(int code) noexcept {
  return code == PTL_LIST_TOO_LONG
             ? "max_list_size entries are on the list"
             : "the portal table entry must be allocated, and elements of PTL_IOVEC readable";
}

}  // namespace

int reserve_entry(NetworkInterface& interface, uint32_t pt_index, uint64_t* handle) noexcept {
  ListEntry* const entry = allocate_entry(interface, handle);
  if (entry == nullptr) return PTL_NO_SPACE;
  entry->pt_index = static_cast<uint16_t>(pt_index);
  entry->reserved_for.store(decode_handle(*handle).generation, std::memory_order_release);
  return PTL_OK;
}

void append_reserved(NetworkInterface& interface, const TriggeredEntry& arguments) noexcept {
  ListEntry* const entry = take_reserved(interface, decode_handle(arguments.handle));
  if (entry == nullptr) return;
  // The counter that the description named at the call counts what the present one cannot.
  CountingEvent* counter = interface.find_counter(arguments.failures);
  const auto refuse = [&](const Failure& failure) {
    [[maybe_unused]] const int code = drop_entry(interface, *entry, PTL_ARG_INVALID);
    report_failed_append(interface, arguments, counter, failure);
  };
  ptl_me_t description;
  if (!guarded_copy(&description, arguments.description, sizeof description))
    return refuse({PTL_NI_SEGV, "*me cannot be read, and must stay until the entry is linked"});
  if (!entry_options_are_valid(interface, interface.matching(), description))
    return refuse({PTL_NI_UNDELIVERABLE, "the options or the length in *me are invalid by then"});
  CountingEvent* const counted = interface.find_counter(description.ct_handle);
  if (counted == nullptr && description.ct_handle != PTL_CT_NONE)
    return refuse({PTL_NI_UNDELIVERABLE, "ct_handle in *me names no counting event by then"});
  PortalEntry* const portal = interface.portal(arguments.pt_index);
  if (portal == nullptr) return refuse({PTL_NI_UNDELIVERABLE, reason_of(PTL_ARG_INVALID)});
  counter = (description.options & counting_options) != 0 ? counted : nullptr;
  const int code =
      append_to(interface, *portal, *entry,
                {description, counted, arguments.pt_index, arguments.user_ptr}, arguments.list);
  if (code != PTL_OK)
    report_failed_append(interface, arguments, counter, {PTL_NI_UNDELIVERABLE, reason_of(code)});
}

bool cancel_reserved(NetworkInterface& interface, const HandleFields& handle) noexcept {
  ListEntry* const entry = take_reserved(interface, handle);
  if (entry == nullptr) return false;
  free_entry(interface, *entry, true);
  return true;
}

}  // namespace lintel
