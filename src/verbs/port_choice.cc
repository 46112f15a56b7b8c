// Chooses a port by the descriptions of all ports. Set-up path.
#include "verbs/port_choice.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "util/text.h"

namespace lintel {

namespace {

constexpr uint32_t largest_gid_index = 255;  // address handles have one byte for it

bool is_empty(const ibv_gid& gid) noexcept {
  static constexpr ibv_gid nothing{};
  return std::memcmp(&gid, &nothing, sizeof gid) == 0;
}

bool is_link_local(const ibv_gid& gid) noexcept {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

// The larger the better; 0: not usable.
unsigned preference(const PortDescription& port, const PortGid& row, uint32_t nid) noexcept {
  if (is_empty(row.gid) || row.index > largest_gid_index) return 0;
  if (!port.is_ethernet) return 1;
  const uint32_t ipv4 = ipv4_of(row.gid);
  unsigned value = row.type == GidType::roce_v2 ? 16 : 1;
  if (ipv4 != 0) value += 8;
  if (ipv4 != 0 && ipv4 == nid) value += 4;
  if (!is_link_local(row.gid)) value += 2;
  return value;
}

const char* state_text(ibv_port_state state) noexcept {
  switch (state) {
    case IBV_PORT_DOWN:
      return "is down";
    case IBV_PORT_INIT:
      return "waits for a subnet manager";
    case IBV_PORT_ARMED:
      return "is about to come up";
    case IBV_PORT_ACTIVE:
      return "is active";
    case IBV_PORT_ACTIVE_DEFER:
      return "is active but has lost its link";
    default:
      return "has no state";
  }
}

const char* remedy(const PortDescription& port) noexcept {
  if (port.state == IBV_PORT_INIT) return "start a subnet manager (opensm) on the network";
  return port.is_ethernet ? "bring its network interface up (rdma link show names it)"
                          : "look at its cable and at ibstat";
}

// Why a port cannot be used; empty: it can, apart from its GIDs.
std::string fault_of(const PortDescription& port) {
  if (!port.fault.empty() || port.state == IBV_PORT_ACTIVE) return port.fault;
  return text_of(port_name(port.device, port.port), " ", state_text(port.state), "; ",
                 remedy(port));
}

struct WantedDevice {
  std::string name;
  unsigned port = 0;  // 0: any
  bool valid = true;
};

WantedDevice parse_device(const std::string& text) {
  WantedDevice wanted;
  const size_t colon = text.rfind(':');
  wanted.name = text.substr(0, colon);
  if (colon == std::string::npos) return wanted;
  const std::string number = text.substr(colon + 1);
  char* end = nullptr;
  const unsigned long port = std::strtoul(number.c_str(), &end, 10);
  wanted.valid = !number.empty() && *end == '\0' && port >= 1 && port <= 255;
  wanted.port = static_cast<unsigned>(port);
  return wanted;
}

std::string list_of(const std::vector<PortDescription>& ports) {
  std::string text;
  for (const PortDescription& port : ports)
    text.append(text.empty() ? "" : ", ").append(port_name(port.device, port.port));
  return text;
}

}  // namespace

uint32_t ipv4_of(const ibv_gid& gid) noexcept {
  static constexpr uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(gid.raw, mapped, sizeof mapped) != 0) return 0;
  uint32_t word;
  std::memcpy(&word, gid.raw + sizeof mapped, sizeof word);
  return ntohl(word);
}

bool shares_network(const ibv_gid& a, const ibv_gid& b, unsigned bits) noexcept {
  const unsigned bytes = bits / 8;
  const unsigned rest = bits % 8;
  return std::memcmp(a.raw, b.raw, bytes) == 0 &&
         (rest == 0 || (a.raw[bytes] ^ b.raw[bytes]) >> (8 - rest) == 0);
}

bool choose_gid(const PortDescription& port, int wanted_index, uint32_t nid, uint32_t& row,
                std::string& reason) {
  unsigned best = 0;
  for (uint32_t i = 0; i < port.gids.size(); ++i) {
    const PortGid& gid = port.gids[i];
    const unsigned value = preference(port, gid, nid);
    if (wanted_index >= 0) {
      if (gid.index != static_cast<uint32_t>(wanted_index) || value == 0) continue;
      row = i;
      return true;
    }
    if (value <= best) continue;
    best = value;
    row = i;
  }
  if (best != 0) return true;
  const std::string name = port_name(port.device, port.port);
  reason = wanted_index >= 0
               ? text_of(name, " has no GID with the index ", wanted_index,
                         " (PTL_VERBS_GID_INDEX); show_gids lists those that there are")
               : text_of(name, " has no GID; give its network interface an IPv4 address");
  return false;
}

uint32_t nid_of(const PortDescription& port, uint32_t gid_row) noexcept {
  if (!port.is_ethernet) return port.ipoib_ipv4;
  const PortGid& row = port.gids[gid_row];
  const uint32_t ipv4 = ipv4_of(row.gid);
  return ipv4 != 0 ? ipv4 : row.interface_ipv4;
}

PortChoice choose_port(const std::vector<PortDescription>& ports, const VerbsPortWish& wish) {
  PortChoice choice;
  const WantedDevice wanted = parse_device(wish.device);
  if (!wanted.valid) {
    choice.reason =
        text_of("PTL_VERBS_DEVICE=", wish.device,
                " is not a device, or a device with the number of a port as in mlx5_0:1");
    return choice;
  }
  std::string fault;  // fault of the first port that would have been used
  bool listed = false;
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortDescription& port = ports[i];
    if (!wanted.name.empty() && wanted.name != port.device) continue;
    if (wanted.port != 0 && wanted.port != port.port) continue;
    listed = true;
    std::string why_not = fault_of(port);
    uint32_t row = 0;
    if (!why_not.empty() || !choose_gid(port, wish.gid_index, wish.nid, row, why_not)) {
      if (fault.empty()) fault = why_not;
      continue;
    }
    const uint32_t nid = nid_of(port, row);
    const bool has_wanted_nid = wish.nid != 0 && nid == wish.nid;
    if (choice.found && !has_wanted_nid) continue;
    choice = {true, i, row, nid, ""};
    choice.reason = !wish.device.empty() ? wish.reason
                    : has_wanted_nid     ? "the active port with the address that is the nid"
                                         : "the first active port";
    if (has_wanted_nid) break;
  }
  if (choice.found) return choice;
  if (!fault.empty()) {
    choice.reason = fault;
  } else if (ports.empty()) {
    choice.reason = "there is no RDMA device on this node";
  } else if (!listed) {
    choice.reason = text_of("PTL_VERBS_DEVICE=", wish.device, ": there is no such port; there are ",
                            list_of(ports));
  }
  return choice;
}

std::string nearest_port(const std::vector<PortDescription>& ports, const std::string& first,
                         uint32_t local_rank) {
  const auto chosen = std::find_if(ports.begin(), ports.end(), [&](const PortDescription& port) {
    return port_name(port.device, port.port) == first;
  });
  std::vector<std::string> near;
  uint32_t row = 0;
  std::string ignored;
  if (chosen == ports.end() || !choose_gid(*chosen, -1, 0, row, ignored)) return first;
  const PortGid& of_first = chosen->gids[row];
  const auto shares_network_with_first = [&](const PortGid& gid) {
    return shares_network(gid.gid, of_first.gid, std::max(gid.network_bits, of_first.network_bits));
  };
  for (const PortDescription& port : ports)
    if (port.is_near && port.is_ethernet == chosen->is_ethernet && fault_of(port).empty() &&
        choose_gid(port, -1, 0, row, ignored) && shares_network_with_first(port.gids[row]))
      near.push_back(port_name(port.device, port.port));
  return near.empty() ? first : near[local_rank % near.size()];
}

std::vector<std::string> further_ports(const std::vector<PortDescription>& ports,
                                       const std::string& first, unsigned most) {
  const auto name = [](const PortDescription& port) { return port_name(port.device, port.port); };
  const auto chosen = std::find_if(
      ports.begin(), ports.end(), [&](const PortDescription& port) { return name(port) == first; });
  std::vector<std::string> names;
  uint32_t row = 0;
  std::string ignored;
  for (const bool near : {true, false})
    for (const PortDescription& port : ports)
      if (chosen != ports.end() && names.size() + 1 < most && port.is_near == near &&
          &port != &*chosen && port.is_ethernet == chosen->is_ethernet && fault_of(port).empty() &&
          choose_gid(port, -1, 0, row, ignored))
        names.push_back(name(port));
  return names;
}

std::string port_name(const std::string& device, unsigned port) {
  return text_of(device, ":", port);
}

std::string gid_address_text(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  return text;
}

std::string gid_text(const PortGid& row) {
  static constexpr const char* types[] = {"InfiniBand", "RoCE v1", "RoCE v2"};
  return text_of(types[static_cast<unsigned>(row.type)], " GID ", row.index, " (",
                 gid_address_text(row.gid), ")");
}

}  // namespace lintel
