// The portal table entries of an endpoint: a block with an index, which is in its name. Set-up
// path.
#pragma once

#include <portals4.h>

#include <cstdint>

#include "domain/network.h"
#include "wire/address.h"

namespace lintel::ofi {

inline constexpr Portal all_portals[] = {Portal::tagged, Portal::message,      Portal::rendezvous,
                                         Portal::memory, Portal::memory_event, Portal::memory_read};

[[nodiscard]] constexpr ptl_pt_index_t portal_of(uint32_t index, Portal which) noexcept {
  return index * portals_per_endpoint + static_cast<ptl_pt_index_t>(which);
}

// Allocates the first blocks, one after the other, that no endpoint of the process has. Returns 0
// or a negative error number.
[[nodiscard]] int allocate_blocks(const Network& network, uint32_t count, uint32_t& first);
void free_block(ptl_handle_ni_t interface, uint32_t index) noexcept;

// Peers ask whether this process lives (transfer/peer_check.h).
[[nodiscard]] int accept_probes(const Network& network, uint32_t index, ptl_handle_me_t& entry);

}  // namespace lintel::ofi
