// Numbering ports and making their address handles. Connection path.
//
// A handle stays until the link is closed: the device may still read it for datagrams that are
// queued, and there are as many as nodes with connected peers. Of nodes that only sent something,
// without a connection, a bounded number is kept.
#include "verbs/ud_hosts.h"

#include <cerrno>
#include <cstring>

#include "util/lock.h"
#include "util/log.h"
#include "util/text.h"
#include "verbs/port_choice.h"

namespace lintel {

bool UdHosts::open(const VerbsDevice& device) noexcept {
  device_ = &device;
  return hosts_.open(most_hosts);
}

void UdHosts::close() noexcept {
  for (uint32_t i = 0; i < hosts_.high_water(); ++i)
    if (ibv_ah* const handle = hosts_.at(i).handle.exchange(nullptr); handle != nullptr)
      ibv_destroy_ah(handle);
  hosts_.close();
}

HostKey UdHosts::key_of(const ibv_gid& gid, uint16_t lid) const noexcept {
  if (device_->is_roce) return {gid, 0};
  return device_->needs_grh(gid) ? HostKey{gid, lid} : HostKey{{}, lid};
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
ibv_ah* UdHosts::make_handle(Host& host) noexcept {
  if (ibv_ah* const there = host.handle.load(std::memory_order_acquire); there != nullptr)
    return there;
  ibv_ah_attr attributes;
  ibv_gid gid = host.key.gid;
  // A key without a GID is one of this subnet.
  if (!device_->is_roce && gid.global.interface_id == 0)
    gid.global.subnet_prefix = device_->gid.global.subnet_prefix;
  device_->fill_address(attributes, gid, host.key.lid);
  ibv_ah* const handle = ibv_create_ah(device_->pd, &attributes);
  if (handle != nullptr) host.handle.store(handle, std::memory_order_release);
  return handle;
}

uint32_t UdHosts::make(const HostKey& key, std::string& reason) {
  const uint32_t number = find_or_add(key, false);
  if (number == none) return explained(none, reason, "too many nodes are known already");
  admit(number);
  errno = 0;
  if (make_handle(hosts_.at(number)) != nullptr) return number;
  reason = text_of("no address handle for ",
                   device_->is_roce ? gid_address_text(key.gid) : text_of("LID ", key.lid), " (",
                   strerror(errno), ")");
  return none;
}

bool UdHosts::want_handle(uint32_t number) noexcept {
  if (hosts_.at(number).wanted.exchange(true, std::memory_order_acq_rel)) return false;
  try {
    const LockGuard guard(mutex_);
    wanted_.push_back(number);
    return true;
  } catch (...) {
    hosts_.at(number).wanted.store(false, std::memory_order_release);
    return false;
  }
}

void UdHosts::make_wanted() noexcept {
  for (;;) {
    uint32_t number = none;
    {
      const LockGuard guard(mutex_);
      if (wanted_.empty()) return;
      number = wanted_.back();
      wanted_.pop_back();
    }
    Host& host = hosts_.at(number);
    if (make_handle(host) == nullptr)
      log_message(LogLevel::debug, "verbs: no address handle for a sender of datagrams (%s)",
                  strerror(errno));
    // The next datagram from there tries again.
    host.wanted.store(false, std::memory_order_release);
  }
}

}  // namespace lintel
