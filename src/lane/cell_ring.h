// The cells of a lane as a ring, and a place in it. Each side has its own objects. Message path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/lane_layout.h"
#include "util/assert.h"

namespace lintel {

class CellRing;

// Place at which a message is written or read: a cell and a lap of the ring.
class CellPlace {
 public:
  [[nodiscard]] LaneCell& cell() const noexcept { return *cell_; }
  // Returns the link word that publishes a message with a payload of that length there.
  [[nodiscard]] uint32_t link_word(uint32_t length) const noexcept { return lap_ | length; }
  [[nodiscard]] bool is_published_by(uint32_t link_word) const noexcept {
    return (link_word ^ lap_) < first_lap;
  }

 private:
  friend CellRing;
  static constexpr uint32_t first_lap = 0x10000;
  LaneCell* cell_ = nullptr;
  uint32_t lap_ = first_lap;
};

class CellRing {
 public:
  CellRing() = default;
  CellRing(LaneControl* lane, const LaneGeometry& geometry) noexcept
      : first_(cells_of(lane)),
        end_(first_ + geometry.cells),
        bytes_(geometry.cells * sizeof(LaneCell)),
        step_bytes_(geometry.bytes_after(1)) {}

  [[nodiscard]] uint32_t count() const noexcept { return static_cast<uint32_t>(end_ - first_); }
  [[nodiscard]] CellPlace start() const noexcept {
    CellPlace place;
    place.cell_ = first_;
    return place;
  }
  // A lap begins with the first cell.
  void advance(CellPlace& place) const noexcept {
    place.cell_ = &beyond(place, step_bytes_);
    if (place.cell_ != first_) [[likely]]
      return;
    place.lap_ += CellPlace::first_lap;
    if (place.lap_ == 0) place.lap_ = CellPlace::first_lap;
  }
  // The cell of a later message; `bytes`: LaneGeometry::bytes_after(how much later).
  [[nodiscard]] LaneCell& beyond(CellPlace place, uint64_t bytes) const noexcept {
    LINTEL_ASSERT(place.cell_ >= first_ && place.cell_ < end_ && bytes < bytes_);
    std::byte* const cell = reinterpret_cast<std::byte*>(place.cell_) + bytes;
    const bool wraps = cell >= reinterpret_cast<std::byte*>(end_);
    return *reinterpret_cast<LaneCell*>(wraps ? cell - bytes_ : cell);
  }

 private:
  LaneCell* first_ = nullptr;
  LaneCell* end_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t step_bytes_ = 0;  // distance from one message to the next
};

}  // namespace lintel
