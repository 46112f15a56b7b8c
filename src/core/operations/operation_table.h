// The operations that this process initiated and that have not ended. Cookies name them in answers.
// Message path.
#pragma once

#include <cstdint>

#include "core/operations/cookie.h"
#include "core/operations/operation.h"
#include "core/operations/peer_table.h"
#include "util/arena.h"

namespace lintel {

class OperationTable {
 public:
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept;

  // peer.send_lock held. nullptr: none is free.
  [[nodiscard]] Operation* allocate(Peer& peer) noexcept;
  // Makes slots that peers have reserved available to all peers. Any thread, no send lock held.
  // True: a slot is free.
  [[nodiscard]] bool reclaim(const PeerTable& peers) noexcept;
  // The operation was never sent. Any thread.
  void discard(Operation& operation) noexcept;
  // Token held. Returns slots to their peer in one chain per burst, so that neither side needs a
  // locked instruction for each.
  void end(Operation& operation) noexcept;
  void return_ended(Peer& peer) noexcept {
    if (peer.returned_chain_head != none) return_chain(peer);
  }

  // nullptr: the cookie names none that has not ended.
  [[nodiscard]] Operation* find(uint32_t cookie) const noexcept;
  [[nodiscard]] uint32_t cookie_of(const Operation& operation) const noexcept;
  // Calls action(Operation&) for all that have not ended. Token held.
  template <typename Action>
  void for_each(Action&& action) noexcept {
    for_each_live(operations_, action);
  }

  // Copies the payload, which waits in a send queue, so that its buffer may be reused. Leaves
  // `copied` false if it is not there.
  void copy_payload(Operation& operation) noexcept;
  // nullptr: the payload lies where the descriptor says.
  [[nodiscard]] const std::byte* copy_of(const Operation& operation) const noexcept {
    return operation.copied ? copies_.at(operations_.index_of(operation)).bytes : nullptr;
  }

 private:
  void return_chain(Peer& peer) noexcept;

  static constexpr uint32_t none = Arena<Operation>::no_index;
  Arena<Operation> operations_;
  Arena<VolatileCopy> copies_;
};

}  // namespace lintel
