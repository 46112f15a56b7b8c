// The receiving half of a connection: which numbered frame is next, which came early and wait for
// those before them, what is to be acknowledged. Message path; the connection's lock is held.
#pragma once

#include <cstdint>

#include "reliable/frame.h"
#include "reliable/frame_pool.h"

namespace lintel {

class ReceiveWindow {
 public:
  void open(uint32_t first_sequence) noexcept {
    *this = ReceiveWindow{};
    expected_ = first_sequence;
  }
  // Early frames, for the pool; none is left.
  [[nodiscard]] FrameBuffer* take_all() noexcept;

  enum class Place : uint8_t {
    next,       // the one that is expected
    early,      // others are missing before it
    duplicate,  // came already
    beyond,     // further ahead than any sender may go
  };
  [[nodiscard]] Place place_of(uint32_t sequence) const noexcept;

  // The expected frame was taken.
  void advance() noexcept { ++expected_; }
  // Keeps a copy of an early frame; or of the expected one, if it could not be taken after all.
  void keep(FrameBuffer* frame) noexcept;
  // The expected frame, if it came early; advance() is up to the caller. It goes out of the window.
  [[nodiscard]] FrameBuffer* take_expected() noexcept;

  [[nodiscard]] uint32_t expected() const noexcept { return expected_; }
  [[nodiscard]] bool has_expected() const noexcept {
    return early_ != nullptr && early_->sequence == expected_;
  }
  [[nodiscard]] bool has_early() const noexcept { return early_ != nullptr; }
  [[nodiscard]] uint64_t early_bytes() const noexcept { return early_bytes_; }
  // FrameHeader::selective, then as many more words as are needed; returns their number.
  [[nodiscard]] unsigned selective_words(
      uint64_t (&words)[1 + most_selective_words]) const noexcept;

 private:
  // Asserts the order of the early frames and their sum.
  void check() const noexcept;

  FrameBuffer* early_ = nullptr;  // by ascending number
  FrameBuffer* last_early_ = nullptr;
  uint64_t early_bytes_ = 0;
  uint32_t expected_ = 0;
};

}  // namespace lintel
