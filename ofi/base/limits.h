// Abilities of the provider: constants of fi_getinfo, which the rest of it keeps to.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace lintel::ofi {

inline constexpr uint64_t transfer_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
inline constexpr uint64_t transmit_caps =
    transfer_caps | FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_TRIGGER | FI_HMEM;
inline constexpr uint64_t receive_caps =
    transfer_caps | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE |
    FI_SOURCE_ERR | FI_DIRECTED_RECV | FI_RMA_EVENT | FI_TRIGGER | FI_NAMED_RX_CTX | FI_HMEM;
inline constexpr uint64_t domain_caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_AV_USER_ID;
inline constexpr uint64_t all_caps = transmit_caps | receive_caps | domain_caps;

inline constexpr uint64_t transmit_op_flags = FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE |
                                              FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                              FI_MATCH_COMPLETE;
inline constexpr uint64_t receive_op_flags = FI_COMPLETION | FI_MULTI_RECV;

// Sends are matched in their order. Reads, writes and atomics up to ordered_bytes are carried out
// in theirs (spec 2.7.1).
inline constexpr uint64_t message_order =
    FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR |
    FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |
    FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
inline constexpr size_t ordered_bytes = 4096;

inline constexpr uint32_t address_format = FI_PROV_SPECIFIC | 0x4c4e;
inline constexpr uint32_t protocol = FI_PROV_SPECIFIC | 0x4c4e;
inline constexpr uint32_t protocol_version = 1;

// Bit 63 of the match bits is the provider's own.
inline constexpr uint64_t tag_bits = ~uint64_t{0} >> 1;
inline constexpr uint64_t tag_format = 0x5555555555555555;

inline constexpr size_t inject_bytes = 512;  // max_volatile_size
inline constexpr size_t most_message_bytes = size_t{1} << 46;
inline constexpr size_t most_segments = 4;  // elements of an array of iovec
// Operations with events at the initiator, which may be outstanding in a domain.
inline constexpr size_t most_transmits = 4096;
// Receives that are posted; more are held back by the provider.
inline constexpr size_t most_receives = 8192;
inline constexpr size_t data_bytes = 4;  // remote completion data
inline constexpr size_t key_bytes = 8;
inline constexpr size_t most_regions = 1 << 16;
inline constexpr size_t most_queues = 4096;
inline constexpr size_t most_endpoints = 256;  // of a process
inline constexpr size_t most_contexts = 16;    // of a scalable endpoint, of each kind

}  // namespace lintel::ofi
