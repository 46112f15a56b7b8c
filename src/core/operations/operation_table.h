// The operations that this process initiated and that have not ended. Cookies name them in answers.
// Message path.
#pragma once

#include <cstdint>
#include <span>

#include "core/operations/operation.h"
#include "core/operations/peer.h"
#include "transport/polling.h"
#include "util/arena.h"
#include "util/assert.h"

namespace lintel {

// An operation that has exposed memory.
[[gnu::noinline]] void withdraw_exposed_memory(Operation& operation, bool answered) noexcept;

// Ends the target's access to the operation's memory. Called before the end of the operation, or of
// its sending, is reported. `answered`: the target has said that it is done.
inline void withdraw_memory(Operation& operation, bool answered) noexcept {
  if (operation.exposure.load(std::memory_order_relaxed) != Exposure::none) [[unlikely]]
    withdraw_exposed_memory(operation, answered);
}

class OperationTable {
 public:
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept;

  // Returns nullptr if none is free.
  [[nodiscard]] Operation* allocate(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock) {
    const uint32_t index = peer.free_operations;
    if (index == none) [[unlikely]]
      return allocate_returned(peer);
    Operation& operation = operations_.at(index);
    LINTEL_ASSERT(operation.peer.load(std::memory_order_relaxed) == nullptr);
    peer.free_operations = operation.next_free.load(std::memory_order_relaxed);
    return &operation;
  }
  // Makes slots that peers have reserved available to all peers. Any thread, no send lock held.
  // True: a slot is free.
  [[nodiscard]] bool reclaim(std::span<Peer> peers) noexcept;
  // The operation was never sent. Any thread.
  void discard(Operation& operation) noexcept;
  // Returns slots to their peer in one chain per burst, so that neither side needs a
  // locked instruction for each.
  void end(Operation& operation) noexcept LINTEL_REQUIRES(polling) {
    LINTEL_ASSERT(operation.peer.load(std::memory_order_relaxed) != nullptr);
    withdraw_memory(operation, false);
    Peer& peer = *operation.peer.load(std::memory_order_relaxed);
    const uint32_t index = operations_.index_of(operation);
    make_free(operation);
    operation.next_free.store(peer.returned.head, std::memory_order_relaxed);
    if (peer.returned.head == none) peer.returned.tail = index;
    peer.returned.head = index;
    peer.count_as_ended();
  }
  void return_ended(Peer& peer) noexcept LINTEL_REQUIRES(polling) {
    if (peer.returned.head != none) return_chain(peer);
  }

  // Returns nullptr if the cookie names no operation that goes on.
  [[nodiscard]] Operation* find(uint32_t cookie) const noexcept {
    return find_by_cookie(operations_, cookie);
  }
  [[nodiscard]] uint32_t cookie_of(const Operation& operation) const noexcept {
    return cookie_in(operations_, operation);
  }
  // Calls action(Operation&) for all that have not ended.
  template <typename Action>
  void for_each(Action&& action) noexcept LINTEL_REQUIRES(polling) {
    for_each_live(operations_, action);
  }

  // See MessageSink::may_access().
  [[nodiscard]] bool may_access(const Peer* peer, const RemoteMemory& memory,
                                bool write) const noexcept LINTEL_REQUIRES(polling);

  // Copies the payload, which waits in a send queue, so that its buffer may be reused. Leaves
  // `copied` false if it is not there.
  void copy_payload(Operation& operation) noexcept;
  // Returns nullptr if the payload was not copied: it lies where the descriptor says.
  [[nodiscard]] const std::byte* copy_of(const Operation& operation) const noexcept {
    return operation.copied ? copies_.at(operations_.index_of(operation)).bytes : nullptr;
  }

 private:
  static void make_free(Operation& operation) noexcept {
    // The uppermost bit of a cookie distinguishes awaited puts from operations.
    constexpr uint8_t generation_mask = 0x7f;
    const uint8_t generation = operation.generation.load(std::memory_order_relaxed);
    operation.generation.store((generation + 1) & generation_mask, std::memory_order_relaxed);
    operation.peer.store(nullptr, std::memory_order_relaxed);
  }
  // The peer has no slot at hand.
  [[nodiscard]] Operation* allocate_returned(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock);
  void return_chain(Peer& peer) noexcept LINTEL_REQUIRES(polling);

  static constexpr uint32_t none = Arena<Operation>::no_index;
  Arena<Operation> operations_;
  Arena<VolatileCopy> copies_;
};

}  // namespace lintel
