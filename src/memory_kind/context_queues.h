// The contexts of a driver that copies went through, each with its queues and events. Message path
// but for the first copy of a context and direction, which makes a queue.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "memory_kind/device_driver.h"
#include "util/lock.h"
#include "util/spin_lock.h"

namespace lintel {

class ContextQueues {
 public:
  enum Direction : uint8_t { to_device, from_device, between_devices, awaited, directions };
  static constexpr unsigned max_contexts = 32;
  static constexpr unsigned max_tickets = 256;

  // Entries live as long as the table, but get other contexts.
  struct Entry {
    DeviceContext context;
    bool in_use = false;
    bool destroyed = false;
    unsigned tickets = 0;  // in use
    std::array<std::atomic<DeviceDriver::Queue>, directions> queues{};
    // Events without a ticket.
    std::array<DeviceDriver::Event, max_tickets> events{};
    unsigned event_count = 0;
  };

  explicit ContextQueues(DeviceDriver& driver) : driver_(driver) {}

  // The entry of the context; nullptr: the table is full.
  [[nodiscard]] Entry* find(const DeviceContext& context) noexcept;
  // The queue, made at the first call; nullptr: the driver failed.
  [[nodiscard]] DeviceDriver::Queue queue(Entry& entry, Direction direction) noexcept;
  // The context was destroyed: later calls of find() make a new entry.
  void forget(Entry& entry) noexcept;
  // Any context that find() has seen; false: none.
  [[nodiscard]] bool any(DeviceContext* out) noexcept;

  // A ticket with an event of the entry's context. no_copy: all are in use (`full` is true), or the
  // driver has no event.
  [[nodiscard]] CopyTicket take_ticket(Entry& entry, bool* full) noexcept;
  void give_back(CopyTicket ticket) noexcept;
  [[nodiscard]] DeviceDriver::Event event_of(CopyTicket ticket) const noexcept;
  [[nodiscard]] const DeviceContext& context_of(CopyTicket ticket) const noexcept;

 private:
  struct Ticket {
    Entry* entry = nullptr;  // nullptr: free
    DeviceDriver::Event event = nullptr;
  };

  DeviceDriver& driver_;
  Mutex making_;  // queues and events
  SpinLock lock_;
  std::array<Entry, max_contexts> entries_{};
  std::array<Ticket, max_tickets> tickets_{};
  unsigned next_ticket_ = 0;
};

}  // namespace lintel
