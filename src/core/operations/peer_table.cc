// Adding peers. Connection path.
#include "core/operations/peer_table.h"

namespace lintel {

namespace {
constexpr uint32_t largest_peers = 1u << 20;
constexpr uint64_t first_capacity = 64;
}  // namespace

bool PeerTable::open() noexcept {
  try {
    generations_.push_back(std::make_unique<Slots>(first_capacity));
  } catch (...) {
    return false;
  }
  slots_.store(generations_.back().get(), std::memory_order_release);
  return peers_.open(largest_peers);
}

void PeerTable::place(Slots& slots, Peer& peer) noexcept {
  uint64_t i = hash(peer.id);
  while (slots.at[i & slots.mask].load(std::memory_order_relaxed) != nullptr) ++i;
  slots.at[i & slots.mask].store(&peer, std::memory_order_release);
}

Peer* PeerTable::insert(ProcessId id) noexcept {
  Slots* slots = slots_.load(std::memory_order_relaxed);
  if (uint64_t{peers_.high_water()} * 2 > slots->mask) {
    try {
      generations_.push_back(std::make_unique<Slots>((slots->mask + 1) * 4));
    } catch (...) {
      return nullptr;
    }
    slots = generations_.back().get();
    for (uint32_t i = 0; i < peers_.high_water(); ++i) place(*slots, peers_.at(i));
    slots_.store(slots, std::memory_order_release);
  }
  const uint32_t index = peers_.allocate();
  if (index == Arena<Peer>::no_index) return nullptr;
  Peer& peer = peers_.at(index);
  peer.id = id;
  place(*slots, peer);
  return &peer;
}

}  // namespace lintel
