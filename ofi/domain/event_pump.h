// Takes the events of a domain out of Portals and has them handled. All functions but wait() need
// the lock of the domain. Message path.
#pragma once

#include <portals4.h>

#include <chrono>
#include <vector>

#include "base/deadline.h"

namespace lintel::ofi {

class Domain;

// Receives that wait for room in the event queue.
class DelayedReceives {
 public:
  // Posts them as far as there is room. True: nothing is left.
  virtual bool post_delayed() = 0;

 protected:
  ~DelayedReceives() = default;
};

// Whom the loss of events is reported to.
class LossObserver {
 public:
  virtual void events_were_lost() = 0;

 protected:
  ~LossObserver() = default;
};

// Gives an event to whatever its user pointer names.
using EventHandler = void (*)(Domain& domain, const ptl_event_t& event);

// Asks whether the peers live that something waits for without an operation of Portals.
using PeerCheck = void (*)(Domain& domain);

class EventPump {
 public:
  EventPump(Domain& domain, EventHandler handle, PeerCheck check_peers) noexcept
      : domain_(domain), handle_(handle), check_peers_(check_peers) {}
  // Half of the queue is for receives and a quarter for what the program sends. The rest is for
  // events that nothing limits: of buffers for several messages, and of remote writes with data.
  void set_capacity(size_t events) noexcept {
    most_posted_ = events / 2;
    most_transmits_ = events / 4;
  }

  // Handles the next event. False: there is none, or the watcher takes it.
  bool handle_event();
  // The same after handle_event(). Takes up to `most` events out of Portals at once: one by one is
  // faster if there is only one.
  bool handle_next(size_t most);
  // After handle_event(): posts receives for which there is room now.
  void finish() {
    if (!delayed_.empty()) [[unlikely]]
      post_delayed();
  }
  // Handles what is there, up to a limit.
  void progress();
  // Handles all that is there.
  void drain();
  // Handles the result of a call that waits for an event.
  void take(const ptl_event_t& event, int code);
  // Waits a moment for an event; `round` counts the calls of one waiting function. Without the
  // lock.
  void wait(const Deadline& deadline, unsigned round);

  // Receives that wait for room in the event queue.
  void delay(DelayedReceives& receives);
  void forget(const DelayedReceives& receives) noexcept;
  [[nodiscard]] bool has_room() const noexcept { return receives_ < most_posted_; }
  void add_receive() noexcept { ++receives_; }
  void remove_receive() noexcept { --receives_; }

  // Asks from time to time whether peers live. Called when there is no event.
  void check_peers();

  void add(LossObserver& observer) { observers_.push_back(&observer); }
  void remove(LossObserver& observer) noexcept { std::erase(observers_, &observer); }

  // Operations of which an event is to come at this initiator.
  [[nodiscard]] bool may_transmit(size_t operations);
  void add_transmits(size_t operations) noexcept { transmits_ += operations; }
  void remove_transmit() noexcept { --transmits_; }
  // Operations that are held back leave room for others, which may have to start them.
  [[nodiscard]] bool may_defer() const noexcept { return deferrals_ < most_transmits_ / 2; }
  void add_deferral() noexcept { ++deferrals_; }
  void remove_deferral() noexcept { --deferrals_; }

 private:
  static constexpr unsigned most_taken = 16;

  void handle(const ptl_event_t& event);
  [[nodiscard]] bool take_events(size_t most);
  void found_nothing();
  void post_delayed();
  void report_loss();

  Domain& domain_;
  const EventHandler handle_;
  const PeerCheck check_peers_;
  // Events that were taken and are not handled yet.
  bool is_handling_ = false;  // handlers take no events
  unsigned next_taken_ = 0;
  unsigned taken_ = 0;
  ptl_event_t events_[most_taken];
  size_t receives_ = 0;   // posted, so their events fit in the queue
  size_t transmits_ = 0;  // pending
  unsigned empty_looks_ = 0;
  std::chrono::steady_clock::time_point next_check_;
  size_t deferrals_ = 0;  // held back, or pending
  size_t most_posted_ = 0;
  size_t most_transmits_ = 0;
  std::vector<DelayedReceives*> delayed_;
  std::vector<LossObserver*> observers_;
};

}  // namespace lintel::ofi
