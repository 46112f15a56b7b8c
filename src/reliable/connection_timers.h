// The connections that have timers, and the time at which the next one is due. They are on a list
// of the poller. Another thread that sets a timer passes the connection through a lock-free stack,
// and wakes the poller if it would sleep too long. Message path.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "reliable/connection.h"
#include "util/cache_line.h"
#include "util/doorbell.h"

namespace lintel {

// Notifies the poller of work: it may be asleep, or may not poll the link. Any thread.
class PollerWakeup {
 public:
  // Set-up path.
  void set_doorbell(Doorbell& doorbell) noexcept { doorbell_ = &doorbell; }

  void wake() noexcept {
    if (!disturbed_.load(std::memory_order_seq_cst))
      disturbed_.store(true, std::memory_order_relaxed);
    if (doorbell_ != nullptr) doorbell_->ring_if_sleeping();
  }
  // The poller. What precedes wake() in the order of seq_cst is seen then, or wake() is noticed.
  void reset() noexcept { disturbed_.store(false, std::memory_order_seq_cst); }
  [[nodiscard]] bool is_set() const noexcept { return disturbed_.load(std::memory_order_relaxed); }
  // The flag for DescriptorWatch, which rings the doorbell itself.
  [[nodiscard]] std::atomic<bool>& flag() noexcept { return disturbed_; }

 private:
  Doorbell* doorbell_ = nullptr;
  alignas(cache_line_bytes) std::atomic<bool> disturbed_{true};
};

class ConnectionTimers {
 public:
  static constexpr uint64_t never = UINT64_MAX;

  explicit ConnectionTimers(PollerWakeup& wakeup) noexcept : wakeup_(wakeup) {}

  // Any thread. run() visits it at that time at the latest.
  void set(Connection& connection, uint64_t at_ns) noexcept LINTEL_REQUIRES(connection.lock) {
    if (!connection.with_timer.linked) add(connection);
    // The poller may have stopped polling the link, or be asleep, since before this timer was set.
    if (at_ns < earliest_ns_.load(std::memory_order_relaxed) && lower(at_ns)) wakeup_.wake();
  }

  // --- the poller
  [[nodiscard]] bool is_due(uint64_t now_ns) const noexcept {
    return now_ns >= earliest_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t earliest_ns() const noexcept {
    return earliest_ns_.load(std::memory_order_relaxed);
  }
  // Whether a connection was added since the last run() or for_each(), and whether the list has
  // any.
  [[nodiscard]] bool has_new() const noexcept {
    return new_.load(std::memory_order_seq_cst) != nullptr;
  }
  [[nodiscard]] bool is_empty() const noexcept { return active_ == nullptr; }
  // Calls visit(connection) for each connection with timers; it returns when the next one is due.
  // `never`: it has called done(), and is left out until set() is called again.
  template <typename Visit>
  void run(const Visit& visit) noexcept {
    // A thread whose connection is not adopted here lowers this again: its exchange of `new_`
    // follows that of adopt_new() and acquires this value.
    earliest_ns_.store(never, std::memory_order_relaxed);
    adopt_new();
    uint64_t earliest = never;
    for (Connection** link = &active_; *link != nullptr;) {
      ConnectionHook& hook = (*link)->with_timer;
      Connection* const next = hook.next;
      const uint64_t at_ns = visit(**link);
      if (at_ns == never)
        *link = next;
      else
        link = &hook.next;
      earliest = std::min(earliest, at_ns);
    }
    lower(earliest);
  }
  // Within `visit`.
  static void done(Connection& connection) noexcept LINTEL_REQUIRES(connection.lock) {
    connection.with_timer.linked = false;
  }
  template <typename Visit>
  void for_each(const Visit& visit) noexcept {
    adopt_new();
    for (Connection* at = active_; at != nullptr; at = at->with_timer.next) visit(*at);
  }

 private:
  void add(Connection& connection) noexcept {
    connection.with_timer.linked = true;
    Connection* head = new_.load(std::memory_order_relaxed);
    do {
      connection.with_timer.next = head;
    } while (!new_.compare_exchange_weak(head, &connection, std::memory_order_seq_cst,
                                         std::memory_order_relaxed));
  }
  bool lower(uint64_t at_ns) noexcept {
    uint64_t earliest = earliest_ns_.load(std::memory_order_relaxed);
    while (at_ns < earliest)
      if (earliest_ns_.compare_exchange_weak(earliest, at_ns, std::memory_order_relaxed))
        return true;
    return false;
  }
  void adopt_new() noexcept {
    Connection* added = new_.exchange(nullptr, std::memory_order_acq_rel);
    while (added != nullptr) {
      Connection* const next = std::exchange(added->with_timer.next, active_);
      active_ = std::exchange(added, next);
    }
  }

  PollerWakeup& wakeup_;
  std::atomic<uint64_t> earliest_ns_{never};  // no timer is due earlier
  std::atomic<Connection*> new_{nullptr};
  alignas(cache_line_bytes) Connection* active_ = nullptr;
};

}  // namespace lintel
