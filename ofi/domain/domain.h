// fi_domain: an interface of Portals with its event queue, and all that belongs to it. Set-up path;
// the lock and the event pump are on the message path.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include <rdma/fi_domain.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/object.h"
#include "domain/event_pump.h"
#include "domain/network.h"
#include "domain/optional_lock.h"
#include "domain/region_table.h"
#include "domain/watcher.h"

namespace lintel::ofi {

class Counter;
class Domain;
class Endpoint;
class Fabric;

// Functions that the parts above the domain give it.
struct DomainCalls {
  fi_ops_domain* open;
  fi_ops_mr* regions;
  EventHandler handle;
  PeerCheck check_peers;
  // FI_QUEUE_WORK and its siblings.
  int (*control_work)(Domain& domain, int command, void* argument);
};

class Domain : public fid_domain {
 public:
  Domain(Fabric& fabric, const fi_info& info, const DomainCalls& calls, void* context) noexcept;

  [[nodiscard]] static Domain& of(fid_domain* domain) noexcept {
    return *static_cast<Domain*>(domain);
  }
  // A domain that this provider opened, in contrast to one of another provider.
  [[nodiscard]] static bool is_ours(const fid_domain& domain) noexcept;
  // Opens its interface. Returns 0 or a negative error number; then close() is called.
  [[nodiscard]] int open() noexcept;
  int close() noexcept;
  int bind(Object* object) noexcept;
  int control(int command, void* argument) noexcept {
    return calls_.control_work(*this, command, argument);
  }

  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] OptionalLock& lock() noexcept { return lock_; }
  [[nodiscard]] EventPump& pump() noexcept { return pump_; }
  [[nodiscard]] Watcher& watcher() noexcept { return watcher_; }
  [[nodiscard]] RegionTable& regions() noexcept { return regions_; }

  // Choices of the program.
  [[nodiscard]] fi_av_type vector_type() const noexcept { return vector_type_; }
  [[nodiscard]] bool names_as_text() const noexcept { return names_as_text_; }
  [[nodiscard]] bool progresses_itself() const noexcept { return progresses_itself_; }
  [[nodiscard]] bool copies_error_data() const noexcept;
  // FI_HMEM: registrations say whose memory they are of.
  [[nodiscard]] bool names_devices() const noexcept { return names_devices_; }

  // Counters that trigger operations. With the lock.
  [[nodiscard]] std::vector<Counter*>& triggers() noexcept { return triggers_; }

  // Shorthands of the pump.
  bool handle_event() { return pump_.handle_event(); }
  bool handle_next(size_t most) { return pump_.handle_next(most); }
  void finish_events() { pump_.finish(); }
  void progress() { pump_.progress(); }
  void wait_for_event(const Deadline& deadline, unsigned round) { pump_.wait(deadline, round); }

  // Children. While there are users, the domain cannot be closed.
  void add_user() noexcept { ++users_; }
  void remove_user() noexcept { --users_; }
  // By the index in their names.
  void add(Endpoint& endpoint, uint32_t index) noexcept;
  void remove(Endpoint& endpoint, uint32_t index) noexcept;
  // Endpoints that nothing is sent to.
  void add_sender(Endpoint& endpoint) { senders_.push_back(&endpoint); }
  void remove_sender(Endpoint& endpoint) noexcept { std::erase(senders_, &endpoint); }
  [[nodiscard]] Endpoint* endpoint(uint32_t index) const noexcept { return endpoints_[index]; }
  template <typename Action>
  void for_each_endpoint(Action&& action) {
    for (Endpoint* const endpoint : endpoints_)
      if (endpoint != nullptr) action(*endpoint);
  }

  template <typename Action>
  void for_each_sender(Action&& action) {
    for (Endpoint* const endpoint : senders_) action(*endpoint);
  }

  // Warns if messages were dropped since the last call, for want of memory for unexpected ones.
  void report_drops() noexcept;

 private:
  Fabric& fabric_;
  const DomainCalls& calls_;
  OptionalLock lock_;
  Network network_;
  EventPump pump_;
  Watcher watcher_{*this};
  RegionTable regions_;
  const bool names_devices_;
  const fi_av_type vector_type_;
  const bool names_as_text_;
  const bool progresses_itself_;
  std::atomic<size_t> users_{0};
  ptl_sr_value_t drops_ = 0;
  std::vector<Counter*> triggers_;
  std::array<Endpoint*, most_endpoints> endpoints_{};
  std::vector<Endpoint*> senders_;
};

inline bool EventPump::handle_event() {
  if (next_taken_ != taken_) return handle_next(1);
  if (domain_.watcher().is_taking()) [[unlikely]]
    return false;
  ptl_event_t event;
  const int code = PtlEQGet(domain_.network().events(), &event);
  if (code == PTL_OK) [[likely]] {
    handle(event);
    return true;
  }
  if (code == PTL_EQ_EMPTY) {
    found_nothing();
    return false;
  }
  take(event, code);
  return code == PTL_EQ_DROPPED;
}

inline bool EventPump::handle_next(size_t most) {
  if (next_taken_ == taken_ && !take_events(most)) return false;
  handle(events_[next_taken_++]);
  return true;
}

inline void EventPump::handle(const ptl_event_t& event) {
  OFI_ASSERT(!is_handling_);
  is_handling_ = true;
  handle_(domain_, event);
  is_handling_ = false;
}

}  // namespace lintel::ofi
