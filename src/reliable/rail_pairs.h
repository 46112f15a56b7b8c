// Which ports of this process send to which ones of a peer. Connection path.
#pragma once

#include <cstdint>
#include <span>

#include "transport/packet_link.h"

namespace lintel {

struct RailPairs {
  LinkAddress to[most_rails];     // of frames by each pair, in the order in which frames fill them
  LinkAddress ports[most_rails];  // of the peer, without a rail
  uint8_t port[most_rails] = {};  // of each pair, an index of `ports`
  uint8_t count = 0;              // of `to`; 0: there are no two pairs
  uint8_t proven = 0;             // the pair by which a frame has come
  uint8_t port_count = 0;

  // Whether frames from there, by any rail, are the peer's.
  [[nodiscard]] bool has_port(const LinkAddress& address) const noexcept;
  // Returns which port the probe of that number, from 0, tries.
  [[nodiscard]] uint8_t port_of_probe(unsigned pair, uint32_t probe) const noexcept {
    return static_cast<uint8_t>((port[pair] + probe) % port_count);
  }
  void aim(unsigned pair, uint8_t at) noexcept;
};

// Pairs each port once: that from which a frame has come, those of one network, then others, which
// routers or switches may join. Probes show which of them work. `told`: the ports of the peer.
// `from`: the address of that frame; if it is none of them, there are no pairs.
[[nodiscard]] RailPairs pair_rails(const PacketLink& link, ProcessId peer,
                                   std::span<const RailAddress> told,
                                   const LinkAddress& from) noexcept;

}  // namespace lintel
