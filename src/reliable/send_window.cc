// Sending, acknowledgements, losses. Message path.
#include "reliable/send_window.h"

#include <algorithm>

#include "util/assert.h"

namespace lintel {

void SendWindow::open(uint32_t first_sequence, const SendLimits& limits,
                      uint64_t shortest_timeout_ns) noexcept {
  *this = SendWindow{};
  next_sequence_ = unsent_sequence_ = acknowledged_ = round_end_ = first_sequence;
  timer_.open(shortest_timeout_ns);
  charge_ = limits.charge;
  path_.open(limits.frame_bytes);
  congestion_.open(limits.window_bytes, charge_.of(limits.frame_bytes), limits.queue_delay_ns);
}

inline void SendWindow::check() const noexcept {
#ifdef LINTEL_ASSERTIONS
  uint64_t in_flight = 0;
  uint32_t lost = 0;
  uint32_t selectively_acknowledged = 0;
  for (const FrameBuffer& frame : queue_.sent()) {
    LINTEL_ASSERT(!frame.lost || !frame.acknowledged);
    LINTEL_ASSERT(!has_arrived_before(frame.sequence + 1) && was_sent_before(frame.sequence + 1));
    lost += frame.lost ? 1 : 0;
    selectively_acknowledged += frame.acknowledged ? 1 : 0;
    if (!frame.lost && !frame.acknowledged) in_flight += charge_of(frame);
  }
  LINTEL_ASSERT(in_flight == in_flight_);
  LINTEL_ASSERT(lost == lost_frames_);
  LINTEL_ASSERT(selectively_acknowledged == selectively_acknowledged_);
#endif
}

FrameBuffer* SendWindow::take_all() noexcept {
  in_flight_ = 0;
  lost_frames_ = selectively_acknowledged_ = 0;
  return queue_.remove_all();
}

unsigned SendWindow::collect(FrameBuffer** frames, unsigned max, bool& exhausted) noexcept {
  const uint64_t window = congestion_.window_bytes();
  uint64_t in_flight = in_flight_;
  unsigned count = 0;
  exhausted = false;
  // False: there is no room for it.
  const auto takes = [&](FrameBuffer& frame) {
    const uint64_t sum = in_flight + charge_of(frame);
    // If no frame is on the way, one is always sent, or there would never be an answer.
    if (sum > window && in_flight != 0) return false;
    in_flight = sum;
    frames[count++] = &frame;
    return true;
  };
  if (lost_frames_ != 0) [[unlikely]] {
    for (FrameBuffer& frame : queue_.sent()) {
      if (count == max || count == lost_frames_) break;
      if (!frame.lost) continue;
      if (!takes(frame)) {
        exhausted = true;
        return count;
      }
    }
  }
  for (FrameBuffer& frame : queue_.unsent()) {
    if (count == max) break;
    if (sequence_distance(frame.sequence, acknowledged_) >= int32_t{selective_reach} ||
        !takes(frame)) {
      exhausted = true;
      break;
    }
  }
  return count;
}

void SendWindow::mark_sent(FrameBuffer* const* frames, unsigned count, uint64_t now_ns) noexcept {
  if (count != 0 && in_flight_ == 0) timer_.start(now_ns);
  for (unsigned i = 0; i < count; ++i) {
    FrameBuffer& frame = *frames[i];
    LINTEL_ASSERT(!frame.acknowledged && frame.lost == (frame.transmission != 0));
    frame.sent_ns = now_ns;
    frame.repeated = frame.transmission != 0;
    frame.transmission = losses_.next_transmission();
    in_flight_ += charge_of(frame);
    if (frame.lost) {
      LINTEL_ASSERT(lost_frames_ != 0);
      frame.lost = false;
      --lost_frames_;
    } else {
      LINTEL_ASSERT(frame.sequence == unsent_sequence_);
      queue_.note_sent(frame);
      unsent_sequence_ = frame.sequence + 1;
    }
  }
}

inline void SendWindow::note_delivered(FrameBuffer& frame) noexcept {
  const uint64_t charge = charge_of(frame);
  LINTEL_ASSERT(frame.lost ? lost_frames_ != 0 : in_flight_ >= charge);
  if (frame.lost) {
    frame.lost = false;
    --lost_frames_;
  } else {
    in_flight_ -= charge;
    if (in_flight_ == 0) since_wanted_ = 0;
  }
  congestion_.delivered(charge);
  path_.delivered(frame.length);
  losses_.note_arrival(frame.transmission);
}

inline FrameBuffer* SendWindow::release_before(uint32_t acknowledged, Acknowledged& result,
                                               const FrameBuffer*& newest) noexcept {
  FrameBuffer* const released = queue_.remove_before(acknowledged, [&](FrameBuffer& frame) {
    if (frame.acknowledged) {
      LINTEL_ASSERT(selectively_acknowledged_ != 0);
      --selectively_acknowledged_;
    } else {
      note_delivered(frame);
      if (!frame.repeated) newest = &frame;
    }
  });
  if (released == nullptr) return nullptr;
  acknowledged_ = acknowledged;
  result.progress = true;
  return released;
}

void SendWindow::mark_selective(uint32_t acknowledged, std::span<const uint64_t> selective,
                                Acknowledged& result, const FrameBuffer*& newest) noexcept {
  for (FrameBuffer& frame : queue_.sent()) {
    const int32_t bit = sequence_distance(frame.sequence, acknowledged) - 1;
    if (bit < 0) continue;
    if (static_cast<size_t>(bit) >= selective.size() * 64) break;
    if ((selective[static_cast<size_t>(bit) / 64] >> (bit % 64) & 1) == 0 || frame.acknowledged)
      continue;
    note_delivered(frame);
    frame.acknowledged = true;
    ++selectively_acknowledged_;
    if (!frame.repeated) newest = &frame;
    result.progress = true;
  }
}

void SendWindow::detect_losses(Acknowledged& result, uint64_t now_ns) noexcept {
  const FrameBuffer* first = nullptr;
  for (FrameBuffer& frame : queue_.sent()) {
    if (frame.acknowledged || frame.lost || !losses_.is_lost(frame.transmission)) continue;
    frame.lost = true;
    ++lost_frames_;
    in_flight_ -= charge_of(frame);
    congestion_.lost(charge_of(frame));
    if (first == nullptr && frame.length > PathMtu::least_bytes) first = &frame;
    ++result.newly_lost;
  }
  if (first != nullptr) path_.lost(first->sequence, first->length, now_ns);
}

SendWindow::Acknowledged SendWindow::acknowledge(uint32_t acknowledged,
                                                 std::span<const uint64_t> selective,
                                                 uint64_t ack_delay_ns, uint64_t now_ns) noexcept {
  Acknowledged result;
  if (!was_sent_before(acknowledged)) return result;
  result.valid = true;
  if (sequence_distance(acknowledged, acknowledged_) < 0)
    return result;  // overtaken by a newer one
  const bool answered = std::exchange(answered_, false);
  const FrameBuffer* newest = nullptr;
  result.released = release_before(acknowledged, result, newest);
  // Released frames are still intact here.
  const auto since = [now_ns](const FrameBuffer& frame) {
    return now_ns > frame.sent_ns ? now_ns - frame.sent_ns : 0;
  };
  uint64_t sample_ns = newest != nullptr ? since(*newest) : 0;
  if (!queue_.empty()) {
    const FrameBuffer* newest_selective = nullptr;
    bool any = false;
    for (const uint64_t word : selective) any |= word != 0;
    if (any) mark_selective(acknowledged, selective, result, newest_selective);
    if (newest_selective != nullptr) sample_ns = since(*newest_selective);
    // Repeated frames may have been overtaken too, though nothing is acknowledged selectively now.
    if (answered ||
        (result.progress && (any || selectively_acknowledged_ != 0 || timer_.has_timed_out())))
      detect_losses(result, now_ns);
  }
  check();
  if (!result.progress) return result;
  timer_.note_progress(now_ns);
  if (sample_ns != 0) {
    if (sample_ns > ack_delay_ns) sample_ns -= ack_delay_ns;
    timer_.measure(sample_ns);
    congestion_.measured(sample_ns, now_ns);
  }
  if (sequence_distance(acknowledged_, round_end_) >= 0) {
    congestion_.round_ended();
    round_end_ = unsent_sequence_;
  }
  return result;
}

uint64_t SendWindow::deadline_ns() const noexcept {
  return in_flight_ == 0 ? UINT64_MAX : timer_.deadline_ns();
}

bool SendWindow::time_out(uint64_t now_ns) noexcept {
  if (!timer_.time_out(now_ns)) {
    losses_.renew_probe();
    return false;
  }
  for (FrameBuffer& frame : queue_.sent()) {
    if (frame.acknowledged || frame.lost) continue;
    frame.lost = true;
    ++lost_frames_;
  }
  in_flight_ = 0;
  check();
  congestion_.timed_out();
  return true;
}

// The length of frames says nothing about queues: the congestion window stays.
void SendWindow::follow_path() noexcept {
  congestion_.set_frame_bytes(charge_.of(path_.frame_bytes()));
  for (FrameBuffer& frame : queue_.sent()) {
    if (frame.acknowledged || frame.lost || !is_long(frame)) continue;
    frame.lost = true;
    ++lost_frames_;
    in_flight_ -= charge_of(frame);
  }
  has_long_ = false;
  for (const FrameQueue::Range range : {queue_.sent(), queue_.unsent()})
    for (const FrameBuffer& frame : range) {
      if (!is_long(frame)) continue;
      has_long_ = true;
      long_until_ = frame.sequence + 1;
    }
  check();
}

bool SendWindow::has_long_on_the_way() noexcept {
  if (sequence_distance(long_until_, acknowledged_) <= 0) has_long_ = false;
  for (const FrameBuffer& frame : queue_.sent())
    if (!frame.acknowledged && !frame.lost && is_long(frame)) return true;
  return false;
}

}  // namespace lintel
