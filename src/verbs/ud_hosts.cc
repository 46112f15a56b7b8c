// Numbering ports and making their address handles. Connection path.
//
// A handle stays until the link is closed: the device may still read it for datagrams that are
// queued, and there are as many as nodes with connected peers. Of nodes that only sent something,
// without a connection, a bounded number is kept.
#include "verbs/ud_hosts.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "util/lock.h"
#include "util/log.h"
#include "util/text.h"
#include "verbs/port_choice.h"

namespace lintel {

bool UdHosts::open(std::vector<std::shared_ptr<VerbsDevice>> devices) noexcept {
  devices_ = std::move(devices);
  return hosts_.open(most_hosts);
}

void UdHosts::close() noexcept {
  for (uint32_t i = 0; i < hosts_.high_water(); ++i)
    for (std::atomic<ibv_ah*>& place : hosts_.at(i).handles)
      if (ibv_ah* const handle = place.exchange(nullptr); handle != nullptr) ibv_destroy_ah(handle);
  hosts_.close();
}

HostKey UdHosts::key_of(unsigned rail, const ibv_gid& gid, uint16_t lid) const noexcept {
  if (devices_[rail]->is_roce) return {gid, 0};
  return devices_[rail]->needs_grh(gid) ? HostKey{gid, lid} : HostKey{{}, lid};
}

uint32_t UdHosts::find_or_add(const HostKey& key, bool stranger) {
  const LockGuard guard(mutex_);
  const auto [place, is_new] = numbers_.try_emplace(key, none);
  if (!is_new) return place->second;
  const bool too_many = stranger && strangers_.load(std::memory_order_relaxed) >= most_strangers;
  const uint32_t number = too_many ? none : hosts_.allocate();
  if (number == none) {
    numbers_.erase(place);
    return none;
  }
  Host& host = hosts_.at(number);
  host.key = key;
  host.stranger.store(stranger, std::memory_order_relaxed);
  if (stranger) strangers_.fetch_add(1, std::memory_order_relaxed);
  place->second = number;
  return number;
}

uint32_t UdHosts::find_or_add_stranger(const HostKey& key) noexcept {
  try {
    return find_or_add(key, true);
  } catch (...) {
    return none;
  }
}

void UdHosts::admit(uint32_t number) noexcept {
  if (hosts_.at(number).stranger.exchange(false, std::memory_order_relaxed))
    strangers_.fetch_sub(1, std::memory_order_relaxed);
}

// Called by one thread only, so that no handle is made twice.
ibv_ah* UdHosts::make_handle(unsigned rail, Host& host) noexcept {
  if (ibv_ah* const there = host.handles[rail].load(std::memory_order_acquire); there != nullptr)
    return there;
  const VerbsDevice& device = *devices_[rail];
  ibv_ah_attr attributes;
  ibv_gid gid = host.key.gid;
  // A key without a GID is one of this subnet.
  if (!device.is_roce && gid.global.interface_id == 0)
    gid.global.subnet_prefix = device.gid.global.subnet_prefix;
  device.fill_address(attributes, gid, host.key.lid);
  ibv_ah* const handle = ibv_create_ah(device.pd, &attributes);
  if (handle != nullptr) host.handles[rail].store(handle, std::memory_order_release);
  return handle;
}

uint32_t UdHosts::admit(const HostKey& key) noexcept {
  try {
    const uint32_t number = find_or_add(key, false);
    if (number != none) admit(number);
    return number;
  } catch (...) {
    return none;
  }
}

uint32_t UdHosts::make(unsigned rail, const HostKey& key, std::string& reason) {
  const uint32_t number = find_or_add(key, false);
  if (number == none) return explained(none, reason, "too many nodes are known already");
  admit(number);
  errno = 0;
  if (make_handle(rail, hosts_.at(number)) != nullptr) return number;
  reason = text_of("no address handle for ",
                   devices_[rail]->is_roce ? gid_address_text(key.gid) : text_of("LID ", key.lid),
                   " (", strerror(errno), ")");
  return none;
}

bool UdHosts::want_handle(unsigned rail, uint32_t number) noexcept {
  const auto bit = static_cast<uint8_t>(1u << rail);
  if ((hosts_.at(number).wanted.fetch_or(bit, std::memory_order_acq_rel) & bit) != 0) return false;
  try {
    const LockGuard guard(mutex_);
    wanted_.push_back({number, rail});
    return true;
  } catch (...) {
    hosts_.at(number).wanted.fetch_and(static_cast<uint8_t>(~bit), std::memory_order_release);
    return false;
  }
}

void UdHosts::make_wanted() noexcept {
  for (;;) {
    Wanted next{};
    {
      const LockGuard guard(mutex_);
      if (wanted_.empty()) return;
      next = wanted_.back();
      wanted_.pop_back();
    }
    Host& host = hosts_.at(next.number);
    if (make_handle(next.rail, host) == nullptr)
      log_message(LogLevel::debug, "verbs: no address handle for a sender of datagrams (%s)",
                  strerror(errno));
    // The next datagram from there tries again.
    host.wanted.fetch_and(static_cast<uint8_t>(~(1u << next.rail)), std::memory_order_release);
  }
}

}  // namespace lintel
