// The sending half of a connection: frames in the order of their numbers, from the oldest
// unacknowledged to the newest unsent one; which of them may go, when and by which path, which are
// lost.
// Message path; the connection's lock is held. It has no link and no clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "reliable/frame.h"
#include "reliable/frame_pool.h"
#include "reliable/path_mtu.h"
#include "reliable/send_path.h"
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

class SendWindow {
 public:
  void open(uint32_t first_sequence, const SendLimits& limits,
            uint64_t shortest_timeout_ns) noexcept;
  // Connection path, after open(): the paths by several rails, of which the proven one works and
  // the others are to be tried. Without memory there is one. `most_used`: maximum number of paths
  // that frames take.
  void add_paths(const RailPairs& rails, uint8_t most_used, const SendLimits& limits,
                 uint64_t shortest_timeout_ns, uint64_t now_ns) noexcept;
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

  // --- paths
  [[nodiscard]] SendPath& first() noexcept { return first_; }
  [[nodiscard]] const SendPath& first() const noexcept { return first_; }
  [[nodiscard]] bool has_several_paths() const noexcept { return further_ != nullptr; }
  [[nodiscard]] unsigned paths() const noexcept {
    return has_several_paths() ? further_->rails.count : 1;
  }
  [[nodiscard]] SendPath& path(unsigned index) noexcept {
    LINTEL_ASSERT(index < paths());
    return index == 0 ? first_ : further_->path[index - 1];
  }
  [[nodiscard]] const SendPath& path(unsigned index) const noexcept {
    return const_cast<SendWindow&>(*this).path(index);
  }
  // The first one that works.
  [[nodiscard]] SendPath& preferred() noexcept;
  [[nodiscard]] bool works(const SendPath& path) const noexcept {
    return !has_several_paths() || further_->health[path.index()].is_live();
  }
  // The addresses and states of several paths.
  [[nodiscard]] FurtherPaths& further() noexcept {
    LINTEL_ASSERT(has_several_paths());
    return *further_;
  }
  // Whether the peer has a port with that address, regardless of the rail.
  [[nodiscard]] bool has_path_to(const LinkAddress& address) const noexcept {
    return has_several_paths() && further_->rails.has_port(address);
  }
  // The peer was heard from there: answers go by the path to it. False: none that works does.
  [[nodiscard]] bool note_heard(const LinkAddress& from) noexcept;
  // A probe of that number is sent by a suspended path. As long as it has never worked, its probes
  // try all ports of the peer.
  void note_probe(SendPath& path, uint32_t number, uint64_t now_ns) noexcept;
  // The one for the next frames, of several: the preferred one while it has room, then that by
  // which they arrive first. `refused`: a bit for each path whose frames the link does not take
  // now. nullptr: no frame may go now.
  [[nodiscard]] SendPath* pick_path(unsigned refused) noexcept;
  // Bytes that may be on the way by that path, of several.
  [[nodiscard]] uint64_t limit_of(const SendPath& path) const noexcept {
    const uint64_t others = in_flight_bytes() - path.in_flight_bytes();
    const uint64_t most_bytes = further_->most_bytes;
    return std::min(path.window_bytes(), most_bytes - std::min(most_bytes, others));
  }
  // When the next probe of a suspended path is due.
  [[nodiscard]] uint64_t revival_ns() const noexcept;

  // Collects up to `max` frames that may be sent by a path now, lost ones first. They stay in the
  // window. `window`: the bytes that may be on the way by that path. `exhausted`: more frames wait,
  // but for an acknowledgement.
  [[nodiscard]] unsigned collect(const SendPath& path, uint64_t window, FrameBuffer** frames,
                                 unsigned max, bool& exhausted) noexcept;
  // Whether the peer should acknowledge this frame at once. To be called for each frame before it
  // is sent.
  [[nodiscard]] bool wants_ack(SendPath& path, const FrameBuffer& frame) const noexcept {
    return path.wants_ack(charge_of(frame));
  }
  // The first `count` of those were sent.
  void mark_sent(SendPath& path, FrameBuffer* const* frames, unsigned count,
                 uint64_t now_ns) noexcept;

  // The only frame that waits, was never sent, and may go by the first path now; nullptr: there
  // is none.
  [[nodiscard]] FrameBuffer* only_waiting() const noexcept {
    FrameBuffer* const frame = queue_.newest_unsent();
    return queue_.unsent_frames() == 1 && lost_frames_ == 0 && first_.has_room(charge_of(*frame)) &&
                   !first_.awaits_room_for_burst(frame->length) && reaches(*frame)
               ? frame
               : nullptr;
  }
  // That frame was sent.
  void mark_first_sent(FrameBuffer& frame, uint64_t now_ns) noexcept {
    LINTEL_ASSERT(!frame.acknowledged && !frame.lost && frame.transmission == 0);
    LINTEL_ASSERT(frame.sequence == unsent_sequence_ && frame.path == first_.index());
    if (first_.in_flight_bytes() == 0) first_.start_timer(now_ns);
    frame.sent_ns = now_ns;
    first_.note_sent(frame, charge_of(frame));
    queue_.note_sent(frame);
    unsent_sequence_ = frame.sequence + 1;
  }

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

  // Returns when time_out() of a path is due if no acknowledgement comes; UINT64_MAX: never.
  [[nodiscard]] uint64_t deadline_ns() const noexcept;
  // Called at the deadline of that path. False: a probe must be sent by it, whose answer shows
  // which frames are lost. True: all its frames on the way count as lost. It is suspended if
  // another path works.
  [[nodiscard]] bool time_out(SendPath& path, uint64_t now_ns) noexcept;
  // The acknowledgement that follows answers that probe. True: a path works again.
  [[nodiscard]] bool take_answer(uint32_t probe_number) noexcept;

  // The limit of the paths. Call follow_mtu() after a change.
  [[nodiscard]] PathMtu& mtu() noexcept { return mtu_; }
  [[nodiscard]] const PathMtu& mtu() const noexcept { return mtu_; }
  // Counts frames on the way that are longer than the path takes as lost.
  void follow_mtu() noexcept;
  // The next frame will be longer than the path takes.
  void note_long_frame() noexcept {
    unusual_ |= long_frames;
    long_until_ = next_sequence_ + 1;
  }
  // Whether there may be such frames. They go in parts, one frame at a time.
  [[nodiscard]] bool has_long_frames() const noexcept { return (unusual_ & long_frames) != 0; }
  [[nodiscard]] bool is_long(const FrameBuffer& frame) const noexcept {
    return frame.length > mtu_.frame_bytes();
  }
  // Whether one is on the way; finds out whether there are any.
  [[nodiscard]] bool has_long_on_the_way() noexcept;
  // Whether there are several paths, or perhaps long frames.
  [[nodiscard]] bool is_unusual() const noexcept { return unusual_ != 0; }

  // Returns how many frames of that length may be sent now; at least one, or there would never be
  // an answer.
  [[nodiscard]] uint64_t frames_with_room(uint32_t bytes) const noexcept {
    const uint64_t window = window_bytes();
    const uint64_t in_flight = in_flight_bytes();
    return window <= in_flight ? 1
                               : std::max<uint64_t>(1, (window - in_flight) / charge_.of(bytes));
  }

  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  // Frames that were not sent yet, or have to be sent again.
  [[nodiscard]] uint32_t waiting_frames() const noexcept {
    return queue_.unsent_frames() + lost_frames_;
  }
  [[nodiscard]] uint64_t in_flight_bytes() const noexcept {
    return has_several_paths() ? sum_of_paths(&SendPath::in_flight_bytes)
                               : first_.in_flight_bytes();
  }
  [[nodiscard]] bool has_in_flight() const noexcept {
    return first_.in_flight_bytes() != 0 || (has_several_paths() && in_flight_bytes() != 0);
  }
  // Bytes that may be on the way.
  [[nodiscard]] uint64_t window_bytes() const noexcept {
    return has_several_paths()
               ? std::min(further_->most_bytes, sum_of_paths(&SendPath::window_bytes))
               : first_.window_bytes();
  }
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
  // Whether frames wait for room for more of them on the first path.
  [[nodiscard]] bool awaits_room_for_burst() const noexcept {
    return lost_frames_ == 0 && first_.awaits_room_for_burst(queue_.unsent_bytes());
  }

 private:
  // Bits of unusual_.
  static constexpr uint8_t long_frames = 1;
  static constexpr uint8_t several_paths = 2;

  [[nodiscard]] uint64_t charge_of(const FrameBuffer& frame) const noexcept {
    return charge_.of(frame.length);
  }
  [[nodiscard]] SendPath& path_of(const FrameBuffer& frame) noexcept {
    return frame.path == 0 ? first_ : further_->path[frame.path - 1u];
  }
  template <typename Action>
  void for_each_path(const Action& action) noexcept {
    action(first_);
    for (unsigned i = 1; i < paths(); ++i) action(path(i));
  }
  [[nodiscard]] uint64_t sum_of_paths(uint64_t (SendPath::*bytes)() const noexcept) const noexcept;
  [[nodiscard]] bool reaches(const FrameBuffer& frame) const noexcept {
    return sequence_distance(frame.sequence, acknowledged_) < int32_t{selective_reach};
  }
  [[nodiscard]] bool revive(unsigned index, uint32_t probe_number) noexcept;
  [[nodiscard]] const FrameBuffer* next_to_send() const noexcept;
  FrameBuffer* release_before(uint32_t acknowledged, uint64_t now_ns, Acknowledged& result,
                              const FrameBuffer*& newest) noexcept;
  void mark_selective(uint32_t acknowledged, std::span<const uint64_t> selective, uint64_t now_ns,
                      Acknowledged& result, const FrameBuffer*& newest) noexcept;
  void detect_losses(Acknowledged& result, uint64_t now_ns) noexcept;
  void note_delivered(FrameBuffer& frame, uint64_t now_ns) noexcept;
  // Asserts that the counts are those of the frames.
  void check() const noexcept;

  FrameQueue queue_;
  SendPath first_;
  PathMtu mtu_;
  FrameCharge charge_;
  uint8_t unusual_ = 0;
  bool answered_ = false;  // a probe, by the acknowledgement that follows
  uint32_t lost_frames_ = 0;
  uint32_t next_sequence_ = 0;
  uint32_t unsent_sequence_ = 0;  // lowest number that was never sent
  uint32_t acknowledged_ = 0;
  uint32_t selectively_acknowledged_ = 0;  // such frames in the window
  uint32_t long_until_ = 0;                // all long frames have lower numbers
  std::unique_ptr<FurtherPaths> further_;  // nullptr: there is one path
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
  [[nodiscard]] uint32_t frame_bytes() const noexcept { return window.mtu().frame_bytes(); }
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
    return std::min(
        {retry_ns_, window.deadline_ns(), window.mtu().timer_ns(), window.revival_ns()});
  }

  // Returns how much of the body of a frame in parts the link has taken.
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
