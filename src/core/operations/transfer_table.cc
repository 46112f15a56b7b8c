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
  if (!may_take(peer.transfers, most_transfers_of_peer, in_use_, transfers_.capacity()))
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
  LINTEL_ASSERT(peer.transfers != 0 && in_use_ != 0);
  --peer.transfers;
  --in_use_;
  transfer.peer.store(nullptr, std::memory_order_release);
  transfers_.release(transfers_.index_of(transfer));
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
  if (peer.unreleased_head == nullptr)
    peer.unreleased_head = &transfer;
  else
    peer.unreleased_tail->next_active = &transfer;
  peer.unreleased_tail = &transfer;
  work_due_.set();
  if (peer.unreleased_listed) return;
  peer.unreleased_listed = true;
  peer.next_unreleased = unreleased_;
  unreleased_ = &peer;
}

Transfer* TransferTable::take_released() noexcept {
  for (Peer** link = &unreleased_; *link != nullptr;) {
    Peer& peer = **link;
    Transfer* const transfer = peer.unreleased_head;
    if (transfer == nullptr) {
      *link = peer.next_unreleased;
      peer.unreleased_listed = false;
    } else if (peer.transport->payloads_released(*peer.link, transfer->release.mark)) {
      peer.unreleased_head = transfer->next_active;
      return transfer;
    } else {
      link = &peer.next_unreleased;
    }
  }
  return nullptr;
}

bool TransferTable::anything_released() const noexcept {
  for (const Peer* peer = unreleased_; peer != nullptr; peer = peer->next_unreleased)
    if (peer->unreleased_head == nullptr ||
        peer->transport->payloads_released(*peer->link, peer->unreleased_head->release.mark))
      return true;
  return false;
}

void TransferTable::drop_all_of(const NetworkInterface& interface) noexcept {
  drop_from_chain(&active_, interface);
  for (Peer* peer = unreleased_; peer != nullptr; peer = peer->next_unreleased) {
    drop_from_chain(&peer->unreleased_head, interface);
    peer->unreleased_tail = peer->unreleased_head;
    if (peer->unreleased_tail == nullptr) continue;
    while (peer->unreleased_tail->next_active != nullptr)
      peer->unreleased_tail = peer->unreleased_tail->next_active;
  }
  for_each([&](Transfer& transfer) {
    polling.assert_held();
    if (transfer.place.interface == &interface) release(transfer);
  });
}

}  // namespace lintel
