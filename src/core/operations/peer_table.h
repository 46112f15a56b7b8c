// Finds the peer with a physical address. Lookups take no lock; peers are added, never removed.
// Message path for find(); connection path for insert().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/operations/peer.h"
#include "transport/process_key.h"

namespace lintel {

class PeerTable {
 public:
  [[nodiscard]] bool open() noexcept;

  [[nodiscard]] Peer* find(ProcessId id) const noexcept {
    const Slots* slots = slots_.load(std::memory_order_acquire);
    for (uint64_t i = hash(id);; ++i) {
      Peer* peer = slots->at[i & slots->mask].load(std::memory_order_acquire);
      if (peer == nullptr || peer->id == id) return peer;
    }
  }
  // The caller excludes other inserts. nullptr when no more peers fit.
  [[nodiscard]] Peer* insert(ProcessId id) noexcept;

  [[nodiscard]] uint32_t size() const noexcept { return peers_.high_water(); }
  // Peers by number, 0..size()-1, in the order of their insertion.
  [[nodiscard]] Peer& at(uint32_t number) const noexcept { return peers_.at(number); }

 private:
  struct Slots {
    explicit Slots(uint64_t capacity)
        : mask(capacity - 1), at(new std::atomic<Peer*>[capacity]()) {}
    uint64_t mask;
    std::unique_ptr<std::atomic<Peer*>[]> at;
  };
  static uint64_t hash(ProcessId id) noexcept { return (key_of(id) * 0x9e3779b97f4a7c15u) >> 32; }
  static void place(Slots& slots, Peer& peer) noexcept;

  Arena<Peer> peers_;
  std::atomic<Slots*> slots_{nullptr};
  // Every table that a reader may still look at: all of them, a third more than the last one.
  std::vector<std::unique_ptr<Slots>> generations_;
};

}  // namespace lintel
