// Acknowledgements in a line of the lane, four bytes each and no cell. The consumer reads that line
// while it waits for the next cell. An acknowledgement may overtake messages and be overtaken.
// Message path.
#pragma once

#include <cstdint>

#include "lane/lane_layout.h"
#include "util/assert.h"

namespace lintel {

// The producer's end.
class LaneAckWriter {
 public:
  void attach(LaneControl* lane) noexcept {
    lane_ = lane;
    sent_ = lane->acks_taken.load(std::memory_order_relaxed);
    room_end_ = sent_ + lane_ack_places;
    next_ = 0;
  }
  // Returns the number of cookies that found a place, from the first on. `count` is not 0.
  [[nodiscard]] unsigned push(const uint32_t* cookies, unsigned count) noexcept {
    LINTEL_ASSERT(count != 0);
    unsigned done = 0;
    while (done != count && has_room()) add(cookies[done++]);
    if (done != 0) publish();
    return done;
  }
  // One by one: add() while there is room, then publish() all.
  [[nodiscard]] bool has_room() noexcept { return sent_ != room_end_ || refresh_room(); }
  void add(uint32_t cookie) noexcept {
    LINTEL_ASSERT(next_ < lane_ack_places && sent_ != room_end_);
    lane_->acks.cookies[next_].store(cookie, std::memory_order_relaxed);
    next_ = next_ + 1 == lane_ack_places ? 0 : next_ + 1;
    ++sent_;
  }
  void publish() noexcept { lane_->acks.sent.store(sent_, std::memory_order_release); }

 private:
  [[nodiscard, gnu::noinline]] bool refresh_room() noexcept {
    const uint32_t taken = lane_->acks_taken.load(std::memory_order_acquire);
    if (sent_ - taken >= lane_ack_places) return false;
    room_end_ = taken + lane_ack_places;
    return true;
  }

  LaneControl* lane_ = nullptr;
  uint32_t sent_ = 0;      // acknowledgements ever added, modulo 2^32
  uint32_t room_end_ = 0;  // value of sent_ up to which places are known to be free
  uint32_t next_ = 0;      // place of the next one
};

// The consumer's end.
class LaneAckReader {
 public:
  void attach(LaneControl* lane) noexcept {
    lane_ = lane;
    taken_ = published_ = lane->acks_taken.load(std::memory_order_relaxed);
    next_ = 0;
  }
  [[nodiscard]] bool ready() const noexcept {
    return lane_->acks.sent.load(std::memory_order_relaxed) != taken_;
  }
  // Takes the only acknowledgement that waits. False: none waits, or more than one.
  [[nodiscard]] bool take_single(uint32_t& cookie) noexcept {
    if (lane_->acks.sent.load(std::memory_order_acquire) - taken_ != 1) return false;
    cookie = take_next();
    note_taken(1);
    return true;
  }
  // Copies all acknowledgements that wait into `cookies`, which has lane_ack_places, and gives
  // their places back. Returns their number. Sets `malformed` if the line has more than fit into
  // it.
  [[nodiscard]] unsigned take(uint32_t* cookies, bool& malformed) noexcept {
    const uint32_t count = lane_->acks.sent.load(std::memory_order_acquire) - taken_;
    if (count > lane_ack_places) [[unlikely]] {
      malformed = true;
      return 0;
    }
    for (unsigned i = 0; i < count; ++i) cookies[i] = take_next();
    note_taken(count);
    return count;
  }

 private:
  uint32_t take_next() noexcept {
    LINTEL_ASSERT(next_ < lane_ack_places);
    const uint32_t cookie = lane_->acks.cookies[next_].load(std::memory_order_relaxed);
    next_ = next_ + 1 == lane_ack_places ? 0 : next_ + 1;
    return cookie;
  }
  void note_taken(uint32_t count) noexcept {
    taken_ += count;
    LINTEL_ASSERT(taken_ - published_ <= 2 * lane_ack_places);
    if (taken_ - published_ < lane_ack_places / 2) return;
    published_ = taken_;
    lane_->acks_taken.store(taken_, std::memory_order_release);
  }

  LaneControl* lane_ = nullptr;
  uint32_t taken_ = 0;      // acknowledgements ever taken, modulo 2^32
  uint32_t published_ = 0;  // value of taken_ that was last published to the producer
  uint32_t next_ = 0;       // place of the next one
};

}  // namespace lintel
