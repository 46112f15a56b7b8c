// What ranks on several hosts do to show that each rank reaches every other, and over which
// network.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "support/interface.h"
#include "support/rank.h"

namespace lintel::test {

inline constexpr std::size_t largest_exchanged_put = 1 << 20;

// Every rank puts messages of several lengths to every rank, itself included, and checks every byte
// that it received. The nids are those that the first and the last rank must have. Returns on how
// many paths long frames were lost.
uint64_t put_all_to_all(Rank& rank, ptl_nid_t first_nid, ptl_nid_t last_nid);

// Bytes that a network interface of this namespace has received.
[[nodiscard]] uint64_t received_bytes(const std::string& network_interface);

// Appends one entry at `pt_index` that accepts puts of any process with any match bits.
void accept_puts(const Interface& interface, ptl_pt_index_t pt_index, std::span<std::byte> memory,
                 ptl_handle_eq_t events, unsigned options = 0);

}  // namespace lintel::test
