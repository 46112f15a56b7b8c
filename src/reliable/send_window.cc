// Sending, acknowledgements, losses. Message path.
#include "reliable/send_window.h"

#include <algorithm>

#include "reliable/frame.h"

namespace lintel {

void SendWindow::open(uint32_t first_sequence, const SendLimits& limits,
                      uint64_t shortest_timeout_ns) noexcept {
  *this = SendWindow{};
  next_sequence_ = unsent_sequence_ = acknowledged_ = round_end_ = first_sequence;
  round_trip_.open(shortest_timeout_ns);
  charge_ = limits.charge;
  congestion_.open(limits.window_bytes, charge_.of(limits.frame_bytes), limits.queue_delay_ns);
}

FrameBuffer* SendWindow::take_all() noexcept {
  FrameBuffer* all = head_;
  head_ = tail_ = unsent_ = nullptr;
  queued_bytes_ = unsent_bytes_ = in_flight_ = 0;
  queued_frames_ = unsent_frames_ = lost_frames_ = selectively_acknowledged_ = 0;
  return all;
}

void SendWindow::append(FrameBuffer* frame) noexcept {
  frame->sequence = next_sequence_++;
  frame->next = nullptr;
  if (tail_ != nullptr)
    tail_->next = frame;
  else
    head_ = frame;
  tail_ = frame;
  if (unsent_ == nullptr) unsent_ = frame;
  ++queued_frames_;
  queued_bytes_ += frame->length;
  ++unsent_frames_;
  unsent_bytes_ += frame->length;
}

unsigned SendWindow::collect(FrameBuffer** frames, unsigned max, bool& exhausted) noexcept {
  const uint64_t window = congestion_.window_bytes();
  uint64_t in_flight = in_flight_;
  unsigned count = 0;
  exhausted = false;
  // False: there is no room for it.
  const auto takes = [&](FrameBuffer& frame) {
    const uint64_t sum = in_flight + charge_of(frame);
    // With nothing on the way one frame always goes, or there would never be an answer.
    if (sum > window && in_flight != 0) return false;
    in_flight = sum;
    frames[count++] = &frame;
    return true;
  };
  uint32_t lost = lost_frames_;
  for (FrameBuffer* frame = head_; lost != 0 && frame != unsent_ && count < max;
       frame = frame->next) {
    if (!frame->lost) continue;
    if (!takes(*frame)) {
      exhausted = true;
      return count;
    }
    --lost;
  }
  for (FrameBuffer* frame = unsent_; frame != nullptr && count < max; frame = frame->next) {
    if (sequence_distance(frame->sequence, acknowledged_) >= int32_t{selective_reach} ||
        !takes(*frame)) {
      exhausted = true;
      break;
    }
  }
  return count;
}

void SendWindow::mark_sent(FrameBuffer* const* frames, unsigned count, uint64_t now_ns) noexcept {
  if (count != 0 && in_flight_ == 0) timer_start_ns_ = now_ns;
  for (unsigned i = 0; i < count; ++i) {
    FrameBuffer& frame = *frames[i];
    frame.sent_ns = now_ns;
    frame.repeated = frame.transmission != 0;
    frame.transmission = ++transmissions_;
    in_flight_ += charge_of(frame);
    if (frame.lost) {
      frame.lost = false;
      --lost_frames_;
    } else {
      unsent_ = frame.next;
      --unsent_frames_;
      unsent_bytes_ -= frame.length;
      unsent_sequence_ = frame.sequence + 1;
    }
  }
}

inline void SendWindow::note_delivered(FrameBuffer& frame) noexcept {
  const uint64_t charge = charge_of(frame);
  if (frame.lost) {
    frame.lost = false;
    --lost_frames_;
  } else {
    in_flight_ -= charge;
    if (in_flight_ == 0) since_wanted_ = 0;
  }
  congestion_.delivered(charge);
  if (frame.transmission > newest_delivered_) newest_delivered_ = frame.transmission;
}

inline FrameBuffer* SendWindow::release_before(uint32_t acknowledged, Acknowledged& result,
                                               const FrameBuffer*& newest) noexcept {
  FrameBuffer* const released = head_;
  FrameBuffer* last = nullptr;
  while (head_ != nullptr && sequence_distance(head_->sequence, acknowledged) < 0) {
    FrameBuffer& frame = *head_;
    if (frame.acknowledged) {
      --selectively_acknowledged_;
    } else {
      note_delivered(frame);
      if (!frame.repeated) newest = &frame;
    }
    queued_bytes_ -= frame.length;
    --queued_frames_;
    last = &frame;
    head_ = frame.next;
  }
  if (last == nullptr) return nullptr;
  last->next = nullptr;
  if (head_ == nullptr) tail_ = nullptr;
  acknowledged_ = acknowledged;
  result.progress = true;
  return released;
}

void SendWindow::mark_selective(uint32_t acknowledged, std::span<const uint64_t> selective,
                                Acknowledged& result, const FrameBuffer*& newest) noexcept {
  for (FrameBuffer* frame = head_; frame != nullptr && frame != unsent_; frame = frame->next) {
    const int32_t bit = sequence_distance(frame->sequence, acknowledged) - 1;
    if (bit < 0) continue;
    if (static_cast<size_t>(bit) >= selective.size() * 64) break;
    if ((selective[static_cast<size_t>(bit) / 64] >> (bit % 64) & 1) == 0 || frame->acknowledged)
      continue;
    note_delivered(*frame);
    frame->acknowledged = true;
    ++selectively_acknowledged_;
    if (!frame->repeated) newest = frame;
    result.progress = true;
  }
}

void SendWindow::find_losses(Acknowledged& result) noexcept {
  for (FrameBuffer* frame = head_; frame != nullptr && frame != unsent_; frame = frame->next) {
    if (frame->acknowledged || frame->lost) continue;
    if (frame->transmission + reordering_frames > newest_delivered_) continue;
    frame->lost = true;
    ++lost_frames_;
    in_flight_ -= charge_of(*frame);
    congestion_.lost(charge_of(*frame));
    ++result.newly_lost;
  }
}

SendWindow::Acknowledged SendWindow::acknowledge(uint32_t acknowledged,
                                                 std::span<const uint64_t> selective,
                                                 uint64_t ack_delay_ns, uint64_t now_ns) noexcept {
  Acknowledged result;
  if (!was_sent_before(acknowledged)) return result;
  result.valid = true;
  if (sequence_distance(acknowledged, acknowledged_) < 0)
    return result;  // overtaken by a newer one
  const FrameBuffer* newest = nullptr;
  result.released = release_before(acknowledged, result, newest);
  // Released frames are still intact here.
  const auto since = [now_ns](const FrameBuffer& frame) {
    return now_ns > frame.sent_ns ? now_ns - frame.sent_ns : 0;
  };
  uint64_t sample_ns = newest != nullptr ? since(*newest) : 0;
  if (head_ != nullptr) {
    const FrameBuffer* newest_selective = nullptr;
    bool any = false;
    for (const uint64_t word : selective) any |= word != 0;
    if (any) mark_selective(acknowledged, selective, result, newest_selective);
    if (newest_selective != nullptr) sample_ns = since(*newest_selective);
    // Repeated frames may have been overtaken too, though nothing is acknowledged selectively now.
    if (answered_ ||
        (result.progress && (any || selectively_acknowledged_ != 0 || timeouts_in_a_row_ != 0)))
      find_losses(result);
  }
  answered_ = false;
  if (!result.progress) return result;
  timer_start_ns_ = now_ns;
  probes_ = 0;
  if (sample_ns != 0) {
    // Only then: if the timeout is shorter than the round trip, an acknowledgement of a repeated
    // frame may be for its first copy.
    timeouts_in_a_row_ = 0;
    if (sample_ns > ack_delay_ns) sample_ns -= ack_delay_ns;
    round_trip_.measure(sample_ns);
    congestion_.measured(sample_ns, now_ns);
  }
  if (sequence_distance(acknowledged_, round_end_) >= 0) {
    congestion_.round_ended();
    round_end_ = unsent_sequence_;
  }
  return result;
}

uint64_t SendWindow::deadline_ns() const noexcept {
  if (in_flight_ == 0) return UINT64_MAX;
  return timer_start_ns_ +
         std::min(round_trip_.probe_delay_ns(probes_), round_trip_.timeout_ns(timeouts_in_a_row_));
}

bool SendWindow::time_out(uint64_t now_ns) noexcept {
  if (now_ns < timer_start_ns_ + round_trip_.timeout_ns(timeouts_in_a_row_)) {
    ++probes_;
    probe_ = ++transmissions_;
    return false;
  }
  for (FrameBuffer* frame = head_; frame != nullptr && frame != unsent_; frame = frame->next) {
    if (frame->acknowledged || frame->lost) continue;
    frame->lost = true;
    ++lost_frames_;
  }
  in_flight_ = 0;
  ++timeouts_in_a_row_;
  timer_start_ns_ = now_ns;
  congestion_.timed_out();
  return true;
}

void SendWindow::take_answer(uint32_t probe_number) noexcept {
  if (probe_ == 0 || probe_number != static_cast<uint32_t>(probe_)) return;
  newest_delivered_ = std::max(newest_delivered_, probe_ + reordering_frames);
  probe_ = 0;
  answered_ = true;
}

}  // namespace lintel
