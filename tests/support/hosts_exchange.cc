#include "support/hosts_exchange.h"

#include <portals4_lintel.h>

#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "support/memory.h"
#include "support/objects.h"

namespace lintel::test {

uint64_t put_all_to_all(Rank& rank, ptl_nid_t first_nid, ptl_nid_t last_nid) {
  constexpr ptl_pt_index_t pt_index = 4;
  constexpr std::size_t largest = largest_exchanged_put;
  const int ranks = rank.count();
  std::vector<std::byte> source(largest);
  std::vector<std::byte> target(largest * static_cast<std::size_t>(ranks));
  fill(source, static_cast<uint32_t>(rank.index()));
  const Interface interface(rank, matching_logical);
  const EventQueue arrivals(interface.handle(), 4096);
  const EventQueue events(interface.handle(), 4096);
  accept_puts(interface, pt_index, target, arrivals.handle());
  rank.barrier();
  EXPECT_EQ(interface.physical_id(0).phys.nid, first_nid);
  EXPECT_EQ(interface.physical_id(ranks - 1).phys.nid, last_nid);
  const Descriptor descriptor(interface.handle(), source, PTL_MD_EVENT_SEND_DISABLE,
                              events.handle());
  const ptl_size_t sizes[] = {0, 8, 1000, 5000, 100'000, largest};
  for (const ptl_size_t size : sizes) {
    for (int to = 0; to < ranks; ++to)
      must(PtlPut(descriptor.handle(), 0, size, PTL_ACK_REQ, interface.address(to), pt_index, 0,
                  largest * static_cast<ptl_size_t>(rank.index()), nullptr, 0));
    for (int to = 0; to < ranks; ++to) EXPECT_EQ(events.expect(PTL_EVENT_ACK).mlength, size);
  }
  for (std::size_t i = 0; i < std::size(sizes) * static_cast<std::size_t>(ranks); ++i)
    arrivals.expect(PTL_EVENT_PUT);
  for (int from = 0; from < ranks; ++from)
    expect_pattern(std::span(target).subspan(largest * static_cast<std::size_t>(from), largest),
                   static_cast<uint32_t>(from));
  rank.barrier();
  return static_cast<uint64_t>(interface.status(PTL_SR_LINTEL_PATHS_NARROWED));
}

uint64_t received_bytes(const std::string& network_interface) {
  std::ifstream table("/proc/self/net/dev");
  std::string line;
  while (std::getline(table, line)) {
    const size_t colon = line.find(network_interface + ":");
    if (colon == std::string::npos) continue;
    std::istringstream fields(line.substr(colon + network_interface.size() + 1));
    uint64_t bytes = 0;
    fields >> bytes;
    return bytes;
  }
  return 0;
}

void accept_puts(const Interface& interface, ptl_pt_index_t pt_index, std::span<std::byte> memory,
                 ptl_handle_eq_t events, unsigned options) {
  interface.allocate(pt_index, events);
  interface.append(pt_index, {.start = memory.data(),
                              .length = memory.size(),
                              .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options,
                              .ignore_bits = ~ptl_match_bits_t{0}});
}

}  // namespace lintel::test
