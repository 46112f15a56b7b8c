#include "core/operations/transfer_table.h"

#include <utility>

#include "util/address_space.h"
#include "util/assert.h"

namespace lintel {

namespace {
// Address space until used.
constexpr uint32_t most_transfers = 1u << 18;

// Takes those of `interface` out of a chain through `next_active`.
void drop_from_chain(Transfer** link, const NetworkInterface& interface) noexcept {
  while (Transfer* transfer = *link) {
    if (transfer->place.interface == &interface) {
      transfer->active = false;
      *link = transfer->next_active;
    } else {
      link = &transfer->next_active;
    }
  }
}
}  // namespace

bool TransferTable::open() noexcept {
  return transfers_.open(fitting_capacity(most_transfers, sizeof(Transfer)));
}

Transfer* TransferTable::allocate(const Peer& peer) noexcept {
  if (!may_take(peer.long_messages.transfers, most_transfers_of_peer, in_use_,
                transfers_.capacity()))
    return nullptr;
  const uint32_t index = transfers_.allocate();
  LINTEL_ASSERT(index != Arena<Transfer>::no_index);
  ++in_use_;
  return &transfers_.at(index);
}

void TransferTable::release(Transfer& transfer) noexcept {
  const uint8_t generation = transfer.generation.load(std::memory_order_relaxed);
  transfer.generation.store(generation + 1, std::memory_order_relaxed);
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  LINTEL_ASSERT(peer.long_messages.transfers != 0 && in_use_ != 0);
  --peer.long_messages.transfers;
  --in_use_;
  transfer.peer.store(nullptr, std::memory_order_release);
  transfers_.release(transfer);
}

void TransferTable::activate(Transfer& transfer) noexcept {
  LINTEL_ASSERT(!transfer.active);
  transfer.active = true;
  transfer.next_active = active_;
  active_ = &transfer;
  work_due_.set();
}

Transfer* TransferTable::take_active() noexcept {
  for (Transfer* transfer = active_; transfer != nullptr; transfer = transfer->next_active)
    transfer->active = false;
  return std::exchange(active_, nullptr);
}

void TransferTable::await_release(Transfer& transfer) noexcept {
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  transfer.next_active = nullptr;
  if (peer.unreleased.head == nullptr)
    peer.unreleased.head = &transfer;
  else
    peer.unreleased.tail->next_active = &transfer;
  peer.unreleased.tail = &transfer;
  work_due_.set();
  if (peer.unreleased.listed) return;
  peer.unreleased.listed = true;
  peer.unreleased.next_peer = unreleased_;
  unreleased_ = &peer;
}

Transfer* TransferTable::take_released() noexcept {
  for (Peer** link = &unreleased_; *link != nullptr;) {
    Peer& peer = **link;
    Transfer* const transfer = peer.unreleased.head;
    if (transfer == nullptr) {
      *link = peer.unreleased.next_peer;
      peer.unreleased.listed = false;
    } else if (peer.route.transport->payloads_released(*peer.route.link, transfer->release.mark)) {
      peer.unreleased.head = transfer->next_active;
      return transfer;
    } else {
      link = &peer.unreleased.next_peer;
    }
  }
  return nullptr;
}

bool TransferTable::anything_released() const noexcept {
  for (const Peer* peer = unreleased_; peer != nullptr; peer = peer->unreleased.next_peer)
    if (peer->unreleased.head == nullptr ||
        peer->route.transport->payloads_released(*peer->route.link,
                                                 peer->unreleased.head->release.mark))
      return true;
  return false;
}

void TransferTable::drop_all_of(const NetworkInterface& interface) noexcept {
  drop_from_chain(&active_, interface);
  for (Peer* peer = unreleased_; peer != nullptr; peer = peer->unreleased.next_peer) {
    drop_from_chain(&peer->unreleased.head, interface);
    peer->unreleased.tail = peer->unreleased.head;
    if (peer->unreleased.tail == nullptr) continue;
    while (peer->unreleased.tail->next_active != nullptr)
      peer->unreleased.tail = peer->unreleased.tail->next_active;
  }
  for_each([&](Transfer& transfer) {
    polling.assert_held();
    if (transfer.place.interface == &interface) release(transfer);
  });
}

}  // namespace lintel
