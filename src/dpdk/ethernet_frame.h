// Layout of frames of the reliability layer in Ethernet frames. Message path.
//
// The header has sixteen bytes, so that the frame behind it is aligned in the receiver's buffer. It
// contains the length, because Ethernet pads short frames.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/packet_link.h"

namespace lintel {

static_assert(std::endian::native == std::endian::little,
              "headers are written as they lie in memory");

using MacAddress = std::array<uint8_t, 6>;

inline constexpr MacAddress broadcast_mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

// The EtherType that IEEE 802 sets aside for protocols without one of their own ("local
// experimental").
inline constexpr uint16_t lintel_ether_type = 0x88b5;

// Kind of the data behind the header. Another layout of the header gets another number.
enum class EthernetKind : uint8_t {
  frame = 1,      // frame of the reliability layer, version 1 of this header
  discovery = 2,  // DiscoveryBody
};

struct EthernetHeader {
  MacAddress to;
  MacAddress from;
  uint8_t type[2];           // big endian, as all of Ethernet
  uint16_t kind_and_length;  // 2 bits of EthernetKind, 14 bits of bytes that follow
};
static_assert(sizeof(EthernetHeader) == 16 && alignof(EthernetHeader) == 2 &&
              offsetof(EthernetHeader, kind_and_length) == 14);
static_assert(sizeof(EthernetHeader) == PacketLink::headroom);

inline constexpr uint32_t longest_ethernet_body = (1u << 14) - 1;
// Number of bytes of the header above that Ethernet counts as payload.
inline constexpr uint32_t ethernet_payload_overhead = 2;
inline constexpr uint32_t ethernet_header_bytes = 14;

[[nodiscard]] inline EthernetHeader make_ethernet_header(const MacAddress& to,
                                                         const MacAddress& from, EthernetKind kind,
                                                         uint32_t length) noexcept {
  return {to,
          from,
          {lintel_ether_type >> 8, lintel_ether_type & 0xff},
          static_cast<uint16_t>(static_cast<uint32_t>(kind) << 14 | length)};
}

// A frame that has been looked at: everything in it is as it should be, as far as its header goes.
struct EthernetFrame {
  bool valid = false;
  EthernetKind kind = EthernetKind::frame;
  MacAddress from{};
  const std::byte* body = nullptr;
  uint32_t length = 0;
};

// Frames for others, of other protocols, without a proper source, or shorter than their length says
// are not valid. Broadcast is for discovery only.
[[nodiscard]] inline EthernetFrame parse_ethernet_frame(const std::byte* data, uint32_t length,
                                                        const MacAddress& own) noexcept {
  EthernetFrame frame;
  if (length < sizeof(EthernetHeader)) return frame;
  EthernetHeader header;
  std::memcpy(&header, data, sizeof header);
  frame.kind = static_cast<EthernetKind>(header.kind_and_length >> 14);
  frame.length = header.kind_and_length & longest_ethernet_body;
  frame.from = header.from;
  frame.body = data + sizeof header;
  const bool for_us =
      header.to == own || (header.to == broadcast_mac && frame.kind == EthernetKind::discovery);
  const bool from_one =
      (header.from[0] & 1) == 0 && header.from != MacAddress{} && header.from != own;
  frame.valid = header.type[0] == lintel_ether_type >> 8 &&
                header.type[1] == (lintel_ether_type & 0xff) && for_us && from_one &&
                (frame.kind == EthernetKind::frame || frame.kind == EthernetKind::discovery) &&
                frame.length <= length - sizeof header;
  return frame;
}

// A MAC address as a LinkAddress: one port belongs to one process.
[[nodiscard]] inline LinkAddress link_address_of(const MacAddress& mac) noexcept {
  LinkAddress address;
  std::memcpy(address.bytes.data(), mac.data(), mac.size());
  return address;
}
[[nodiscard]] inline MacAddress mac_of(const LinkAddress& address) noexcept {
  MacAddress mac{};  // else GCC 11 warns
  std::memcpy(mac.data(), address.bytes.data(), mac.size());
  return mac;
}

}  // namespace lintel
