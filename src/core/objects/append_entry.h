// Appends to the lists of a portal table entry (spec 3.11.2, 3.12.2). Inline: the common case is
// straight code in PtlMEAppend and PtlLEAppend. Message path; the lock of the portal table entry
// orders appends with arriving messages.
#pragma once

#include "core/objects/delivery.h"
#include "core/objects/list_operations.h"
#include "util/assert.h"
#include "util/lock.h"

namespace lintel {

[[gnu::always_inline]] inline void set_criteria(const NetworkInterface& interface, bool matching,
                                                const ptl_me_t& entry,
                                                MatchCriteria& criteria) noexcept {
  if (!matching) {
    criteria = {.ignore_bits = ~uint64_t{0}};
    return;
  }
  // Ignored bits are cleared, so that entries with the same criteria have the same key.
  criteria.ignore_bits = entry.ignore_bits;
  criteria.match_bits = entry.match_bits & ~entry.ignore_bits;
  if (interface.logical()) {
    const bool any = entry.match_id.rank == PTL_RANK_ANY;
    criteria.source_mask = any ? source_mask_any : source_mask_exact;
    criteria.source = any ? 0 : source_of_rank(entry.match_id.rank);
    return;
  }
  const auto [nid, pid] = entry.match_id.phys;
  criteria.source = source_of({nid, pid});
  criteria.source_mask = source_mask_exact;
  if (nid == PTL_NID_ANY || pid == PTL_PID_ANY) [[unlikely]] {
    criteria.source_mask =
        (nid != PTL_NID_ANY ? source_mask_nid : 0) | (pid != PTL_PID_ANY ? source_mask_pid : 0);
    criteria.source &= criteria.source_mask;
  }
}

// The entry lives from now on.
[[gnu::always_inline]] inline void begin_entry(NetworkInterface& interface, ListEntry& entry,
                                               uint64_t* handle) noexcept {
  // Nobody else changes the generation of an entry that is not in use.
  const uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1;
  entry.generation.store(generation, std::memory_order_relaxed);
  *handle = interface.handle_of_entry(generation, interface.entries().index_of(entry));
}

// The same for a slot that nobody holds; nullptr: there is none.
[[nodiscard]] ListEntry* allocate_entry(NetworkInterface& interface, uint64_t* handle) noexcept;

// The end of an append of which nothing remains. Returns `code`.
[[gnu::noinline, gnu::cold]] inline int drop_entry(NetworkInterface& interface, ListEntry& entry,
                                                   int code) noexcept {
  free_entry(interface, entry, true);
  return code;
}

// Puts an entry on its list.
[[gnu::always_inline]] inline int link_entry(NetworkInterface& interface, MatchList& list,
                                             ListEntry& entry) noexcept {
  if (list.size() >= static_cast<size_t>(interface.limits().max_list_size)) [[unlikely]]
    return PTL_LIST_TOO_LONG;
  list.append(entry);
  entry.state = EntryState::linked;
  return PTL_OK;
}

// The entry has not disabled it.
void post_link_event(PortalEntry& portal, const ListEntry& entry) noexcept
    LINTEL_REQUIRES(portal.lock);

// The rest of append_to() on the priority list while there are unexpected headers.
[[nodiscard]] int append_and_claim(NetworkInterface& interface, PortalEntry& portal,
                                   ListEntry& entry) noexcept LINTEL_RELEASE(portal.lock);

// Whether an entry in memory of the host takes plain puts.
[[nodiscard]] constexpr bool takes_plain_puts(unsigned options) noexcept {
  return (options & (PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE)) != PTL_ME_USE_ONCE &&
         (options & (PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_IOVEC)) == PTL_ME_OP_PUT;
}

[[gnu::always_inline]] inline void describe(const NetworkInterface& interface, bool matching,
                                            const EntryArguments& arguments, ptl_list_t list,
                                            ListEntry& entry) noexcept {
  const ptl_me_t& given = arguments.entry;
  entry.list = list;
  entry.uid = given.uid;
  entry.options = given.options;
  entry.operations = 0;
  entry.unexpected_headers = 0;
  entry.local_offset = 0;
  entry.min_free = matching ? given.min_free : 0;
  entry.user_ptr = arguments.user_ptr;
  entry.counter = arguments.counter;
  set_criteria(interface, matching, given, entry.criteria);
}
// False: the memory cannot be described.
[[nodiscard, gnu::always_inline]] inline bool open_region(const ptl_me_t& given,
                                                          ListEntry& entry) noexcept {
  if (!entry.region.open(given.start, given.length, (given.options & PTL_IOVEC) != 0,
                         (given.options & PTL_ME_IS_ACCESSIBLE) != 0)) [[unlikely]]
    return false;
  entry.takes_plain_puts = takes_plain_puts(given.options) && entry.region.is_plain();
  return true;
}

// Puts an allocated entry on its list. It is free again if that is refused.
[[nodiscard]] int append_to(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry,
                            const EntryArguments& arguments, ptl_list_t list) noexcept;

// PTL_OK, PTL_ARG_INVALID (no such portal table entry, bad iovec), PTL_NO_SPACE, PTL_LIST_TOO_LONG.
// `matching`: what interface.matching() is, known where the call is compiled.
[[nodiscard, gnu::always_inline]] inline int append_entry(NetworkInterface& interface,
                                                          bool matching,
                                                          const EntryArguments& arguments,
                                                          ptl_list_t list,
                                                          uint64_t* handle) noexcept {
  const ptl_me_t& given = arguments.entry;
  PortalEntry* const portal = interface.portal(arguments.pt_index);
  if (portal == nullptr) [[unlikely]]
    return PTL_ARG_INVALID;
  ListEntry* entry = nullptr;
  if (portal->spare_entries.load(std::memory_order_relaxed) != nullptr) {
    const bool is_plain = (given.options & PTL_IOVEC) == 0 && !device_memory_in_use();
    const LockGuard guard(portal->lock);
    entry = take_spare_entry(*portal);
    if (entry != nullptr) [[likely]] {
      begin_entry(interface, *entry, handle);
      MatchList& entries = list == PTL_PRIORITY_LIST ? portal->priority : portal->overflow;
      if (is_plain && portal->allocated && portal->unexpected.empty() &&
          link_entry(interface, entries, *entry) == PTL_OK) [[likely]] {
        describe(interface, matching, arguments, list, *entry);
        entry->region.open_plain(given.start, given.length,
                                 (given.options & PTL_ME_IS_ACCESSIBLE) != 0);
        entry->takes_plain_puts = takes_plain_puts(given.options & ~unsigned{PTL_IOVEC});
        if ((given.options & PTL_ME_EVENT_LINK_DISABLE) == 0) post_link_event(*portal, *entry);
        interface.note_room();
        return PTL_OK;
      }
    }
  }
  if (entry == nullptr) entry = allocate_entry(interface, handle);
  if (entry == nullptr) [[unlikely]]
    return PTL_NO_SPACE;
  entry->pt_index = static_cast<uint16_t>(arguments.pt_index);
  // Made here, so that the common case keeps them in registers.
  return append_to(interface, *portal, *entry, EntryArguments(arguments), list);
}

}  // namespace lintel
