#include "core/operations/operation_table.h"

#include <utility>

#include "util/address_space.h"
#include "util/lock.h"

namespace lintel {

namespace {
// Address space until used. A cookie has 24 bits for the index.
constexpr uint32_t most_operations = 1u << 20;
}  // namespace

void withdraw_exposed_memory(Operation& operation, bool answered) noexcept {
  const uint32_t number = operation.exposure.load(std::memory_order_relaxed);
  operation.exposure.store(Exposure::none, std::memory_order_relaxed);
  Peer& peer = *operation.peer.load(std::memory_order_relaxed);
  peer.route.transport->withdraw(*peer.route.link, number, !answered);
}

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

bool OperationTable::reclaim(std::span<Peer> peers) noexcept {
  const auto release_chain = [this](uint32_t index) {
    while (index != none) {
      const uint32_t next = operations_.at(index).next_free.load(std::memory_order_relaxed);
      operations_.release(index);
      index = next;
    }
  };
  for (Peer& peer : peers) {
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
  operations_.release(operation);
}

void OperationTable::return_chain(Peer& peer) noexcept {
  Operation& last = operations_.at(peer.returned.tail);
  uint32_t head = peer.returned_operations.load(std::memory_order_relaxed);
  // The other side only ever takes the whole chain, so there is no ABA.
  do {
    last.next_free.store(head, std::memory_order_relaxed);
  } while (!peer.returned_operations.compare_exchange_weak(
      head, peer.returned.head, std::memory_order_release, std::memory_order_relaxed));
  peer.returned.head = none;
}

bool OperationTable::may_access(const Peer* peer, const RemoteMemory& memory,
                                bool write) const noexcept {
  const Operation* operation = find(static_cast<uint32_t>(memory.key));
  if (operation == nullptr || operation->peer.load(std::memory_order_relaxed) != peer ||
      operation->stage.load(std::memory_order_acquire) == Operation::Stage::queued ||
      (operation->header.flags & flag_remote_memory) == 0 || operation->streaming)
    return false;
  // The end of sending has not been reported, or the reply has not: the descriptor is in use.
  const bool put = operation->header.kind == MessageKind::put;
  if (put == write || !(put ? operation->send_due : operation->answer_due)) return false;
  const MemoryDescriptor* descriptor = put ? operation->put.resolve() : operation->get.resolve();
  if (descriptor == nullptr ||
      !descriptor->region.is_host(put ? operation->put_offset : operation->get_offset,
                                  operation->header.length()))
    return false;
  Piece pieces[transfer_remote_pieces];
  uint64_t covered = 0;
  const unsigned count = descriptor->region.pieces(
      put ? operation->put_offset : operation->get_offset, operation->header.length(), pieces,
      transfer_remote_pieces, &covered);
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t offset = memory.address - reinterpret_cast<uint64_t>(pieces[i].base);
    if (offset <= pieces[i].length && memory.length <= pieces[i].length - offset) return true;
  }
  return false;
}

void OperationTable::copy_payload(Operation& operation) noexcept {
  VolatileCopy& copy = copies_.at(operations_.index_of(operation));
  operation.copied = operation.put.descriptor->region.read(operation.put_offset, copy.bytes,
                                                           operation.header.length());
}

}  // namespace lintel
