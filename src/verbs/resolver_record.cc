// Writing and judging records. Connection path.
#include "verbs/resolver_record.h"

#include <cstring>

#include "transport/packet_link.h"
#include "util/crc32c.h"

namespace lintel {

namespace {

constexpr uint32_t queue_pair_bits = 24;
constexpr uint32_t first_queue_pair = 2;         // 0 and 1 belong to the management of the network
constexpr uint32_t privileged_q_key = 1u << 31;  // means another one
constexpr uint16_t first_multicast_lid = 0xc000;

uint32_t check_of(const ResolverRecord& record) noexcept {
  return crc32c(~0u, &record, offsetof(ResolverRecord, check));
}

}  // namespace

ResolverRecord make_record(ProcessId id, const UdDestination& destination) noexcept {
  ResolverRecord record{};
  record.magic = resolver_magic;
  record.version = resolver_version;
  record.flags = destination.is_roce ? resolver_flag_roce : 0;
  record.nid = id.nid;
  record.pid = id.pid;
  std::memcpy(record.gid, destination.gid.raw, sizeof record.gid);
  record.queue_pair = destination.queue_pair;
  record.q_key = destination.q_key;
  record.mtu = destination.mtu;
  record.lid = destination.lid;
  record.check = check_of(record);
  return record;
}

const char* read_record(const ResolverRecord& record, ProcessId id, bool is_roce,
                        UdDestination& destination) noexcept {
  if (record.magic != resolver_magic) return "what answers there is not a process of this library";
  if (record.version != resolver_version)
    return "it speaks another version of the protocol; use the same library everywhere";
  if (record.check != check_of(record)) return "its answer is damaged";
  if (record.nid != id.nid || record.pid != id.pid) return "another process answers there";
  UdDestination read;
  std::memcpy(read.gid.raw, record.gid, sizeof record.gid);
  read.lid = record.lid;
  read.is_roce = (record.flags & resolver_flag_roce) != 0;
  read.queue_pair = record.queue_pair;
  read.q_key = record.q_key;
  read.mtu = record.mtu;
  if (const char* const wrong = why_not_sent_to(read, is_roce)) return wrong;
  destination = read;
  return nullptr;
}

const char* why_not_sent_to(const UdDestination& destination, bool is_roce) noexcept {
  if (destination.is_roce != is_roce)
    return is_roce ? "its device is on InfiniBand and ours on Ethernet"
                   : "its device is on Ethernet and ours on InfiniBand";
  if (destination.queue_pair < first_queue_pair || destination.queue_pair >> queue_pair_bits != 0 ||
      (destination.q_key & privileged_q_key) != 0 || destination.mtu < PacketLink::least_mtu ||
      destination.mtu > PacketLink::largest_mtu)
    return "its answer is malformed";
  static constexpr ibv_gid nothing{};
  const bool reachable = is_roce ? std::memcmp(&destination.gid, &nothing, sizeof nothing) != 0
                                 : destination.lid != 0 && destination.lid < first_multicast_lid;
  return reachable ? nullptr : "its device has no address";
}

}  // namespace lintel
