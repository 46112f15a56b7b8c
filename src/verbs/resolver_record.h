// The answer to the question where datagrams of a process go: one record of fixed size over TCP.
// Connection path. It is used for the first datagram only: the handshake of the reliability layer
// proves which process is there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "transport/message.h"

namespace lintel {

static_assert(std::endian::native == std::endian::little,
              "records are written as they lie in memory");

inline constexpr uint32_t resolver_magic = 0x4c54'4256;  // "VBTL"
inline constexpr uint16_t resolver_version = 1;
inline constexpr uint8_t resolver_flag_roce = 0x01;

struct ResolverRecord {
  uint32_t magic;
  uint16_t version;
  uint8_t flags;
  uint8_t reserved;
  uint32_t nid;  // nid of the process that the record describes
  uint32_t pid;
  uint8_t gid[16];
  uint32_t queue_pair;
  uint32_t q_key;
  uint32_t mtu;  // largest datagram that the process takes, in bytes
  uint16_t lid;  // InfiniBand
  uint16_t reserved_too;
  uint32_t unused[3];
  uint32_t check;  // CRC-32C of everything before
};
static_assert(sizeof(ResolverRecord) == 64 && alignof(ResolverRecord) == 4);
static_assert(offsetof(ResolverRecord, nid) == 8 && offsetof(ResolverRecord, gid) == 16);
static_assert(offsetof(ResolverRecord, queue_pair) == 32 && offsetof(ResolverRecord, lid) == 44);
static_assert(offsetof(ResolverRecord, check) == 60);

// Destination of datagrams to a process.
struct UdDestination {
  ibv_gid gid{};
  uint16_t lid = 0;
  bool is_roce = false;
  uint32_t queue_pair = 0;
  uint32_t q_key = 0;
  uint32_t mtu = 0;
};

// Returns why nothing can be sent there by a port of that kind; nullptr: it can.
[[nodiscard]] const char* why_not_sent_to(const UdDestination& destination, bool is_roce) noexcept;

[[nodiscard]] ResolverRecord make_record(ProcessId id, const UdDestination& destination) noexcept;

// Reads `destination` from a record. `is_roce`: the own port is RoCE. Returns nullptr if the record
// is one of `id` and the own port can send there, otherwise a clause that says what is wrong.
[[nodiscard]] const char* read_record(const ResolverRecord& record, ProcessId id, bool is_roce,
                                      UdDestination& destination) noexcept;

}  // namespace lintel
