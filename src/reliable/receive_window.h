// The receiving half of a connection: which numbered frame is next, which are kept until those
// before them have come, what is to be acknowledged. Message path. Only the poller changes it, with
// the connection's lock held.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "reliable/frame.h"
#include "reliable/frame_pool.h"
#include "reliable/peer_silence.h"
#include "reliable/reassembly.h"
#include "util/assert.h"

namespace lintel {

class ReceiveWindow {
 public:
  void open(uint32_t first_sequence) noexcept {
    *this = ReceiveWindow{};
    expected_ = first_sequence;
  }
  // The kept frames, for the pool; none is left.
  [[nodiscard]] FrameBuffer* take_all() noexcept {
    FrameBuffer* all = kept_;
    kept_ = newest_kept_ = nullptr;
    kept_bytes_ = 0;
    return all;
  }

  enum class Place : uint8_t {
    next,          // the one that is expected
    out_of_order,  // others are missing before it
    duplicate,     // came already
    beyond,        // further ahead than any sender may go
  };
  [[nodiscard]] Place place_of(uint32_t sequence) const noexcept {
    const int32_t ahead = sequence_distance(sequence, expected_);
    if (ahead == 0) return Place::next;
    if (ahead < 0) return Place::duplicate;
    if (ahead >= int32_t{selective_reach}) return Place::beyond;
    if (newest_kept_ == nullptr || sequence_distance(sequence, newest_kept_->sequence) > 0)
      return Place::out_of_order;
    for (const FrameBuffer* frame = kept_; frame != nullptr; frame = frame->next)
      if (frame->sequence == sequence) return Place::duplicate;
    return Place::out_of_order;
  }

  // The expected frame was taken.
  void advance() noexcept { ++expected_; }
  // Keeps a copy of a frame that is out of order; or of the expected one, if it could not be taken
  // after all.
  void keep(FrameBuffer* frame) noexcept {
    kept_bytes_ += frame->length;
    FrameBuffer** link = &kept_;
    // Mostly it is the newest.
    if (newest_kept_ != nullptr && sequence_distance(frame->sequence, newest_kept_->sequence) > 0)
      link = &newest_kept_->next;
    while (*link != nullptr && sequence_distance((*link)->sequence, frame->sequence) < 0)
      link = &(*link)->next;
    frame->next = *link;
    *link = frame;
    if (frame->next == nullptr) newest_kept_ = frame;
    check();
  }
  // The expected frame, if it was kept; advance() is up to the caller. It goes out of the window.
  [[nodiscard]] FrameBuffer* take_expected() noexcept {
    FrameBuffer* frame = kept_;
    if (frame == nullptr || frame->sequence != expected_) return nullptr;
    check();
    kept_ = frame->next;
    if (kept_ == nullptr) newest_kept_ = nullptr;
    kept_bytes_ -= frame->length;
    return frame;
  }

  [[nodiscard]] uint32_t expected() const noexcept { return expected_; }
  [[nodiscard]] bool has_expected() const noexcept {
    return kept_ != nullptr && kept_->sequence == expected_;
  }
  [[nodiscard]] bool has_kept() const noexcept { return kept_ != nullptr; }
  [[nodiscard]] uint64_t kept_bytes() const noexcept { return kept_bytes_; }
  // Acknowledgements name the last probe of the peer.
  void note_probe(uint32_t number) noexcept { probe_ = number; }
  [[nodiscard]] uint32_t probe() const noexcept { return probe_; }
  // The acknowledgement in every frame.
  void acknowledge_in(FrameHeader& header) const noexcept {
    header.acknowledged = expected_;
    if (kept_ == nullptr) return;
    uint64_t words[1 + most_selective_words];
    static_cast<void>(selective_words(words));
    header.selective = words[0];
  }
  // FrameHeader::selective, then as many more words as are needed; returns their number.
  [[nodiscard, gnu::noinline]] unsigned selective_words(
      uint64_t (&words)[1 + most_selective_words]) const noexcept {
    unsigned count = 1;
    for (uint64_t& word : words) word = 0;
    for (const FrameBuffer* frame = kept_; frame != nullptr; frame = frame->next) {
      const int32_t bit = sequence_distance(frame->sequence, expected_) - 1;
      if (bit < 0) continue;
      const auto word = static_cast<unsigned>(bit) / 64;
      if (word > most_selective_words) break;
      words[word] |= uint64_t{1} << (bit % 64);
      if (word + 1 > count) count = word + 1;
    }
    return count;
  }

 private:
  // Asserts the order of the kept frames and their sum.
  void check() const noexcept {
#ifdef LINTEL_ASSERTIONS
    uint64_t bytes = 0;
    const FrameBuffer* last = nullptr;
    for (const FrameBuffer* frame = kept_; frame != nullptr; frame = frame->next) {
      const int32_t ahead = sequence_distance(frame->sequence, expected_);
      LINTEL_ASSERT(ahead >= 0 && ahead < int32_t{selective_reach});
      LINTEL_ASSERT(last == nullptr || sequence_distance(frame->sequence, last->sequence) > 0);
      bytes += frame->length;
      last = frame;
    }
    LINTEL_ASSERT(last == newest_kept_ && bytes == kept_bytes_);
#endif
  }

  FrameBuffer* kept_ = nullptr;  // by ascending number
  FrameBuffer* newest_kept_ = nullptr;
  uint64_t kept_bytes_ = 0;
  uint32_t expected_ = 0;
  uint32_t probe_ = 0;
};

// Arrivals from a peer that were not acknowledged yet. The connection's lock is held.
class PendingAcknowledgement {
 public:
  static constexpr uint64_t age_unit_ns = 4096;  // of FrameHeader::ack_delay
  static constexpr uint64_t longest_backoff_ns = 100'000'000;

  // True: an acknowledgement has to go by deadline_ns(), and before there was none to go.
  [[nodiscard]] bool arrived(uint32_t bytes, uint64_t now_ns, uint64_t delay_ns) noexcept {
    newest_arrival_ns_ = now_ns;
    bytes_ += bytes;
    if (deadline_ns_ != UINT64_MAX) return false;
    deadline_ns_ = now_ns + delay_ns;
    return true;
  }
  // An acknowledgement was sent, by itself or with a frame.
  void sent() noexcept {
    bytes_ = 0;
    deadline_ns_ = UINT64_MAX;
  }
  // The link was full. The longer that lasts, the more rarely it is tried again: each attempt may
  // use up a counter of frames (frame_seal.h).
  void back_off(uint64_t now_ns, uint64_t least_ns) noexcept {
    LINTEL_ASSERT(least_ns <= longest_backoff_ns);
    const uint64_t gap_ns = elapsed_ns(refused_ns_, now_ns);
    refused_ns_ = now_ns;
    deadline_ns_ = now_ns + (gap_ns > 2 * longest_backoff_ns
                                 ? least_ns
                                 : std::max(least_ns, std::min(2 * gap_ns, longest_backoff_ns)));
    LINTEL_ASSERT(deadline_ns_ >= now_ns);
  }
  // Until its deadline, unless something more arrived.
  [[nodiscard]] bool is_backing_off(uint64_t now_ns) const noexcept {
    return now_ns < deadline_ns_ && deadline_ns_ != UINT64_MAX && refused_ns_ != 0 &&
           refused_ns_ >= newest_arrival_ns_;
  }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] uint64_t deadline_ns() const noexcept { return deadline_ns_; }
  // Age of the newest arrival, as FrameHeader::ack_delay.
  [[nodiscard]] uint8_t age(uint64_t now_ns) const noexcept {
    if (newest_arrival_ns_ == 0 || now_ns <= newest_arrival_ns_) return 0;
    return static_cast<uint8_t>(
        std::min<uint64_t>((now_ns - newest_arrival_ns_) / age_unit_ns, 255));
  }

 private:
  uint64_t bytes_ = 0;
  uint64_t newest_arrival_ns_ = 0;
  uint64_t deadline_ns_ = UINT64_MAX;
  uint64_t refused_ns_ = 0;  // when the link last was full
};

// The receiving half of a connection: its window, and what of frames and messages is not whole yet.
class ReceivingHalf {
 public:
  ReceiveWindow window;
  HalfMessage half;  // the poller's: an eager message of several frames
  FrameParts parts;  // the poller's: a frame in parts

  void open(uint32_t first_sequence) noexcept {
    LINTEL_ASSERT(half.buffer == nullptr && parts.is_empty() && !window.has_kept());
    window.open(first_sequence);
  }
  // Whether the peer must have more to send.
  [[nodiscard]] bool is_unfinished() const noexcept {
    LINTEL_ASSERT(half.buffer == nullptr || half.filled <= half.buffer->length);
    return half.buffer != nullptr || window.has_kept() || !parts.is_empty();
  }
};

}  // namespace lintel
