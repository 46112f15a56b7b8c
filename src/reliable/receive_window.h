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
  // Removes and returns all early frames. The caller releases them.
  [[nodiscard]] FrameBuffer* take_all() noexcept;

  enum class Place : uint8_t {
    next,       // the expected frame
    early,      // a frame before it is missing
    duplicate,  // the frame has come already
    beyond,     // the frame is further ahead than a sender may go
  };
  [[nodiscard]] Place place_of(uint32_t sequence) const noexcept;

  // The expected frame was taken.
  void advance() noexcept { ++expected_; }
  // Keeps a copy of an early frame; or of the expected one, if it could not be taken after all.
  void keep(FrameBuffer* frame) noexcept;
  // Removes and returns the expected frame, if it came early. The caller calls advance().
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

  FrameBuffer* early_ = nullptr;  // list in ascending order of numbers
  FrameBuffer* last_early_ = nullptr;
  uint64_t early_bytes_ = 0;
  uint32_t expected_ = 0;
};

}  // namespace lintel
