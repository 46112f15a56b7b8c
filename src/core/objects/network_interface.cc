// Opening and closing a logical interface. Set-up path.
#include "core/objects/network_interface.h"

#include <new>

#include "core/objects/delivery.h"
#include "core/objects/shared_ranks.h"
#include "util/lock.h"
#include "util/log.h"

namespace lintel {

NetworkInterface::NetworkInterface(PhysicalInterface& physical, Initiator& initiator, ProcessId own,
                                   unsigned slot, uint8_t index, uint8_t incarnation) noexcept
    : physical_(physical),
      initiator_(initiator),
      own_(own),
      handle_(encode_handle({HandleType::interface, index, incarnation, 0, 0})),
      entry_handles_(encode_handle({HandleType::entry, index, incarnation, 0, 0})),
      request_flags_(slot | (log_enabled(LogLevel::debug) ? flag_tell_refusal : 0u)),
      index_(index),
      incarnation_(incarnation) {}

static_assert(largest_unexpected_headers <= most_unexpected_headers);

bool InterfacePools::open(const ptl_ni_limits_t& limits) noexcept {
  if (!descriptors.open(static_cast<uint32_t>(limits.max_mds)) ||
      !counters.open(static_cast<uint32_t>(limits.max_cts)) ||
      !event_queues.open(static_cast<uint32_t>(limits.max_eqs)) ||
      !entries.open(static_cast<uint32_t>(limits.max_entries)) ||
      !unexpected_headers.open(static_cast<uint32_t>(limits.max_unexpected_headers)) ||
      !triggered_operations.open(static_cast<uint32_t>(limits.max_triggered_ops)))
    return false;
  // The first object of each kind exists, so that 0 names none.
  descriptors.release(descriptors.allocate());
  counters.release(counters.allocate());
  event_queues.release(event_queues.allocate());
  return true;
}

int NetworkInterface::open(const ptl_ni_limits_t* desired) noexcept {
  limits_ = grant_limits(desired);
  if (!pools_.open(limits_)) {
    log_message(LogLevel::error,
                "no address space for an interface with %d entries, %d unexpected headers and %d "
                "triggered operations: lower the desired limits or raise ulimit -v",
                limits_.max_entries, limits_.max_unexpected_headers, limits_.max_triggered_ops);
    return PTL_NO_SPACE;
  }
  SharedRanks::remove_leftovers();
  return PTL_OK;
}

NetworkInterface::~NetworkInterface() {
  for (auto& portal : portals_) delete portal.load(std::memory_order_relaxed);
}

PortalEntry* NetworkInterface::obtain_portal(uint32_t pt_index) noexcept {
  PortalEntry* portal = this->portal(pt_index);
  if (portal != nullptr) return portal;
  portal = new (std::nothrow) PortalEntry;
  if (portal == nullptr) return nullptr;
  portal->index = static_cast<uint16_t>(pt_index);
  {
    const LockGuard guard(portal->lock);
    portal->priority.set_matching(matching());
    portal->overflow.set_matching(matching());
    portal->unexpected.open(pools_.unexpected_headers);
  }
  portals_[pt_index].store(portal, std::memory_order_release);
  return portal;
}

void NetworkInterface::limit_spare_entries() noexcept {
  uint32_t limit = next_release_.load(std::memory_order_relaxed);
  if (pools_.entries.high_water() >= limit &&
      next_release_.compare_exchange_strong(limit, limit + entries_between_releases,
                                            std::memory_order_relaxed))
    release_spare_entries();
}

void NetworkInterface::release_spare_entries() noexcept {
  // One thread at a time: another one must not miss what the first has yet to return.
  const LockGuard setup(setup_mutex);
  for (const auto& slot : portals_) {
    PortalEntry* const portal = slot.load(std::memory_order_acquire);
    if (portal == nullptr) continue;
    const LockGuard guard(portal->lock);
    while (ListEntry* const entry = take_spare_entry(*portal)) pools_.entries.release(*entry);
  }
}

}  // namespace lintel
