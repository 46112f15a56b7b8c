#include "core/operations/operation_table.h"

#include <mutex>
#include <utility>

#include "core/operations/initiator_payload.h"

namespace lintel {

namespace {
// Address space until used. A cookie has 24 bits for the index.
constexpr uint32_t most_operations = 1u << 20;

void make_free(Operation& operation) noexcept {
  // The uppermost bit of a cookie tells counted puts from operations.
  constexpr uint8_t generation_mask = 0x7f;
  const uint8_t generation = operation.generation.load(std::memory_order_relaxed);
  operation.generation.store((generation + 1) & generation_mask, std::memory_order_relaxed);
  operation.peer.store(nullptr, std::memory_order_relaxed);
}
}  // namespace

bool OperationTable::open() noexcept {
  return operations_.open(most_operations) && copies_.open(most_operations);
}

Operation* OperationTable::allocate(Peer& peer) noexcept {
  if (peer.free_operations == none)
    peer.free_operations = peer.returned_operations.exchange(none, std::memory_order_acquire);
  uint32_t index = peer.free_operations;
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
    std::lock_guard guard(peer.send_lock);
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

void OperationTable::end(Operation& operation) noexcept {
  withdraw_memory(operation, false);
  Peer& peer = *operation.peer.load(std::memory_order_relaxed);
  const uint32_t index = operations_.index_of(operation);
  make_free(operation);
  operation.next_free.store(peer.returned_chain_head, std::memory_order_relaxed);
  if (peer.returned_chain_head == none) peer.returned_chain_tail = index;
  peer.returned_chain_head = index;
  peer.count_as_ended();
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

uint32_t OperationTable::cookie_of(const Operation& operation) const noexcept {
  return cookie_in(operations_, operation);
}

Operation* OperationTable::find(uint32_t cookie) const noexcept {
  return find_by_cookie(operations_, cookie);
}

void OperationTable::copy_payload(Operation& operation) noexcept {
  VolatileCopy& copy = copies_.at(operations_.index_of(operation));
  operation.copied = operation.put.descriptor->region.read(operation.put_offset, copy.bytes,
                                                           operation.header.length());
}

}  // namespace lintel
