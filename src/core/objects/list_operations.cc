// Unlinks, searches, appends that find unexpected headers. Message path for appends; the lock of
// the portal table entry orders them with arriving messages.
#include "core/objects/list_operations.h"

#include "core/objects/append_entry.h"
#include "util/assert.h"
#include "util/lock.h"

namespace lintel {

namespace {

// Takes the header out of the unexpected list for the new entry that matched it. Its overflow event
// follows at once, or when its data have arrived (spec 2.5).
void claim_header(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header,
                  ListEntry& entry) noexcept LINTEL_REQUIRES(portal.lock) {
  portal.unexpected.remove(header);
  if (header.arriving) {
    header.claimed = true;
    header.claimant = &entry;
    ++entry.operations;
    return;
  }
  report_overflow(interface, portal, header, entry);
}

// The first unexpected header that a new entry with PTL_ME_USE_ONCE matches ends it.
bool claim_first(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry) noexcept
    LINTEL_REQUIRES(portal.lock) {
  UnexpectedHeader* const header = portal.unexpected.find_first(entry.criteria);
  if (header == nullptr) return false;
  claim_header(interface, portal, *header, entry);
  return true;
}

// Searches the unexpected list for a new persistent entry that is linked already. True: the entry
// is used up.
bool claim_all(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry) noexcept
    LINTEL_REQUIRES(portal.lock) {
  UnexpectedList::Matches matches(portal.unexpected, entry.criteria);
  while (UnexpectedHeader* header = matches.next()) {
    const uint64_t rlength = interface.unexpected_headers().details_of(*header).rlength;
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

}  // namespace

void post_link_event(PortalEntry& portal, const ListEntry& entry) noexcept {
  if (portal.event_queue != nullptr)
    portal.event_queue->queue.post(describe_entry(portal, entry, PTL_EVENT_LINK));
}

ListEntry* allocate_entry(NetworkInterface& interface, uint64_t* handle) noexcept {
  interface.limit_spare_entries();
  uint32_t index = interface.entries().allocate();
  if (index == Arena<ListEntry>::no_index) {
    interface.release_spare_entries();
    index = interface.entries().allocate();
    if (index == Arena<ListEntry>::no_index) return nullptr;
  }
  ListEntry& entry = interface.entries().at(index);
  begin_entry(interface, entry, handle);
  return &entry;
}

int append_to(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry,
              const EntryArguments& arguments, ptl_list_t list) noexcept {
  describe(interface, interface.matching(), arguments, list, entry);
  if (!open_region(arguments.entry, entry)) return drop_entry(interface, entry, PTL_ARG_INVALID);
  portal.lock.lock();
  if (list == PTL_PRIORITY_LIST && !portal.unexpected.empty())
    return append_and_claim(interface, portal, entry);
  int code = PTL_ARG_INVALID;
  {
    const LockGuard guard(portal.lock, std::adopt_lock);
    if (portal.allocated) {
      code = link_entry(interface, list == PTL_PRIORITY_LIST ? portal.priority : portal.overflow,
                        entry);
      if (code == PTL_OK) {
        if (!entry.has(PTL_ME_EVENT_LINK_DISABLE)) post_link_event(portal, entry);
        interface.note_room();
        return PTL_OK;
      }
    }
  }
  return drop_entry(interface, entry, code);
}

int append_and_claim(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry) noexcept {
  const TriggerHold
      hold;  // postpones what the counts of claimed headers trigger until after unlock
  const LockGuard guard(portal.lock, std::adopt_lock);
  if (entry.has(PTL_ME_USE_ONCE)) {
    if (claim_first(interface, portal, entry)) {
      // The entry ends without having been linked (spec 3.13.1, PTL_EVENT_AUTO_UNLINK).
      entry.state = EntryState::unlinked;
      entry.unlink_announced = false;
      ++portal.retained;
      settle_entry(interface, portal, entry, false);
      return PTL_OK;
    }
    if (const int code = link_entry(interface, portal.priority, entry); code != PTL_OK)
      return drop_entry(interface, entry, code);
  } else {
    // Headers are claimed when the entry can no longer be refused.
    if (const int code = link_entry(interface, portal.priority, entry); code != PTL_OK)
      return drop_entry(interface, entry, code);
    if (claim_all(interface, portal, entry)) {
      unlink_entry(portal, entry);
      settle_entry(interface, portal, entry, false);
      return PTL_OK;
    }
  }
  if (!entry.has(PTL_ME_EVENT_LINK_DISABLE)) post_link_event(portal, entry);
  interface.note_room();
  return PTL_OK;
}

UnlinkResult unlink_by_handle(NetworkInterface& interface, const HandleFields& handle) noexcept {
  ListEntry* entry = interface.entry_slot(handle.index);
  if (entry == nullptr || !generation_is_live(handle.generation)) return UnlinkResult::invalid;
  if (entry->reserved_for.load(std::memory_order_relaxed) != 0 &&
      cancel_reserved(interface, handle))
    return UnlinkResult::unlinked;
  for (;;) {
    const uint32_t generation = entry->generation.load(std::memory_order_acquire);
    const uint32_t age = (generation - handle.generation) & handle_generation_mask;
    // Later uses of the slot began by appends, after which the handle may be invalid (spec 3.11.3).
    if (age != 0) return age == 1 ? UnlinkResult::ended : UnlinkResult::invalid;
    PortalEntry* portal = interface.portal(entry->pt_index);
    if (portal == nullptr) return UnlinkResult::in_use;  // a triggered append being refused
    const LockGuard guard(portal->lock);
    if (entry->generation.load(std::memory_order_relaxed) != generation) continue;
    if (entry->state != EntryState::linked || entry->operations != 0 ||
        entry->unexpected_headers != 0)
      return UnlinkResult::in_use;
    (entry->list == PTL_PRIORITY_LIST ? portal->priority : portal->overflow).remove(*entry);
    free_entry(interface, *entry, true);
    return UnlinkResult::unlinked;
  }
}

bool tell_end(NetworkInterface& interface, const HandleFields& handle) noexcept {
  ListEntry* const entry = interface.entry_slot(handle.index);
  LINTEL_ASSERT(entry != nullptr && generation_is_live(handle.generation));
  return entry->end_told_of.exchange(handle.generation, std::memory_order_relaxed) !=
         handle.generation;
}

int search_unexpected(NetworkInterface& interface, const EntryArguments& arguments,
                      ptl_search_op_t operation) noexcept {
  PortalEntry* portal = interface.portal(arguments.pt_index);
  if (portal == nullptr) return PTL_ARG_INVALID;
  const ptl_me_t& given = arguments.entry;
  const unsigned options = given.options;
  const bool once = (options & PTL_ME_USE_ONCE) != 0;
  MatchCriteria criteria;
  set_criteria(interface, interface.matching(), given, criteria);

  TriggerHold hold;
  const LockGuard guard(portal->lock);
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
  // No header matches, or no further one (spec 3.11.4, 3.12.4).
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
