// Record of the frames of a peer that have come, by their counters: a frame that an attacker
// repeats is taken once. Late frames within the window are taken, older ones are not. Message path;
// one thread.
#pragma once

#include <array>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

class ReplayWindow {
 public:
  static constexpr uint64_t frames = 4096;

  // No frame has come; counters begin at `first`, which is not 0.
  explicit ReplayWindow(uint64_t first = 1) noexcept : highest_(first - 1) {}

  // Returns the counter with that low half: the one closest to the highest that has come.
  [[nodiscard]] uint64_t whole(uint32_t low) const noexcept {
    const int64_t ahead = static_cast<int32_t>(low - static_cast<uint32_t>(highest_));
    return ahead < 0 && static_cast<uint64_t>(-ahead) > highest_
               ? 0
               : highest_ + static_cast<uint64_t>(ahead);
  }
  // Whether a frame may be new, before its tag is checked.
  [[nodiscard]] bool may_be_new(uint64_t counter) const noexcept {
    if (counter == 0) return false;
    if (counter > highest_) return true;
    return highest_ - counter < frames && !is_marked(counter);
  }
  // Notes that a frame has come whose tag is right.
  void mark(uint64_t counter) noexcept {
    LINTEL_ASSERT(may_be_new(counter));
    if (counter > highest_) {
      clear(highest_ + 1, counter);
      highest_ = counter;
    }
    words_[word_of(counter)] |= uint64_t{1} << (counter & 63);
  }

 private:
  static constexpr uint64_t word_of(uint64_t counter) noexcept {
    return counter / 64 % (frames / 64);
  }
  [[nodiscard]] bool is_marked(uint64_t counter) const noexcept {
    return (words_[word_of(counter)] >> (counter & 63) & 1) != 0;
  }
  // The bits of counters `from` to `to`, which the window is about to reach.
  void clear(uint64_t from, uint64_t to) noexcept {
    if (to - from >= frames) {
      words_.fill(0);
      return;
    }
    while (from <= to) {
      const bool whole_word = (from & 63) == 0 && to - from >= 63;
      if (whole_word)
        words_[word_of(from)] = 0;
      else
        words_[word_of(from)] &= ~(uint64_t{1} << (from & 63));
      from += whole_word ? 64 : 1;
    }
  }

  uint64_t highest_;
  std::array<uint64_t, frames / 64> words_{};
};

}  // namespace lintel
