// Early frames in order. Message path.
#include "reliable/receive_window.h"

#include "util/assert.h"

namespace lintel {

inline void ReceiveWindow::check() const noexcept {
#ifdef LINTEL_ASSERTIONS
  uint64_t bytes = 0;
  const FrameBuffer* last = nullptr;
  for (const FrameBuffer* frame = early_; frame != nullptr; frame = frame->next) {
    const int32_t ahead = sequence_distance(frame->sequence, expected_);
    LINTEL_ASSERT(ahead >= 0 && ahead < int32_t{selective_reach});
    LINTEL_ASSERT(last == nullptr || sequence_distance(frame->sequence, last->sequence) > 0);
    bytes += frame->length;
    last = frame;
  }
  LINTEL_ASSERT(last == last_early_ && bytes == early_bytes_);
#endif
}

FrameBuffer* ReceiveWindow::take_all() noexcept {
  FrameBuffer* all = early_;
  early_ = last_early_ = nullptr;
  early_bytes_ = 0;
  return all;
}

ReceiveWindow::Place ReceiveWindow::place_of(uint32_t sequence) const noexcept {
  const int32_t ahead = sequence_distance(sequence, expected_);
  if (ahead == 0) return Place::next;
  if (ahead < 0) return Place::duplicate;
  if (ahead >= int32_t{selective_reach}) return Place::beyond;
  if (last_early_ == nullptr || sequence_distance(sequence, last_early_->sequence) > 0)
    return Place::early;
  for (const FrameBuffer* frame = early_; frame != nullptr; frame = frame->next)
    if (frame->sequence == sequence) return Place::duplicate;
  return Place::early;
}

void ReceiveWindow::keep(FrameBuffer* frame) noexcept {
  early_bytes_ += frame->length;
  FrameBuffer** link = &early_;
  // Mostly it is the newest.
  if (last_early_ != nullptr && sequence_distance(frame->sequence, last_early_->sequence) > 0)
    link = &last_early_->next;
  while (*link != nullptr && sequence_distance((*link)->sequence, frame->sequence) < 0)
    link = &(*link)->next;
  frame->next = *link;
  *link = frame;
  if (frame->next == nullptr) last_early_ = frame;
  check();
}

FrameBuffer* ReceiveWindow::take_expected() noexcept {
  FrameBuffer* frame = early_;
  if (frame == nullptr || frame->sequence != expected_) return nullptr;
  check();
  early_ = frame->next;
  if (early_ == nullptr) last_early_ = nullptr;
  early_bytes_ -= frame->length;
  return frame;
}

unsigned ReceiveWindow::selective_words(
    uint64_t (&words)[1 + most_selective_words]) const noexcept {
  unsigned count = 1;
  for (uint64_t& word : words) word = 0;
  for (const FrameBuffer* frame = early_; frame != nullptr; frame = frame->next) {
    const int32_t bit = sequence_distance(frame->sequence, expected_) - 1;
    if (bit < 0) continue;
    const auto word = static_cast<unsigned>(bit) / 64;
    if (word > most_selective_words) break;
    words[word] |= uint64_t{1} << (bit % 64);
    if (word + 1 > count) count = word + 1;
  }
  return count;
}

}  // namespace lintel
