// How much of the pools of a process one of its peers may take. Message path.
//
// A correct peer never comes to its limit: it keeps so many operations in flight that half of what
// it is granted suffices. The other half is for operations that it has given up (PtlNIFini) and
// whose answers still wait here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/operations/operation.h"
#include "core/operations/peer.h"

namespace lintel {

// As initiator: further requests of the kind are held until so few operations are in flight.
inline constexpr uint32_t most_long_replies_in_flight = 1u << 12;
inline constexpr uint32_t most_transfers_in_flight = 1u << 14;
// As target: LongPayloads and Transfers of one peer.
inline constexpr uint32_t most_long_answers_of_peer = 2 * most_long_replies_in_flight;
inline constexpr uint32_t most_transfers_of_peer = 2 * most_transfers_in_flight;

// Whether a peer that has `taken` objects of a pool may take another one: not more than are left
// for the others, so that several greedy peers together leave some.
[[nodiscard]] constexpr bool may_take(uint32_t taken, uint32_t most, uint32_t in_use,
                                      uint32_t capacity) noexcept {
  return taken < std::min(most, capacity - in_use);
}

// The initiator's side. The header is complete.
[[nodiscard]] inline bool has_to_wait(const Peer& peer, const MessageHeader& header) noexcept
    LINTEL_REQUIRES(peer.send_lock) {
  if ((header.flags & flag_remote_memory) != 0) return peer.in_flight() >= most_transfers_in_flight;
  const bool is_replied_to = header.kind == MessageKind::get ||
                             header.kind == MessageKind::fetch_atomic ||
                             header.kind == MessageKind::swap;
  return is_replied_to && header.length() > short_answer_bytes &&
         peer.in_flight() >= most_long_replies_in_flight;
}

}  // namespace lintel
