#include "core/operations/operation_table.h"

#include <utility>

#include "util/address_space.h"
#include "util/lock.h"

namespace lintel {

namespace {
// Address space until used. A cookie has 24 bits for the index.
constexpr uint32_t most_operations = 1u << 20;
}  // namespace

bool OperationTable::open() noexcept {
  const uint32_t capacity =
      fitting_capacity(most_operations, sizeof(Operation) + sizeof(VolatileCopy));
  return operations_.open(capacity) && copies_.open(capacity);
}

Operation* OperationTable::allocate_returned(Peer& peer) noexcept {
  uint32_t index = peer.returned_operations.exchange(none, std::memory_order_acquire);
  if (index != none) {
    peer.free_operations = operations_.at(index).next_free.load(std::memory_order_relaxed);
  } else {
    index = operations_.allocate();
    if (index == none) return nullptr;
  }
  return &operations_.at(index);
}

bool OperationTable::reclaim(const PeerTable& peers) noexcept {
  const auto release_chain = [this](uint32_t index) {
    while (index != none) {
      const uint32_t next = operations_.at(index).next_free.load(std::memory_order_relaxed);
      operations_.release(index);
      index = next;
    }
  };
  for (uint32_t i = 0; i < peers.size(); ++i) {
    Peer& peer = peers.at(i);
    const LockGuard guard(peer.send_lock);
    release_chain(std::exchange(peer.free_operations, none));
    release_chain(peer.returned_operations.exchange(none, std::memory_order_acquire));
  }
  const uint32_t index = operations_.allocate();
  if (index == none) return false;
  operations_.release(index);
  return true;
}

void OperationTable::discard(Operation& operation) noexcept {
  make_free(operation);
  operations_.release(operations_.index_of(operation));
}

void OperationTable::return_chain(Peer& peer) noexcept {
  Operation& last = operations_.at(peer.returned_chain_tail);
  uint32_t head = peer.returned_operations.load(std::memory_order_relaxed);
  // The other side only ever takes the whole chain, so there is no ABA.
  do {
    last.next_free.store(head, std::memory_order_relaxed);
  } while (!peer.returned_operations.compare_exchange_weak(
      head, peer.returned_chain_head, std::memory_order_release, std::memory_order_relaxed));
  peer.returned_chain_head = none;
}

void OperationTable::copy_payload(Operation& operation) noexcept {
  VolatileCopy& copy = copies_.at(operations_.index_of(operation));
  operation.copied = operation.put.descriptor->region.read(operation.put_offset, copy.bytes,
                                                           operation.header.length());
}

}  // namespace lintel
