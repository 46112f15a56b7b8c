// Dividing a segment into lanes, and checking how another process divided its own. Set-up path.
#include "shm/segment_layout.h"

namespace lintel {

namespace {

// Each lane, with its control block, fills whole pages, so that an unused lane costs no memory. The
// first peers get the deep lanes; every class can carry the largest message. A stream of 4 KiB
// messages is fastest if the ring of a deep lane takes half of a second-level cache of 1 MiB.
constexpr LaneGeometry class_geometry[lane_classes] = {
    {254, 512 * 1024},
    {62, 32 * 1024},
    {30, 16 * 1024},
};
static_assert(class_geometry[0].valid() && class_geometry[0].bytes() % segment_page_bytes == 0);
static_assert(class_geometry[1].valid() && class_geometry[1].bytes() % segment_page_bytes == 0);
static_assert(class_geometry[2].valid() && class_geometry[2].bytes() % segment_page_bytes == 0);

// Shares of the deep classes in percent; the rest goes to the small lanes.
constexpr unsigned class_percent[lane_classes] = {28, 8, 100};

}  // namespace

SegmentGeometry SegmentGeometry::plan(uint64_t memory_bytes) noexcept {
  SegmentGeometry result;
  if (memory_bytes > segment_max_bytes) memory_bytes = segment_max_bytes;
  uint64_t offset = first_lane_offset;
  for (unsigned i = 0; i < lane_classes; ++i) {
    const LaneGeometry& geometry = class_geometry[i];
    uint64_t share = memory_bytes / 100 * class_percent[i];
    const uint64_t left = memory_bytes > offset ? memory_bytes - offset : 0;
    if (share > left) share = left;
    uint64_t lanes = share / geometry.bytes();
    const uint32_t lanes_left = segment_max_lanes - result.lane_count;
    if (lanes > lanes_left) lanes = lanes_left;
    result.classes[i] = {static_cast<uint32_t>(lanes), geometry.cells, geometry.data_bytes,
                         static_cast<uint32_t>(geometry.bytes()), offset};
    result.lane_count += static_cast<uint32_t>(lanes);
    offset += lanes * geometry.bytes();
  }
  result.segment_bytes = offset;
  return result;
}

SegmentGeometry SegmentGeometry::checked(const SegmentIdentity& identity,
                                         uint64_t file_bytes) noexcept {
  SegmentGeometry result;
  uint64_t lanes = 0;
  for (unsigned i = 0; i < lane_classes; ++i) {
    const LaneClass c = identity.classes[i];
    const LaneGeometry geometry{c.cells, c.data_bytes};
    if (!geometry.valid() || c.stride_bytes < geometry.bytes() || c.lanes > segment_max_lanes ||
        c.stride_bytes % alignof(LaneControl) != 0 || c.offset_bytes % segment_page_bytes != 0 ||
        c.offset_bytes < first_lane_offset || c.offset_bytes > file_bytes ||
        uint64_t{c.lanes} * c.stride_bytes > file_bytes - c.offset_bytes) {
      return {};
    }
    result.classes[i] = c;
    lanes += c.lanes;
  }
  if (lanes == 0 || lanes > segment_max_lanes) return {};
  result.lane_count = static_cast<uint32_t>(lanes);
  result.segment_bytes = file_bytes;
  return result;
}

SegmentGeometry::Place SegmentGeometry::place(uint32_t lane) const noexcept {
  unsigned i = 0;
  while (i + 1 < lane_classes && lane >= classes[i].lanes) lane -= classes[i++].lanes;
  const LaneClass& c = classes[i];
  return {c.offset_bytes + uint64_t{lane} * c.stride_bytes, c.stride_bytes,
          LaneGeometry{c.cells, c.data_bytes}};
}

}  // namespace lintel
