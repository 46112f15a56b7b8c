#include "reliable/rail_pairs.h"

#include <algorithm>

namespace lintel {

namespace {

constexpr uint8_t none = UINT8_MAX;

// How well a pair suits; the larger the better. 0: not at all. `proven`: the address that works.
unsigned rank_of(const PacketLink& link, ProcessId peer, unsigned rail, const RailAddress& port,
                 const LinkAddress& proven) noexcept {
  const RailReach reach = link.reach(rail, port);
  return reach != RailReach::never && link.rail_address(peer, rail, port) == proven
             ? 3
             : static_cast<unsigned>(reach);
}

}  // namespace

bool RailPairs::has_port(const LinkAddress& address) const noexcept {
  return std::any_of(ports, ports + port_count,
                     [&](const LinkAddress& known) { return known == address.without_rail(); });
}

void RailPairs::aim(unsigned pair, uint8_t at) noexcept {
  const uint8_t rail = to[pair].rail();
  to[pair] = ports[at];
  to[pair].set_rail(rail);
}

RailPairs pair_rails(const PacketLink& link, ProcessId peer, std::span<const RailAddress> told,
                     const LinkAddress& from) noexcept {
  RailPairs pairs;
  const LinkProperties& own = link.properties();
  if (own.rail_count < 2 || told.size() < 2) return pairs;
  const LinkAddress proven = link.with_rail(peer, from);
  unsigned ranks[most_rails][most_rails];
  uint8_t places[most_rails];  // of the ports of the peer in `ports`
  for (unsigned other = 0; other < told.size(); ++other) {
    unsigned best = 0;
    for (unsigned rail = 0; rail < own.rail_count; ++rail)
      best = std::max(best, ranks[rail][other] = rank_of(link, peer, rail, told[other], proven));
    places[other] = best == 0 ? none : pairs.port_count;
    if (best != 0)
      pairs.ports[pairs.port_count++] = link.rail_address(peer, 0, told[other]).without_rail();
  }
  uint8_t partner[most_rails] = {none, none, none, none};
  bool taken[most_rails] = {};
  for (unsigned rank = 3; rank != 0; --rank)
    for (unsigned rail = 0; rail < own.rail_count; ++rail)
      for (uint8_t other = 0; other < told.size() && partner[rail] == none; ++other)
        if (!taken[other] && ranks[rail][other] >= rank) {
          partner[rail] = other;
          taken[other] = true;
        }
  for (unsigned place = 0; place < own.rail_count; ++place) {
    const unsigned rail = own.rail_at(place);
    if (partner[rail] == none) continue;
    pairs.port[pairs.count] = places[partner[rail]];
    pairs.to[pairs.count++] = link.rail_address(peer, rail, told[partner[rail]]);
  }
  LinkAddress* const end = pairs.to + pairs.count;
  LinkAddress* const works = std::find_if(pairs.to, end, [&](const LinkAddress& address) {
    return address.without_rail() == from.without_rail();
  });
  if (pairs.count < 2 || works == end) return {};
  *works = proven;
  pairs.proven = static_cast<uint8_t>(works - pairs.to);
  return pairs;
}

}  // namespace lintel
