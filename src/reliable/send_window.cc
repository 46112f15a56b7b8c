// Sending, acknowledgements, losses. Message path.
#include "reliable/send_window.h"

#include <algorithm>
#include <new>

#include "util/assert.h"

namespace lintel {

void SendWindow::open(uint32_t first_sequence, const SendLimits& limits,
                      uint64_t shortest_timeout_ns) noexcept {
  *this = SendWindow{};
  next_sequence_ = unsent_sequence_ = acknowledged_ = first_sequence;
  charge_ = limits.charge;
  mtu_.open(limits.frame_bytes);
  first_.open(0, limits, shortest_timeout_ns);
}

void SendWindow::add_paths(const RailPairs& rails, uint8_t most_used, const SendLimits& limits,
                           uint64_t shortest_timeout_ns, uint64_t now_ns) noexcept {
  LINTEL_ASSERT(empty() && further_ == nullptr && rails.count > 1 && rails.count <= most_rails);
  further_.reset(new (std::nothrow) FurtherPaths);
  if (further_ == nullptr) return;
  unusual_ |= several_paths;
  further_->most_bytes = limits.window_bytes;
  further_->rails = rails;
  further_->most_used = most_used;
  further_->answers_to = rails.to[rails.proven];
  further_->proven = static_cast<uint8_t>(1u << rails.proven);
  for (unsigned i = 0; i < rails.count; ++i) {
    if (i != 0) path(i).open(static_cast<uint8_t>(i), limits, shortest_timeout_ns);
    if (i != rails.proven) further_->health[i].suspend(now_ns);
  }
}

SendPath& SendWindow::preferred() noexcept {
  for (unsigned i = 0; i < paths(); ++i)
    if (works(path(i))) return path(i);
  return first_;
}

bool SendWindow::note_heard(const LinkAddress& from) noexcept {
  for (unsigned i = 0; i < paths(); ++i) {
    const LinkAddress& to = further_->rails.to[i];
    if (!(to.without_rail() == from.without_rail()) || !works(path(i))) continue;
    further_->answers_to = to;
    return true;
  }
  return false;
}

void SendWindow::note_probe(SendPath& path, uint32_t number, uint64_t now_ns) noexcept {
  const unsigned index = path.index();
  PathHealth& health = further_->health[index];
  health.probed(number, now_ns);
  if ((further_->proven >> index & 1) == 0)
    further_->rails.aim(index, further_->rails.port_of_probe(index, health.place_of(number)));
}

// False: the number answers no probe of that path, or another path goes to the port that answers.
bool SendWindow::revive(unsigned index, uint32_t probe_number) noexcept {
  PathHealth& health = further_->health[index];
  if (!health.is_answer(probe_number)) return false;
  RailPairs& rails = further_->rails;
  if ((further_->proven >> index & 1) == 0) {
    const uint8_t port = rails.port_of_probe(index, health.place_of(probe_number));
    for (unsigned i = 0; i < paths(); ++i)
      if (works(path(i)) && rails.port[i] == port) return false;
    rails.aim(index, rails.port[index] = port);
    further_->proven |= static_cast<uint8_t>(1u << index);
  }
  health.revive();
  path(index).revive();
  return true;
}

uint64_t SendWindow::sum_of_paths(uint64_t (SendPath::*bytes)() const noexcept) const noexcept {
  uint64_t sum = 0;
  for (unsigned i = 0; i < paths(); ++i) sum += works(path(i)) ? (path(i).*bytes)() : 0;
  return sum;
}

uint64_t SendWindow::revival_ns() const noexcept {
  uint64_t due_ns = UINT64_MAX;
  for (unsigned i = 0; has_several_paths() && i < paths(); ++i)
    due_ns = std::min(due_ns, further_->health[i].due_ns(empty()));
  return due_ns;
}

bool SendWindow::take_answer(uint32_t probe_number) noexcept {
  mtu_.answered(probe_number);
  const unsigned index = LossDetector::path_of(probe_number);
  if (index >= paths()) return false;
  if (has_several_paths() && revive(index, probe_number)) return true;
  answered_ |= path(index).take_answer(probe_number);
  return false;
}

const FrameBuffer* SendWindow::next_to_send() const noexcept {
  if (lost_frames_ != 0)
    for (const FrameBuffer& frame : queue_.sent())
      if (frame.lost) return &frame;
  const FrameBuffer* const unsent = queue_.unsent().first;
  return unsent != nullptr && reaches(*unsent) ? unsent : nullptr;
}

SendPath* SendWindow::pick_path(unsigned refused) noexcept {
  const FrameBuffer* const next = next_to_send();
  if (next == nullptr) return nullptr;
  const uint64_t charge = charge_of(*next);
  const uint64_t in_flight = in_flight_bytes();
  if (in_flight != 0 && in_flight + charge > further_->most_bytes) return nullptr;
  SendPath* best = nullptr;
  bool is_preferred = true;
  unsigned left = further_->most_used;
  for (unsigned i = 0; i < paths() && left != 0; ++i) {
    SendPath& candidate = path(i);
    if (!works(candidate)) continue;
    --left;
    if ((refused >> i & 1) != 0) continue;
    const bool waits = lost_frames_ == 0 && candidate.awaits_room_for_burst(queue_.unsent_bytes());
    if (candidate.has_room(charge) && !waits) {
      if (is_preferred) return &candidate;
      if (best == nullptr || candidate.expected_ns(charge) < best->expected_ns(charge))
        best = &candidate;
    }
    is_preferred = false;
  }
  return best;
}

inline void SendWindow::check() const noexcept {
#ifdef LINTEL_ASSERTIONS
  uint64_t in_flight[most_rails] = {};
  uint32_t lost = 0;
  uint32_t selectively_acknowledged = 0;
  for (const FrameBuffer& frame : queue_.sent()) {
    LINTEL_ASSERT(!frame.lost || !frame.acknowledged);
    LINTEL_ASSERT(!has_arrived_before(frame.sequence + 1) && was_sent_before(frame.sequence + 1));
    lost += frame.lost ? 1 : 0;
    selectively_acknowledged += frame.acknowledged ? 1 : 0;
    LINTEL_ASSERT(frame.path < paths());
    if (!frame.lost && !frame.acknowledged) in_flight[frame.path] += charge_of(frame);
  }
  for (unsigned i = 0; i < paths(); ++i) LINTEL_ASSERT(in_flight[i] == path(i).in_flight_bytes());
  LINTEL_ASSERT(lost == lost_frames_);
  LINTEL_ASSERT(selectively_acknowledged == selectively_acknowledged_);
#endif
}

FrameBuffer* SendWindow::take_all() noexcept {
  for_each_path([](SendPath& path) { path.forget_frames(); });
  lost_frames_ = selectively_acknowledged_ = 0;
  return queue_.remove_all();
}

unsigned SendWindow::collect(const SendPath& path, uint64_t window, FrameBuffer** frames,
                             unsigned max, bool& exhausted) noexcept {
  uint64_t in_flight = path.in_flight_bytes();
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
    if (!reaches(frame) || !takes(frame)) {
      exhausted = true;
      break;
    }
  }
  return count;
}

void SendWindow::mark_sent(SendPath& path, FrameBuffer* const* frames, unsigned count,
                           uint64_t now_ns) noexcept {
  if (count != 0 && path.in_flight_bytes() == 0) path.start_timer(now_ns);
  for (unsigned i = 0; i < count; ++i) {
    FrameBuffer& frame = *frames[i];
    LINTEL_ASSERT(!frame.acknowledged && frame.lost == (frame.transmission != 0));
    frame.sent_ns = now_ns;
    frame.repeated = frame.transmission != 0;
    frame.path = path.index();
    path.note_sent(frame, charge_of(frame));
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

inline void SendWindow::note_delivered(FrameBuffer& frame, uint64_t now_ns) noexcept {
  LINTEL_ASSERT(!frame.lost || lost_frames_ != 0);
  const bool was_lost = frame.lost;
  if (was_lost) [[unlikely]] {
    frame.lost = false;
    --lost_frames_;
  }
  path_of(frame).note_delivered(frame, charge_of(frame), was_lost, now_ns);
  mtu_.delivered(frame.length);
}

inline FrameBuffer* SendWindow::release_before(uint32_t acknowledged, uint64_t now_ns,
                                               Acknowledged& result,
                                               const FrameBuffer*& newest) noexcept {
  FrameBuffer* const released = queue_.remove_before(acknowledged, [&](FrameBuffer& frame) {
    if (frame.acknowledged) {
      LINTEL_ASSERT(selectively_acknowledged_ != 0);
      --selectively_acknowledged_;
    } else {
      note_delivered(frame, now_ns);
      if (!frame.repeated) newest = &frame;
    }
  });
  if (released == nullptr) return nullptr;
  acknowledged_ = acknowledged;
  result.progress = true;
  return released;
}

void SendWindow::mark_selective(uint32_t acknowledged, std::span<const uint64_t> selective,
                                uint64_t now_ns, Acknowledged& result,
                                const FrameBuffer*& newest) noexcept {
  for (FrameBuffer& frame : queue_.sent()) {
    const int32_t bit = sequence_distance(frame.sequence, acknowledged) - 1;
    if (bit < 0) continue;
    if (static_cast<size_t>(bit) >= selective.size() * 64) break;
    if ((selective[static_cast<size_t>(bit) / 64] >> (bit % 64) & 1) == 0 || frame.acknowledged)
      continue;
    note_delivered(frame, now_ns);
    frame.acknowledged = true;
    ++selectively_acknowledged_;
    if (!frame.repeated) newest = &frame;
    result.progress = true;
  }
}

void SendWindow::detect_losses(Acknowledged& result, uint64_t now_ns) noexcept {
  const FrameBuffer* first = nullptr;
  for (FrameBuffer& frame : queue_.sent()) {
    if (frame.acknowledged || frame.lost) continue;
    SendPath& path = path_of(frame);
    if (!path.losses().is_lost(frame.transmission)) continue;
    frame.lost = true;
    ++lost_frames_;
    path.note_lost(charge_of(frame));
    if (first == nullptr && frame.length > PathMtu::least_bytes) first = &frame;
    ++result.newly_lost;
  }
  if (first != nullptr) mtu_.lost(first->sequence, first->length, now_ns);
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
  result.released = release_before(acknowledged, now_ns, result, newest);
  if (!queue_.empty()) {
    const FrameBuffer* newest_selective = nullptr;
    bool any = false;
    for (const uint64_t word : selective) any |= word != 0;
    if (any) mark_selective(acknowledged, selective, now_ns, result, newest_selective);
    if (newest_selective != nullptr) newest = newest_selective;
    // Repeated frames may have been overtaken too, though nothing is acknowledged selectively now.
    if (answered || (result.progress && (any || selectively_acknowledged_ != 0 ||
                                         first_.has_timed_out() || has_several_paths())))
      detect_losses(result, now_ns);
  }
  check();
  if (!result.progress) return result;
  // Released frames are still intact here.
  if (newest != nullptr && now_ns > newest->sent_ns) {
    const uint64_t sample_ns = now_ns - newest->sent_ns;
    path_of(*newest).measure(sample_ns > ack_delay_ns ? sample_ns - ack_delay_ns : sample_ns,
                             now_ns);
  }
  first_.end_round_if_due();
  if (has_several_paths()) [[unlikely]]
    for_each_path([](SendPath& path) { path.end_round_if_due(); });
  return result;
}

uint64_t SendWindow::deadline_ns() const noexcept {
  uint64_t deadline_ns = first_.deadline_ns();
  for (unsigned i = 1; i < paths(); ++i) deadline_ns = std::min(deadline_ns, path(i).deadline_ns());
  return deadline_ns;
}

bool SendWindow::time_out(SendPath& path, uint64_t now_ns) noexcept {
  if (!path.time_out(now_ns)) return false;
  for (FrameBuffer& frame : queue_.sent()) {
    if (frame.acknowledged || frame.lost || frame.path != path.index()) continue;
    frame.lost = true;
    ++lost_frames_;
  }
  check();
  bool others_work = false;
  for (unsigned i = 0; i < paths(); ++i) others_work |= i != path.index() && works(this->path(i));
  if (others_work && works(path)) further_->health[path.index()].suspend(now_ns);
  return true;
}

// The length of frames says nothing about queues: the congestion window stays.
void SendWindow::follow_mtu() noexcept {
  for_each_path([&](SendPath& path) { path.set_frame_charge(charge_.of(mtu_.frame_bytes())); });
  for (FrameBuffer& frame : queue_.sent()) {
    if (frame.acknowledged || frame.lost || !is_long(frame)) continue;
    frame.lost = true;
    ++lost_frames_;
    path_of(frame).take_back(charge_of(frame));
  }
  unusual_ &= static_cast<uint8_t>(~long_frames);
  for (const FrameQueue::Range range : {queue_.sent(), queue_.unsent()})
    for (const FrameBuffer& frame : range) {
      if (!is_long(frame)) continue;
      unusual_ |= long_frames;
      long_until_ = frame.sequence + 1;
    }
  check();
}

bool SendWindow::has_long_on_the_way() noexcept {
  if (sequence_distance(long_until_, acknowledged_) <= 0)
    unusual_ &= static_cast<uint8_t>(~long_frames);
  for (const FrameBuffer& frame : queue_.sent())
    if (!frame.acknowledged && !frame.lost && is_long(frame)) return true;
  return false;
}

}  // namespace lintel
