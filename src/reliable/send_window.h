// The sending half of a connection: frames in the order of their numbers, from the oldest
// unacknowledged to the newest unsent one; which of them may go and when, which are lost.
// Message path; the connection's lock is held. It has no link and no clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "reliable/congestion.h"
#include "reliable/frame.h"
#include "reliable/frame_pool.h"
#include "reliable/path_mtu.h"
#include "reliable/retransmission_timer.h"
#include "util/assert.h"

namespace lintel {

// Frames of one direction of a connection in the order of their numbers: those that were sent and
// may have to be sent again, then those that were never sent.
class FrameQueue {
 public:
  // From one frame to another, which does not belong to it.
  struct Range {
    struct Iterator {
      FrameBuffer* frame;
      [[nodiscard]] FrameBuffer& operator*() const noexcept { return *frame; }
      void operator++() noexcept { frame = frame->next; }
      [[nodiscard]] bool operator==(const Iterator&) const noexcept = default;
    };
    FrameBuffer* first;
    FrameBuffer* last;
    [[nodiscard]] Iterator begin() const noexcept { return {first}; }
    [[nodiscard]] Iterator end() const noexcept { return {last}; }
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

// Room that a frame takes at its receiver: a slot, or its bytes and a share for records.
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

// Finds lost frames. Each transmission of a frame has a number. It is lost when a transmission
// whose number is higher by the threshold has arrived, or the answer to a probe. Networks reorder a
// little.
class LossDetector {
 public:
  static constexpr uint64_t reordering_threshold = 3;

  [[nodiscard]] uint64_t next_transmission() noexcept { return ++transmissions_; }
  void note_arrival(uint64_t transmission) noexcept {
    LINTEL_ASSERT(transmission != 0 && transmission <= transmissions_);
    if (transmission > newest_arrived_) newest_arrived_ = transmission;
  }
  [[nodiscard]] bool is_lost(uint64_t transmission) const noexcept {
    return transmission + reordering_threshold <= newest_arrived_;
  }

  // Number of the probe on the way that was sent for a timeout.
  [[nodiscard]] uint32_t probe_number() const noexcept { return static_cast<uint32_t>(probe_); }
  void renew_probe() noexcept { probe_ = ++transmissions_; }
  // The number of such a probe when one more frame will have been sent.
  [[nodiscard]] uint32_t probe_number_behind_next() const noexcept {
    return static_cast<uint32_t>(transmissions_ + 2);
  }
  // The number of a probe of another kind.
  [[nodiscard]] uint32_t take_number() noexcept { return static_cast<uint32_t>(++transmissions_); }
  // The probe of that number arrived, behind all frames sent before it. False: it is none that was
  // sent for a timeout.
  [[nodiscard]] bool take_answer(uint32_t probe_number) noexcept {
    if (probe_ == 0 || probe_number != static_cast<uint32_t>(probe_)) return false;
    newest_arrived_ = std::max(newest_arrived_, probe_ + reordering_threshold);
    LINTEL_ASSERT(newest_arrived_ <= transmissions_ + reordering_threshold);
    probe_ = 0;
    return true;
  }

 private:
  uint64_t transmissions_ = 0;
  uint64_t newest_arrived_ = 0;  // the highest number that is known to have arrived
  uint64_t probe_ = 0;           // the number of a probe on the way; 0: none is
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

  [[nodiscard]] const FrameQueue& queue() const noexcept { return queue_; }
  // The newest frame, which was not sent yet, has become longer.
  void note_growth(uint32_t bytes) noexcept { queue_.note_growth(bytes); }

  // Collects up to `max` frames that may be sent now, lost ones first. They stay in the window.
  // `exhausted`: more frames wait, but for an acknowledgement.
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
  [[nodiscard]] LossDetector& losses() noexcept { return losses_; }
  // The acknowledgement that follows answers that probe.
  void take_answer(uint32_t probe_number) noexcept {
    path_.answered(probe_number);
    if (!losses_.take_answer(probe_number)) return;
    timer_.note_answer();
    answered_ = true;
  }

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

  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  // Frames that were not sent yet, or have to be sent again.
  [[nodiscard]] uint32_t waiting_frames() const noexcept {
    return queue_.unsent_frames() + lost_frames_;
  }
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
  // Whether frames wait for room for more of them, so that one system call sends many. An
  // acknowledgement makes the room, so it is only while one is due.
  [[nodiscard]] bool awaits_room_for_burst() const noexcept {
    if (in_flight_ == 0 || lost_frames_ != 0) return false;
    const uint64_t window = window_bytes();
    const uint64_t room = window - std::min(window, in_flight_);
    return room < std::min({queue_.unsent_bytes(), window / least_burst_share, most_burst_bytes});
  }
  [[nodiscard]] const RoundTrip& round_trip() const noexcept { return timer_.round_trip(); }

 private:
  static constexpr uint64_t least_burst_share = 4;
  static constexpr uint64_t most_burst_bytes = 60 * 1024;

  [[nodiscard]] uint64_t charge_of(const FrameBuffer& frame) const noexcept {
    return charge_.of(frame.length);
  }

  static constexpr uint64_t acks_per_window = 2;

  FrameBuffer* release_before(uint32_t acknowledged, Acknowledged& result,
                              const FrameBuffer*& newest) noexcept;
  void mark_selective(uint32_t acknowledged, std::span<const uint64_t> selective,
                      Acknowledged& result, const FrameBuffer*& newest) noexcept;
  void detect_losses(Acknowledged& result, uint64_t now_ns) noexcept;
  void note_delivered(FrameBuffer& frame) noexcept;
  // Asserts that the counts are those of the frames.
  void check() const noexcept;

  FrameQueue queue_;
  RetransmissionTimer timer_;
  Congestion congestion_;
  LossDetector losses_;
  PathMtu path_;
  FrameCharge charge_;
  uint64_t in_flight_ = 0;     // charges of frames sent and neither acknowledged nor lost
  uint64_t since_wanted_ = 0;  // charges of frames since one that wants_ack()
  bool answered_ = false;      // a probe, by the acknowledgement that follows
  bool has_long_ = false;      // frames that are longer than the path takes, perhaps
  uint32_t lost_frames_ = 0;
  uint32_t next_sequence_ = 0;
  uint32_t unsent_sequence_ = 0;  // lowest number that was never sent
  uint32_t acknowledged_ = 0;
  uint32_t round_end_ = 0;                 // number whose acknowledgement ends the round trip
  uint32_t selectively_acknowledged_ = 0;  // such frames in the window
  uint32_t long_until_ = 0;                // all long frames have lower numbers
};

// The sending half of a connection: its window, and what else decides about the next frames.
class SendingHalf {
 public:
  SendWindow window;

  // Connection path.
  void open(uint32_t first_sequence, const SendLimits& limits,
            uint64_t shortest_timeout_ns) noexcept {
    LINTEL_ASSERT(window.empty());
    *this = SendingHalf{};
    window.open(first_sequence, limits, shortest_timeout_ns);
    longest_data_bytes_ = data_bytes();
  }

  // The longest frame that both sides and the path take.
  [[nodiscard]] uint32_t frame_bytes() const noexcept { return window.path().frame_bytes(); }
  // Payload of a message of kind data that fits such a frame.
  [[nodiscard]] uint32_t data_bytes() const noexcept {
    return (frame_bytes() - message_frame_overhead) & ~7u;
  }
  // A message longer than longest_eager_bytes that is to be queued. False: it is too long. It may
  // have been cut before the path was found to be narrower.
  [[nodiscard]] bool take_long(uint64_t bytes) noexcept {
    if (bytes > longest_data_bytes_) return false;
    if (message_frame_overhead + bytes > frame_bytes()) window.note_long_frame();
    return true;
  }
  // Memory that was sent from its place is in use until it has arrived, and its owner waits for
  // that. So the frame behind such a sequence of messages requests an acknowledgement at once.
  // `awaited`: that frame itself belongs to one.
  void request_release(FrameBuffer& frame, bool awaited) noexcept {
    if (release_awaited_ && !awaited) frame.flags |= frame_wants_ack;
    release_awaited_ = awaited;
  }

  // The link was full, or the peer has no room for parts of a frame.
  void retry_at(uint64_t at_ns) noexcept { retry_ns_ = at_ns; }
  [[nodiscard]] bool is_blocked(uint64_t now_ns) const noexcept {
    return retry_ns_ != never && now_ns < retry_ns_;
  }
  // True once at that time.
  [[nodiscard]] bool take_retry(uint64_t now_ns) noexcept {
    if (now_ns < retry_ns_) return false;
    retry_ns_ = never;
    return true;
  }
  // When the first of its timers is due.
  [[nodiscard]] uint64_t next_timer_ns() const noexcept {
    return std::min({retry_ns_, window.deadline_ns(), window.path().timer_ns()});
  }

  // Of a frame that goes in parts: how much of its body the link has taken.
  [[nodiscard]] uint32_t part_offset(const FrameBuffer& frame) noexcept {
    if (part_sequence_ != frame.sequence) part_offset_ = 0;
    part_sequence_ = frame.sequence;
    LINTEL_ASSERT(part_offset_ < frame.length);
    return part_offset_;
  }
  void note_part(uint32_t bytes) noexcept { part_offset_ += bytes; }
  void end_parts() noexcept { part_sequence_ = part_offset_ = 0; }

 private:
  static constexpr uint64_t never = UINT64_MAX;

  uint32_t longest_data_bytes_ = 0;  // of a message that was cut for the first path
  bool release_awaited_ = false;
  uint64_t retry_ns_ = never;
  uint32_t part_sequence_ = 0;
  uint32_t part_offset_ = 0;
};

}  // namespace lintel
