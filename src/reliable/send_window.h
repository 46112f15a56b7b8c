// The sending half of a connection: frames in the order of their numbers, from the oldest
// unacknowledged to the newest unsent one; which of them may go, which are lost.
// Message path; the connection's lock is held. It has no link and no clock.
#pragma once

#include <cstdint>
#include <span>

#include "reliable/congestion.h"
#include "reliable/frame_queue.h"
#include "reliable/path_mtu.h"
#include "reliable/retransmission_timer.h"

namespace lintel {

// Room that a frame takes at its receiver: a slot, or its bytes and the size of records.
class FrameCharge {
 public:
  // Size of the records that a buffer keeps for a frame.
  static constexpr uint32_t records_bytes = 640;

  // `slot_bytes`: 0 if there are no slots.
  explicit constexpr FrameCharge(uint32_t slot_bytes = 0) noexcept
      : counted_(slot_bytes != 0 ? 0 : UINT32_MAX),
        constant_(slot_bytes != 0 ? slot_bytes : records_bytes) {}
  [[nodiscard]] constexpr uint32_t of(uint32_t frame_bytes) const noexcept {
    return (frame_bytes & counted_) + constant_;
  }

 private:
  uint32_t counted_;  // all bits, or none
  uint32_t constant_;
};

// Limits of a peer and of the path to it.
struct SendLimits {
  uint64_t window_bytes;    // maximum charge of frames on the way
  FrameCharge charge;       // charge of a frame
  uint32_t frame_bytes;     // length of the longest frame that is tried
  uint64_t queue_delay_ns;  // delay that a queue may cause
};

class SendWindow {
 public:
  void open(uint32_t first_sequence, const SendLimits& limits,
            uint64_t shortest_timeout_ns) noexcept;
  // Removes and returns all queued frames. The caller releases them.
  [[nodiscard]] FrameBuffer* take_all() noexcept;

  // Puts a frame behind all others and gives it its number.
  void append(FrameBuffer* frame) noexcept {
    LINTEL_ASSERT(frame->transmission == 0 && !frame->lost && !frame->acknowledged);
    frame->sequence = next_sequence_++;
    queue_.append(*frame);
  }

  // The newest frame, if it was not sent yet and may still grow.
  [[nodiscard]] FrameBuffer* last_unsent() const noexcept { return queue_.newest_unsent(); }
  // Notes that last_unsent() has become longer.
  void note_growth(uint32_t bytes) noexcept { queue_.note_growth(bytes); }

  // Up to `max` frames that may be sent now: lost ones first. They stay in the window. `exhausted`:
  // more waits, but not before something is acknowledged.
  [[nodiscard]] unsigned collect(FrameBuffer** frames, unsigned max, bool& exhausted) noexcept;
  // Whether the peer should acknowledge this frame at once. To be called for each frame before it
  // is sent. One frame in each part of the window does, so that acknowledgements of one part come
  // while the next ones are on the way.
  [[nodiscard]] bool wants_ack(const FrameBuffer& frame) noexcept {
    since_wanted_ += charge_of(frame);
    if (since_wanted_ * acks_per_window < congestion_.window_bytes()) return false;
    since_wanted_ = 0;
    return true;
  }
  // The first `count` of those were sent.
  void mark_sent(FrameBuffer* const* frames, unsigned count, uint64_t now_ns) noexcept;

  struct Acknowledged {
    FrameBuffer* released = nullptr;  // acknowledged frames, which the caller releases
    unsigned newly_lost = 0;
    bool valid = false;  // false: a frame is acknowledged that was never sent
    bool progress = false;
  };
  // An acknowledgement: all before `acknowledged`, and of those behind it the ones whose bits are
  // set in `selective`, beginning with `acknowledged` + 1.
  [[nodiscard]] Acknowledged acknowledge(uint32_t acknowledged, std::span<const uint64_t> selective,
                                         uint64_t ack_delay_ns, uint64_t now_ns) noexcept;

  // Returns when time_out() is due if no acknowledgement comes; UINT64_MAX: never.
  [[nodiscard]] uint64_t deadline_ns() const noexcept;
  // Called at the deadline. False: a probe must be sent, whose answer shows which frames are lost.
  // True: all frames on the way count as lost.
  [[nodiscard]] bool time_out(uint64_t now_ns) noexcept;
  [[nodiscard]] uint32_t probe_number() const noexcept { return static_cast<uint32_t>(probe_); }
  // Assigns a number to another probe of that kind.
  void renew_probe() noexcept { probe_ = ++transmissions_; }
  // The number of such a probe when one more frame will have been sent.
  [[nodiscard]] uint32_t probe_number_behind_next() const noexcept {
    return static_cast<uint32_t>(transmissions_ + 2);
  }
  // The number of a probe of another kind.
  [[nodiscard]] uint32_t take_number() noexcept { return static_cast<uint32_t>(++transmissions_); }
  // The acknowledgement that follows answers that probe, which arrived behind all frames sent
  // before it.
  void take_answer(uint32_t probe_number) noexcept;

  // The limit of the path. Call follow_path() after a change.
  [[nodiscard]] PathMtu& path() noexcept { return path_; }
  [[nodiscard]] const PathMtu& path() const noexcept { return path_; }
  // Counts frames on the way that are longer than the path takes as lost.
  void follow_path() noexcept;
  // The next frame will be longer than the path takes.
  void note_long_frame() noexcept {
    has_long_ = true;
    long_until_ = next_sequence_ + 1;
  }
  // Whether there may be such frames. They go in parts, one frame at a time.
  [[nodiscard]] bool has_long_frames() const noexcept { return has_long_; }
  [[nodiscard]] bool is_long(const FrameBuffer& frame) const noexcept {
    return frame.length > path_.frame_bytes();
  }
  // Whether one is on the way; finds out whether there are any.
  [[nodiscard]] bool has_long_on_the_way() noexcept;

  // Returns how many frames of that length may be sent now; at least one, or there would never be
  // an answer.
  [[nodiscard]] uint64_t frames_with_room(uint32_t bytes) const noexcept {
    const uint64_t window = window_bytes();
    return window <= in_flight_ ? 1
                                : std::max<uint64_t>(1, (window - in_flight_) / charge_.of(bytes));
  }

  // The first of the queued frames.
  [[nodiscard]] FrameBuffer* oldest() const noexcept { return queue_.oldest(); }
  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] uint32_t queued_frames() const noexcept { return queue_.frames(); }
  // Number of frames that were not sent yet, or have to be sent again.
  [[nodiscard]] uint32_t waiting_frames() const noexcept {
    return queue_.unsent_frames() + lost_frames_;
  }
  [[nodiscard]] uint32_t unsent_frames() const noexcept { return queue_.unsent_frames(); }
  [[nodiscard]] uint64_t unsent_bytes() const noexcept { return queue_.unsent_bytes(); }
  [[nodiscard]] uint64_t queued_bytes() const noexcept { return queue_.bytes(); }
  [[nodiscard]] uint64_t in_flight_bytes() const noexcept { return in_flight_; }
  [[nodiscard]] uint64_t window_bytes() const noexcept { return congestion_.window_bytes(); }
  // Whether a peer can acknowledge all before that number.
  [[nodiscard]] bool was_sent_before(uint32_t sequence) const noexcept {
    return sequence_distance(sequence, unsent_sequence_) <= 0;
  }
  // The number of the next frame to be appended.
  [[nodiscard]] uint32_t next_sequence() const noexcept { return next_sequence_; }
  // Whether all frames before that number have arrived.
  [[nodiscard]] bool has_arrived_before(uint32_t sequence) const noexcept {
    return sequence_distance(acknowledged_, sequence) >= 0;
  }
  [[nodiscard]] bool can_send() const noexcept { return lost_frames_ != 0 || queue_.any_unsent(); }
  [[nodiscard]] const RoundTrip& round_trip() const noexcept { return timer_.round_trip(); }

 private:
  [[nodiscard]] uint64_t charge_of(const FrameBuffer& frame) const noexcept {
    return charge_.of(frame.length);
  }

  // A frame is lost when one sent this much later has arrived: networks reorder a little.
  static constexpr uint64_t reordering_frames = 3;
  static constexpr uint64_t acks_per_window = 2;

  FrameBuffer* release_before(uint32_t acknowledged, Acknowledged& result,
                              const FrameBuffer*& newest) noexcept;
  void mark_selective(uint32_t acknowledged, std::span<const uint64_t> selective,
                      Acknowledged& result, const FrameBuffer*& newest) noexcept;
  void find_losses(Acknowledged& result, uint64_t now_ns) noexcept;
  void note_delivered(FrameBuffer& frame) noexcept;
  // Asserts that the counts are those of the frames.
  void check() const noexcept;

  FrameQueue queue_;
  RetransmissionTimer timer_;
  Congestion congestion_;
  PathMtu path_;
  FrameCharge charge_;
  uint64_t in_flight_ = 0;         // charges of frames sent and neither acknowledged nor lost
  uint64_t since_wanted_ = 0;      // charges of frames since one that wants_ack()
  uint64_t transmissions_ = 0;     // numbers every sending of a frame
  uint64_t newest_delivered_ = 0;  // the highest such number that is known to have arrived
  uint64_t probe_ = 0;             // the number of a probe on the way; 0: none is
  bool answered_ = false;          // the acknowledgement that follows answers the probe
  bool has_long_ = false;          // there may be frames that are longer than the path takes
  uint32_t lost_frames_ = 0;
  uint32_t next_sequence_ = 0;
  uint32_t unsent_sequence_ = 0;  // lowest number that was never sent
  uint32_t acknowledged_ = 0;
  uint32_t round_end_ = 0;                 // number whose acknowledgement ends the round trip
  uint32_t selectively_acknowledged_ = 0;  // such frames in the window
  uint32_t long_until_ = 0;                // all long frames have lower numbers
};

}  // namespace lintel
