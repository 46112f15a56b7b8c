// Appends, unlinks and searches. Message path for appends; the lock of the portal table entry
// orders them with arriving messages.
#include "core/objects/list_operations.h"

#include <mutex>
#include <optional>

#include "core/objects/delivery.h"

namespace lintel {

namespace {

[[gnu::always_inline]] inline void set_criteria(const NetworkInterface& interface,
                                                const ptl_me_t& entry,
                                                MatchCriteria& criteria) noexcept {
  if (!interface.matching()) {
    criteria = {.ignore_bits = ~uint64_t{0}};
    return;
  }
  // Ignored bits are cleared, so that entries that ask for the same have the same key.
  criteria.ignore_bits = entry.ignore_bits;
  criteria.match_bits = entry.match_bits & ~entry.ignore_bits;
  if (interface.logical()) {
    const bool any = entry.match_id.rank == PTL_RANK_ANY;
    criteria.source_mask = any ? source_mask_any : source_mask_exact;
    criteria.source = any ? 0 : source_of_rank(entry.match_id.rank);
  } else {
    criteria.source_mask = (entry.match_id.phys.nid != PTL_NID_ANY ? source_mask_nid : 0) |
                           (entry.match_id.phys.pid != PTL_PID_ANY ? source_mask_pid : 0);
    criteria.source =
        source_of({entry.match_id.phys.nid, entry.match_id.phys.pid}) & criteria.source_mask;
  }
}

// Takes the header out of the unexpected list for the new entry that matched it. Its overflow event
// follows at once, or when its data have arrived (spec 2.5).
void claim_header(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header,
                  ListEntry& entry) noexcept {
  portal.unexpected.remove(header);
  if (header.arriving) {
    header.claimed = true;
    interface.unexpected_headers().links_of(header).claimant = &entry;
    ++entry.operations;
    return;
  }
  report_overflow(interface, portal, header, entry);
}

// The first unexpected header that a new entry with PTL_ME_USE_ONCE matches ends it.
bool claim_first(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry) noexcept {
  UnexpectedHeader* const header = portal.unexpected.find_first(entry.criteria);
  if (header == nullptr) return false;
  claim_header(interface, portal, *header, entry);
  return true;
}

// Searches the unexpected list for a new persistent entry that is linked already. True: the entry
// is used up.
bool claim_all(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry) noexcept {
  UnexpectedList::Matches matches(portal.unexpected, entry.criteria);
  while (UnexpectedHeader* header = matches.next()) {
    const uint64_t rlength = header->rlength;
    claim_header(interface, portal, *header, entry);
    // Locally managed entries may account for what they have missed (spec 3.12.2).
    if (entry.has(PTL_ME_LOCAL_INC_UH_RLENGTH) && entry.has(PTL_ME_MANAGE_LOCAL)) {
      const uint64_t length = entry.region.length();
      entry.local_offset =
          rlength > length - entry.local_offset ? length : entry.local_offset + rlength;
      if (entry_is_used_up(entry)) return true;
    }
  }
  return false;
}

// The end of an append of which nothing remains.
int refuse(NetworkInterface& interface, ListEntry& entry, int code) noexcept {
  free_entry(interface, entry, true);
  return code;
}

// Puts an entry on its list (portal lock held).
[[gnu::always_inline]] inline int link_entry(NetworkInterface& interface, PortalEntry& portal,
                                             ListEntry& entry) noexcept {
  MatchList& list = entry.list == PTL_PRIORITY_LIST ? portal.priority : portal.overflow;
  if (list.size() >= static_cast<size_t>(interface.limits().max_list_size)) [[unlikely]]
    return PTL_LIST_TOO_LONG;
  if (!list.append(entry)) [[unlikely]]
    return PTL_NO_SPACE;
  entry.state = EntryState::linked;
  return PTL_OK;
}

void post_link_event(PortalEntry& portal, const ListEntry& entry) noexcept {
  if (portal.event_queue != nullptr && !entry.has(PTL_ME_EVENT_LINK_DISABLE))
    portal.event_queue->queue.post(describe_entry(portal, entry, PTL_EVENT_LINK));
}

// An append to the priority list while there are unexpected headers (portal lock held).
[[gnu::noinline]] int append_and_claim(NetworkInterface& interface, PortalEntry& portal,
                                       ListEntry& entry) noexcept {
  if (entry.has(PTL_ME_USE_ONCE)) {
    if (claim_first(interface, portal, entry)) {
      // The entry ends without having been linked (spec 3.13.1, PTL_EVENT_AUTO_UNLINK).
      entry.state = EntryState::unlinked;
      entry.unlink_announced = false;
      ++portal.retained;
      settle_entry(interface, portal, entry, false);
      return PTL_OK;
    }
    if (const int code = link_entry(interface, portal, entry); code != PTL_OK)
      return refuse(interface, entry, code);
  } else {
    // Headers are claimed when the entry can no longer be refused.
    if (const int code = link_entry(interface, portal, entry); code != PTL_OK)
      return refuse(interface, entry, code);
    if (claim_all(interface, portal, entry)) {
      unlink_entry(portal, entry);
      settle_entry(interface, portal, entry, false);
      return PTL_OK;
    }
  }
  post_link_event(portal, entry);
  return PTL_OK;
}

// The entry lives from now on; nullptr: there is no room for one.
[[gnu::always_inline]] inline ListEntry* allocate_entry(NetworkInterface& interface,
                                                        uint64_t* handle) noexcept {
  const uint32_t index = interface.entries().allocate();
  if (index == Arena<ListEntry>::no_index) [[unlikely]]
    return nullptr;
  ListEntry& entry = interface.entries().at(index);
  // Nobody else changes the generation of an entry that is not in use.
  const uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1;
  entry.generation.store(generation, std::memory_order_relaxed);
  *handle = interface.handle_of_entry(generation, index);
  return &entry;
}

[[gnu::always_inline]] inline int append(NetworkInterface& interface, ListEntry& entry,
                                         const EntryArguments& arguments,
                                         ptl_list_t list) noexcept {
  PortalEntry* const portal = interface.portal(arguments.pt_index);
  const ptl_me_t& given = arguments.entry;
  entry.list = list;
  entry.options = given.options;
  entry.uid = given.uid;
  entry.operations = 0;
  entry.unexpected_headers = 0;
  entry.local_offset = 0;
  entry.min_free = interface.matching() ? given.min_free : 0;
  entry.user_ptr = arguments.user_ptr;
  entry.counter = arguments.counter;
  set_criteria(interface, given, entry.criteria);
  if (portal == nullptr ||
      !entry.region.open(given.start, given.length, (given.options & PTL_IOVEC) != 0,
                         (given.options & PTL_ME_IS_ACCESSIBLE) != 0)) [[unlikely]]
    return refuse(interface, entry, PTL_ARG_INVALID);

  const bool ends_with_event =
      (given.options & (PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE)) == PTL_ME_USE_ONCE;
  entry.takes_plain_puts =
      list == PTL_PRIORITY_LIST && !ends_with_event &&
      (given.options & (PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_IOVEC)) == PTL_ME_OP_PUT;

  std::optional<TriggerHold> hold;  // of the counts of claimed headers; ends after the lock
  std::lock_guard guard(portal->lock);
  if (!portal->allocated) [[unlikely]]
    return refuse(interface, entry, PTL_ARG_INVALID);
  if (list == PTL_PRIORITY_LIST && !portal->unexpected.empty()) {
    hold.emplace();
    return append_and_claim(interface, *portal, entry);
  }
  if (const int code = link_entry(interface, *portal, entry); code != PTL_OK) [[unlikely]]
    return refuse(interface, entry, code);
  post_link_event(*portal, entry);
  return PTL_OK;
}

// The call that posted a triggered append returned before: only an event can report the failure
// (spec 3.13.1, PTL_EVENT_ERROR).
void report_failed_append(NetworkInterface& interface, const EntryArguments& arguments,
                          ptl_list_t list) noexcept {
  PortalEntry* const portal = interface.portal(arguments.pt_index);
  if (portal == nullptr) return;
  std::lock_guard guard(portal->lock);
  if (!portal->allocated || portal->event_queue == nullptr) return;
  ptl_event_t event{};
  event.type = PTL_EVENT_ERROR;
  event.user_ptr = arguments.user_ptr;
  event.pt_index = portal->index;
  event.ptl_list = list;
  event.start = arguments.entry.start;
  event.ni_fail_type = PTL_NI_UNDELIVERABLE;
  portal->event_queue->queue.post(event);
}

// The slot of a triggered append that was neither performed nor cancelled. The caller does one of
// the two.
ListEntry* take_reserved(NetworkInterface& interface, const HandleFields& handle) noexcept {
  ListEntry* const entry = interface.entry_slot(handle.index);
  uint32_t generation = handle.generation;
  return entry != nullptr && generation_is_live(generation) &&
                 entry->reserved_for.compare_exchange_strong(generation, 0)
             ? entry
             : nullptr;
}

}  // namespace

int reserve_entry(NetworkInterface& interface, uint32_t pt_index, uint64_t* handle) noexcept {
  ListEntry* const entry = allocate_entry(interface, handle);
  if (entry == nullptr) return PTL_NO_SPACE;
  entry->pt_index = static_cast<uint16_t>(pt_index);
  entry->reserved_for.store(decode_handle(*handle).generation, std::memory_order_release);
  return PTL_OK;
}

int append_entry(NetworkInterface& interface, const EntryArguments& arguments, ptl_list_t list,
                 uint64_t* handle) noexcept {
  ListEntry* const entry = allocate_entry(interface, handle);
  if (entry == nullptr) [[unlikely]]
    return PTL_NO_SPACE;
  entry->pt_index = static_cast<uint16_t>(arguments.pt_index);
  return append(interface, *entry, arguments, list);
}

int append_reserved(NetworkInterface& interface, const HandleFields& handle,
                    const EntryArguments& arguments, ptl_list_t list) noexcept {
  ListEntry* const entry = take_reserved(interface, handle);
  if (entry == nullptr) return PTL_OK;
  const int code = append(interface, *entry, arguments, list);
  if (code != PTL_OK) report_failed_append(interface, arguments, list);
  return code;
}

bool cancel_reserved(NetworkInterface& interface, const HandleFields& handle) noexcept {
  ListEntry* const entry = take_reserved(interface, handle);
  if (entry == nullptr) return false;
  free_entry(interface, *entry, true);
  return true;
}

int unlink_by_handle(NetworkInterface& interface, const HandleFields& handle) noexcept {
  ListEntry* entry = interface.entry_slot(handle.index);
  if (entry == nullptr) return PTL_ARG_INVALID;
  if (entry->reserved_for.load(std::memory_order_relaxed) != 0 &&
      cancel_reserved(interface, handle))
    return PTL_OK;
  for (;;) {
    const uint32_t generation = entry->generation.load(std::memory_order_acquire);
    if ((generation & handle_generation_mask) != handle.generation) {
      // A handle of the past: the entry has unlinked itself, and the caller could not know
      // (spec 3.11.3). Only if this thread's own unlink ended it is it an error.
      const bool was_alive = generation_is_live(handle.generation) &&
                             ((generation - handle.generation) & handle_generation_mask) <
                                 (handle_generation_mask >> 1);
      if (!was_alive) return PTL_ARG_INVALID;
      const bool last_use = ((generation - handle.generation) & handle_generation_mask) == 1;
      return last_use && entry->unlinked_by_call ? PTL_ARG_INVALID : PTL_IN_USE;
    }
    PortalEntry* portal = interface.portal(entry->pt_index);
    if (portal == nullptr) return PTL_IN_USE;  // a triggered append that is being refused
    std::lock_guard guard(portal->lock);
    if (entry->generation.load(std::memory_order_relaxed) != generation) continue;
    if (entry->state != EntryState::linked || entry->operations != 0 ||
        entry->unexpected_headers != 0)
      return PTL_IN_USE;
    (entry->list == PTL_PRIORITY_LIST ? portal->priority : portal->overflow).remove(*entry);
    free_entry(interface, *entry, true);
    return PTL_OK;
  }
}

int search_unexpected(NetworkInterface& interface, const EntryArguments& arguments,
                      ptl_search_op_t operation) noexcept {
  PortalEntry* portal = interface.portal(arguments.pt_index);
  if (portal == nullptr) return PTL_ARG_INVALID;
  const ptl_me_t& given = arguments.entry;
  const unsigned options = given.options;
  const bool once = (options & PTL_ME_USE_ONCE) != 0;
  MatchCriteria criteria;
  set_criteria(interface, given, criteria);

  TriggerHold hold;
  std::lock_guard guard(portal->lock);
  if (!portal->allocated) return PTL_ARG_INVALID;
  const CountAnnouncement announcement(arguments.counter);
  const bool tells = portal->event_queue != nullptr && (options & PTL_ME_EVENT_COMM_DISABLE) == 0;
  UnexpectedList::Matches matches(portal->unexpected, criteria);
  while (UnexpectedHeader* header = matches.next()) {
    // A search ends before this message: all its events must be posted before it returns.
    if (header->arriving) break;
    if (operation == PTL_SEARCH_DELETE) {
      portal->unexpected.remove(*header);
      report_overflow(interface, *portal, *header,
                      {options, arguments.user_ptr, arguments.counter, true});
    } else {
      if (tells && (options & PTL_ME_EVENT_SUCCESS_DISABLE) == 0) {
        ptl_event_t event =
            describe_unexpected(interface, *portal, *header, PTL_EVENT_SEARCH, arguments.user_ptr);
        event.ni_fail_type = PTL_NI_OK;  // the search itself succeeded
        portal->event_queue->queue.post(event);
      }
      if (arguments.counter != nullptr) arguments.counter->add_success(1);
    }
    if (once) return PTL_OK;
  }
  // Nothing (more) matches (spec 3.11.4, 3.12.4).
  if (tells) {
    ptl_event_t event{};
    event.type = PTL_EVENT_SEARCH;
    event.user_ptr = arguments.user_ptr;
    event.pt_index = arguments.pt_index;
    event.ni_fail_type = PTL_NI_NO_MATCH;
    event.ptl_list = PTL_OVERFLOW_LIST;
    portal->event_queue->queue.post(event);
  }
  if (arguments.counter != nullptr) arguments.counter->add_failure(1);
  return PTL_OK;
}

}  // namespace lintel
