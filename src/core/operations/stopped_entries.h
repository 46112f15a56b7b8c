// Portal table entries of peers that hold messages of this process (PTL_LINTEL_PT_HOLD): its
// further requests to them wait here. Message path; under the send lock of the peer.
#pragma once

#include <atomic>

#include "core/operations/operation.h"
#include "util/arena.h"

namespace lintel {

struct StoppedEntry {
  std::atomic<uint32_t> next_free{0};
  uint32_t name = 0;  // see StoppedEntries::name_of()
  uint32_t count = 0;
  StoppedEntry* next = nullptr;  // entry of the same peer
  // Requests, older than all others to this entry in the queue of the peer.
  QueuedSend* head = nullptr;
  QueuedSend** tail = &head;

  void append(QueuedSend& item) noexcept {
    item.next_queued = nullptr;
    *tail = &item;
    tail = &item.next_queued;
    ++count;
  }
};

// Those of one peer.
struct StoppedChain {
  StoppedEntry* first = nullptr;
  uint32_t count = 0;
};

class StoppedEntries {
 public:
  // Requests to one entry from which on no further ones are started.
  static constexpr uint32_t most_requests = 1024;

  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return entries_.open(most_entries); }

  // The logical interface of a request and its portal table entry.
  [[nodiscard]] static uint32_t name_of(const MessageHeader& header) noexcept {
    return uint32_t{header.pt_index} << 2 | header.interface_slot();
  }
  static_assert(flag_interface_mask == 3);
  // nullptr: it is not stopped.
  [[nodiscard]] static StoppedEntry* find(const StoppedChain& chain, uint32_t name) noexcept {
    StoppedEntry* entry = chain.first;
    while (entry != nullptr && entry->name != name) entry = entry->next;
    return entry;
  }
  // Nothing is done if it is stopped, or the peer has stopped too many.
  void add(StoppedChain& chain, uint32_t name) noexcept;
  // No requests are left in it.
  void remove(StoppedChain& chain, StoppedEntry& entry) noexcept;

 private:
  static constexpr uint32_t most_entries = 1u << 18;
  static constexpr uint32_t most_of_peer = 1u << 12;

  Arena<StoppedEntry> entries_;
};

}  // namespace lintel
