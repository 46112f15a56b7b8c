// A short put of a process to itself: PtlPut delivers, reports and acknowledges it. Message path.
#pragma once

#include "core/operations/peer.h"
#include "core/request.h"

namespace lintel {

class NetworkInterface;

// The longest put to the own process that PtlPut delivers itself.
inline constexpr size_t largest_put_to_self = 64;

// Starts an eager put to `self`, the own process. Sends it as start_put() if it is too long, or an
// earlier message is in flight, or another thread polls, or the target does more than usual.
[[nodiscard]] int put_to_self(NetworkInterface& interface, Peer& self, Request& request) noexcept;

}  // namespace lintel
