// The cells of a lane as a ring, and a place in it. Each side has its own objects. Message path.
#pragma once

#include <cstdint>

#include "lane/lane_layout.h"
#include "util/assert.h"

namespace lintel {

// Place at which a message is written or read: a cell and a lap of the ring.
class CellPlace {
 public:
  [[nodiscard]] uint32_t cell() const noexcept { return word_ & ~lap_mask; }
  // Returns the link word that publishes a message with a payload of that length there.
  [[nodiscard]] uint32_t link_word(uint32_t length) const noexcept {
    return (word_ & lap_mask) | length;
  }
  [[nodiscard]] bool is_published_by(uint32_t link_word) const noexcept {
    return ((link_word ^ word_) & lap_mask) == 0;
  }
  // A lap begins with cell 0.
  void move_to(uint32_t cell) noexcept {
    word_ = (word_ & lap_mask) | cell;
    if (cell != 0) return;
    word_ += first_lap;
    if ((word_ & lap_mask) == 0) word_ = first_lap;
  }

 private:
  static constexpr uint32_t lap_mask = 0xffff0000;
  static constexpr uint32_t first_lap = 0x10000;
  uint32_t word_ = first_lap;
};

class CellRing {
 public:
  CellRing() = default;
  CellRing(LaneControl* lane, const LaneGeometry& geometry) noexcept
      : cells_(cells_of(lane)), count_(geometry.cells), step_(geometry.cell_after(0, 1)) {}

  [[nodiscard]] uint32_t count() const noexcept { return count_; }
  [[nodiscard]] LaneCell& at(CellPlace place) const noexcept {
    LINTEL_ASSERT(place.cell() < count_);
    return cells_[place.cell()];
  }
  void advance(CellPlace& place) const noexcept { place.move_to(sum(place.cell(), step_)); }
  // The cell of a later message; `cells`: LaneGeometry::cell_after(0, how much later).
  [[nodiscard]] LaneCell& beyond(CellPlace place, uint32_t cells) const noexcept {
    return cells_[sum(place.cell(), cells)];
  }
  // The number of the cell that many messages before, at most count().
  [[nodiscard]] uint32_t cell_before(CellPlace place, uint32_t messages) const noexcept {
    LINTEL_ASSERT(messages <= count_);
    return sum(place.cell(), count_ - messages * step_ % count_);
  }

 private:
  [[nodiscard]] uint32_t sum(uint32_t cell, uint32_t cells) const noexcept {
    return cell + cells >= count_ ? cell + cells - count_ : cell + cells;
  }

  LaneCell* cells_ = nullptr;
  uint32_t count_ = 0;
  uint32_t step_ = 0;  // cells from one message to the next
};

}  // namespace lintel
