// A short put of a process to itself: PtlPut delivers, reports and acknowledges it. Message path.
#pragma once

#include "core/operations/peer.h"
#include "core/request.h"

namespace lintel {

class NetworkInterface;

// The longest put to the own process that PtlPut delivers itself.
inline constexpr size_t largest_put_to_self = 64;

// `request`: an eager put to `peer`, the own process. False: nothing was done. It is too long, or
// an earlier message is in flight, or another thread polls, or the target does more than usual.
[[nodiscard]] bool put_to_self(NetworkInterface& interface, Peer& peer,
                               const Request& request) noexcept;

}  // namespace lintel
