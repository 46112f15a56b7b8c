// The search for the longest frame. Connection path, but for lost().
#include "reliable/path_mtu.h"

#include "reliable/frame.h"
#include "util/assert.h"

namespace lintel {

// The frame with the lowest number decides which length is suspected: it always goes again, while
// others wait for the window. Later ones that are shorter may be lost by chance.
void PathMtu::lost(uint32_t sequence, uint32_t bytes, uint64_t now_ns) noexcept {
  bytes = std::min(bytes, frame_bytes_);  // longer ones went in parts
  if (bytes <= least_bytes) return;
  if (suspected_bytes_ == nothing || sequence_distance(sequence, suspected_sequence_) < 0) {
    suspected_bytes_ = bytes;
    suspected_sequence_ = sequence;
    suspected_since_ns_ = now_ns;
    losses_ = 0;
  }
  if (bytes >= suspected_bytes_ && losses_ < least_losses) ++losses_;
  set_due(due_ns_);
}

void PathMtu::set_due(uint64_t due_ns) noexcept {
  due_ns_ = check_ns_ = due_ns;
  if (suspected_bytes_ != nothing && losses_ == least_losses)
    check_ns_ = std::min(check_ns_, suspected_since_ns_ + least_lossy_ns);
}

PathMtu::Step PathMtu::go_on(uint64_t now_ns) noexcept {
  Step step;
  if (is_black_hole(now_ns)) {
    narrow();
    begin_search();
    step.change = Change::narrowed;
  } else if (probed_bytes_ != 0) {
    step.change = judge_probe();
  } else {
    begin_search();
    is_raise_ = true;
  }
  step.probe_bytes = silent_ == most_silent ? 0 : next_length();
  if (step.probe_bytes != 0) return step;
  probed_bytes_ = 0;
  timer_ns_ = never;
  set_due(frame_bytes_ == most_bytes_ ? never : now_ns + raise_ns_);
  raise_ns_ = std::min(2 * raise_ns_, longest_raise_ns);
  return step;
}

void PathMtu::narrow() noexcept {
  const uint32_t narrower = suspected_bytes_ > base_bytes ? base_bytes : least_bytes;
  LINTEL_ASSERT(narrower < frame_bytes_);
  frame_bytes_ = narrower;
  suspected_bytes_ = nothing;
  raise_ns_ = first_raise_ns;
}

void PathMtu::begin_search() noexcept {
  too_long_ = most_bytes_ + 1;
  probed_bytes_ = 0;
  tries_ = silent_ = 0;
  is_raise_ = false;
}

PathMtu::Change PathMtu::judge_probe() noexcept {
  if (long_answered_) {
    LINTEL_ASSERT(probed_bytes_ > frame_bytes_ && probed_bytes_ <= most_bytes_);
    frame_bytes_ = probed_bytes_;
    tries_ = silent_ = 0;
    // Something else than before: it is measured exactly.
    is_raise_ = false;
    raise_ns_ = first_raise_ns;
    return Change::widened;
  }
  if (!short_answered_) {
    ++silent_;
    return Change::none;
  }
  silent_ = 0;
  if (++tries_ == most_tries) {
    too_long_ = probed_bytes_;
    tries_ = 0;
  }
  return Change::none;
}

// All, in case the path is as wide as it seemed, then the middle of what is possible. To see
// whether a path has become wider, a little more than it takes is enough.
uint32_t PathMtu::next_length() const noexcept {
  if (frame_bytes_ == most_bytes_) return 0;
  if (too_long_ > most_bytes_) return most_bytes_;
  if (too_long_ - frame_bytes_ <= granularity_bytes) return 0;
  return frame_bytes_ + (is_raise_ ? granularity_bytes : (too_long_ - frame_bytes_) / 2);
}

void PathMtu::sent(uint32_t short_number, uint32_t long_number, uint64_t round_trip_ns,
                   uint64_t now_ns) noexcept {
  probed_bytes_ = next_length();
  short_number_ = short_number;
  long_number_ = long_number;
  short_answered_ = long_answered_ = false;
  timer_ns_ = now_ns + ((probe_wait_ns + 4 * round_trip_ns) << silent_);
  set_due(timer_ns_);
}

}  // namespace lintel
