// Layout of a shared segment: its owner writes it, its peers map and check it.
//
// One page of header, the table of lanes, then the lanes in size classes. A lane carries messages
// from one peer, which claims it in the table, to the owner of the segment. When all are claimed
// and another peer wants one, the owner recalls those that were used least recently.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lane/lane_layout.h"
#include "shm/joint_copy.h"
#include "transport/incarnation.h"
#include "util/doorbell.h"

namespace lintel {

inline constexpr uint64_t segment_magic = 0x314d48536c65746e;  // "ntelSHM1"
inline constexpr uint32_t segment_layout_version = 8;
inline constexpr uint32_t segment_page_bytes = 4096;
inline constexpr uint32_t segment_max_lanes = 1024;
inline constexpr uint64_t segment_max_bytes = uint64_t{1} << 32;
inline constexpr unsigned lane_classes = 3;

// State of a lane in the low 4 bits of LaneEntry::owner; the claimer's nonce, whose low 4 bits are
// zero, above it. Claiming and naming the claimer is thus one step, and an entry left behind by a
// claimer that died half way differs from one that is being claimed.
enum class LaneState : uint8_t {
  free = 0,      // may be claimed by anyone
  claiming = 1,  // the claimer fills in the other fields
  ready = 2,     // the lane is in use
  closing = 3,   // the claimer has finished: take what is left, then free it
  recalled = 4,  // the lane is in use; the owner requests its return
  returned = 5,  // the claimer writes no more here: take what is left, then free it
};
inline constexpr uint64_t lane_state_mask = incarnation_spare_bits;

struct alignas(64) LaneEntry {
  std::atomic<uint64_t> owner;
  uint32_t nid;
  uint32_t pid;
};
static_assert(sizeof(LaneEntry) == 64);

struct LaneClass {
  uint32_t lanes;
  uint32_t cells;
  uint32_t data_bytes;
  uint32_t stride_bytes;  // distance from one lane to the next
  uint64_t offset_bytes;  // offset of the first lane
};
static_assert(sizeof(LaneClass) == 24);

// Fixed before the segment gets its name.
struct SegmentIdentity {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t message_version;
  uint64_t segment_bytes;
  uint32_t lane_count;
  uint32_t job_hash;
  uint32_t nid;
  uint32_t pid;
  uint32_t uid;
  int32_t os_pid;
  uint64_t nonce;          // the incarnation of the process
  uint64_t nonce_address;  // address of the same value in the owner's private memory
  LaneClass classes[lane_classes];
};
static_assert(sizeof(SegmentIdentity) == 136 && std::is_trivially_copyable_v<SegmentIdentity>);

struct SegmentHeader {
  SegmentIdentity identity;
  Doorbell doorbell;
  // Counts changes: claims, closings, returns, requests for lanes, recalls.
  alignas(64) std::atomic<uint32_t> lane_generation;
  std::atomic<uint32_t> closed;  // the owner has finished
  // Written by peers that copy from or to memory of the owner: number of the offer in the upper
  // half, number of the peer's lane, plus 1, in the lower half.
  std::atomic<uint64_t> help_wanted;
  std::atomic<uint32_t> lanes_wanted;    // 1: a peer found no free lane
  std::atomic<uint32_t> lanes_freed;     // counts: senders that wait for a lane try again
  std::atomic<uint32_t> lanes_recalled;  // counts: peers want lanes back that the owner claimed
  JointCopy joint_copy;                  // offer of the owner
};
static_assert(offsetof(SegmentHeader, doorbell) == 192);
static_assert(offsetof(SegmentHeader, lane_generation) == 256 &&
              offsetof(SegmentHeader, joint_copy) == 320 && sizeof(SegmentHeader) == 640 &&
              sizeof(SegmentHeader) <= segment_page_bytes);

inline constexpr uint64_t lane_table_offset = segment_page_bytes;
inline constexpr uint64_t first_lane_offset =
    lane_table_offset + uint64_t{segment_max_lanes} * sizeof(LaneEntry);

inline LaneEntry* lane_table(SegmentHeader* segment) noexcept {
  return reinterpret_cast<LaneEntry*>(reinterpret_cast<std::byte*>(segment) + lane_table_offset);
}

// Places of the lanes of a segment. A private, checked copy of the data in the header.
struct SegmentGeometry {
  LaneClass classes[lane_classes]{};
  uint32_t lane_count = 0;
  uint64_t segment_bytes = 0;

  // The layout for a segment of at most `memory_bytes`; lane_count 0 if that is too little.
  [[nodiscard]] static SegmentGeometry plan(uint64_t memory_bytes) noexcept;
  // The layout that `identity`, a private copy, claims; lane_count 0 unless all of it is sound and
  // lies within `file_bytes`.
  [[nodiscard]] static SegmentGeometry checked(const SegmentIdentity& identity,
                                               uint64_t file_bytes) noexcept;

  struct Place {
    uint64_t offset_bytes;
    uint64_t length_bytes;
    LaneGeometry geometry;
  };
  // `lane` < lane_count.
  [[nodiscard]] Place place(uint32_t lane) const noexcept;
};

}  // namespace lintel
