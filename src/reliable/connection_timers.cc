#include "reliable/connection_timers.h"

namespace lintel {

void ConnectionTimers::add(Connection& connection) noexcept {
  connection.with_timer.linked = true;
  Connection* head = new_.load(std::memory_order_relaxed);
  do {
    connection.with_timer.next = head;
  } while (!new_.compare_exchange_weak(head, &connection, std::memory_order_release,
                                       std::memory_order_relaxed));
}

bool ConnectionTimers::lower(uint64_t at_ns) noexcept {
  uint64_t earliest = earliest_ns_.load(std::memory_order_relaxed);
  while (at_ns < earliest)
    if (earliest_ns_.compare_exchange_weak(earliest, at_ns, std::memory_order_seq_cst)) return true;
  return false;
}

void ConnectionTimers::adopt_new() noexcept {
  Connection* added = new_.exchange(nullptr, std::memory_order_acquire);
  while (added != nullptr) {
    Connection* const next = added->with_timer.next;
    added->with_timer.next = active_;
    active_ = added;
    added = next;
  }
}

}  // namespace lintel
