// Share of the pools of a process that one peer may take. Message path.
//
// A correct peer never reaches its limit: it limits its operations in flight so that half of its
// share suffices. The other half is for operations that it has given up (PtlNIFini) and whose
// answers still wait here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/operations/operation.h"
#include "core/operations/peer.h"

namespace lintel {

// Limits of an initiator: further requests of the kind are held while this many operations are in
// flight.
inline constexpr uint32_t most_long_replies_in_flight = 1u << 12;
inline constexpr uint32_t most_transfers_in_flight = 1u << 14;
// Limits of a target: LongPayloads and Transfers of one peer.
inline constexpr uint32_t most_long_answers_of_peer = 2 * most_long_replies_in_flight;
inline constexpr uint32_t most_transfers_of_peer = 2 * most_transfers_in_flight;

// Whether a peer that has `taken` objects of a pool may take another one. A peer may have at most
// as many as are left for the others, so that several peers at their limit leave some.
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
