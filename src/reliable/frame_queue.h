// Frames of one direction of a connection in the order of their numbers: those that were sent and
// may have to be sent again, then those that were never sent. Message path.
#pragma once

#include <cstdint>

#include "reliable/frame.h"
#include "reliable/frame_pool.h"
#include "util/assert.h"

namespace lintel {

class FrameQueue {
 public:
  // Frames from one up to another, which does not belong to the range.
  class Range {
   public:
    class Iterator {
     public:
      explicit Iterator(FrameBuffer* frame) noexcept : frame_(frame) {}
      [[nodiscard]] FrameBuffer& operator*() const noexcept { return *frame_; }
      Iterator& operator++() noexcept {
        frame_ = frame_->next;
        return *this;
      }
      [[nodiscard]] bool operator!=(const Iterator& other) const noexcept {
        return frame_ != other.frame_;
      }

     private:
      FrameBuffer* frame_;
    };
    Range(FrameBuffer* first, FrameBuffer* end) noexcept : first_(first), end_(end) {}
    [[nodiscard]] Iterator begin() const noexcept { return Iterator(first_); }
    [[nodiscard]] Iterator end() const noexcept { return Iterator(end_); }

   private:
    FrameBuffer* first_;
    FrameBuffer* end_;
  };

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] FrameBuffer* oldest() const noexcept { return head_; }
  [[nodiscard]] bool any_unsent() const noexcept { return unsent_ != nullptr; }
  [[nodiscard]] FrameBuffer* newest_unsent() const noexcept {
    return unsent_ != nullptr ? tail_ : nullptr;
  }
  [[nodiscard]] Range sent() const noexcept { return {head_, unsent_}; }
  [[nodiscard]] Range unsent() const noexcept { return {unsent_, nullptr}; }
  [[nodiscard]] uint32_t frames() const noexcept { return frames_; }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] uint32_t unsent_frames() const noexcept { return unsent_frames_; }
  [[nodiscard]] uint64_t unsent_bytes() const noexcept { return unsent_bytes_; }

  void append(FrameBuffer& frame) noexcept {
    frame.next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = &frame;
    tail_ = &frame;
    if (unsent_ == nullptr) unsent_ = &frame;
    ++frames_;
    ++unsent_frames_;
    bytes_ += frame.length;
    unsent_bytes_ += frame.length;
  }
  // The newest unsent frame has become longer.
  void note_growth(uint32_t bytes) noexcept {
    LINTEL_ASSERT(unsent_ != nullptr);
    bytes_ += bytes;
    unsent_bytes_ += bytes;
  }
  // `frame`, the first of the unsent ones, was sent.
  void note_sent(const FrameBuffer& frame) noexcept {
    LINTEL_ASSERT(&frame == unsent_ && unsent_frames_ != 0 && unsent_bytes_ >= frame.length);
    --unsent_frames_;
    unsent_bytes_ -= frame.length;
    unsent_ = frame.next;
  }
  // Removes sent frames whose numbers are lower; calls action(FrameBuffer&) for each. Returns them
  // in a chain.
  template <typename Action>
  FrameBuffer* remove_before(uint32_t sequence, Action&& action) noexcept {
    FrameBuffer* const removed = head_;
    FrameBuffer* last = nullptr;
    while (head_ != unsent_ && sequence_distance(head_->sequence, sequence) < 0) {
      action(*head_);
      LINTEL_ASSERT(frames_ > unsent_frames_ && bytes_ >= head_->length);
      bytes_ -= head_->length;
      --frames_;
      last = head_;
      head_ = head_->next;
    }
    if (last == nullptr) return nullptr;
    last->next = nullptr;
    if (head_ == nullptr) tail_ = nullptr;
    return removed;
  }
  [[nodiscard]] FrameBuffer* remove_all() noexcept {
    FrameBuffer* const all = head_;
    *this = FrameQueue{};
    return all;
  }

 private:
  FrameBuffer* head_ = nullptr;
  FrameBuffer* tail_ = nullptr;
  FrameBuffer* unsent_ = nullptr;  // the first that was never sent
  uint32_t frames_ = 0;
  uint32_t unsent_frames_ = 0;
  uint64_t bytes_ = 0;
  uint64_t unsent_bytes_ = 0;
};

}  // namespace lintel
