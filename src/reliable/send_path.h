// One way from this process to a peer: by one of its ports to one of the peer's (a rail). What is
// on the way and how much may be, round trips, losses and timeouts, and whether the path works.
// Message path; the connection's lock is held. It has no link and no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reliable/congestion.h"
#include "reliable/frame_pool.h"
#include "reliable/rail_pairs.h"
#include "reliable/retransmission_timer.h"
#include "transport/packet_link.h"
#include "util/assert.h"

namespace lintel {

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

// Limits of a peer and of the paths to it.
struct SendLimits {
  uint64_t window_bytes;    // maximum charge of frames on the way
  FrameCharge charge;       // charge of a frame
  uint32_t frame_bytes;     // length of the longest frame that is tried
  uint64_t queue_delay_ns;  // delay that a queue may cause
};

// Finds lost frames. Each transmission of a frame has a number. It is lost when a transmission
// by the same path whose number is higher by the threshold has arrived, or the answer to a probe.
// Networks reorder a little.
class LossDetector {
 public:
  static constexpr uint64_t reordering_threshold = 3;

  // Probes have the index of their path in front of their number.
  void open(uint8_t path) noexcept { path_ = static_cast<uint32_t>(path) << number_bits; }
  [[nodiscard]] uint8_t path() const noexcept { return static_cast<uint8_t>(path_ >> number_bits); }
  [[nodiscard]] static constexpr unsigned path_of(uint32_t probe_number) noexcept {
    return probe_number >> number_bits;
  }

  [[nodiscard]] uint64_t next_transmission() noexcept { return ++transmissions_; }
  void note_arrival(uint64_t transmission) noexcept {
    LINTEL_ASSERT(transmission != 0 && transmission <= transmissions_);
    if (transmission > newest_arrived_) newest_arrived_ = transmission;
  }
  [[nodiscard]] bool is_lost(uint64_t transmission) const noexcept {
    return transmission + reordering_threshold <= newest_arrived_;
  }

  [[nodiscard]] uint64_t newest_arrived() const noexcept { return newest_arrived_; }
  [[nodiscard]] uint64_t last_transmission() const noexcept { return transmissions_; }

  // Number of the probe on the way that was sent for a timeout.
  [[nodiscard]] uint32_t probe_number() const noexcept { return number_of(probe_); }
  void renew_probe() noexcept { probe_ = static_cast<uint32_t>(++transmissions_); }
  // The number of such a probe when one more frame will have been sent.
  [[nodiscard]] uint32_t probe_number_behind_next() const noexcept {
    return number_of(transmissions_ + 2);
  }
  // The number of a probe of another kind.
  [[nodiscard]] uint32_t take_number() noexcept { return number_of(++transmissions_); }
  // The probe of that number arrived, behind all frames sent before it. False: it is none that was
  // sent for a timeout.
  [[nodiscard]] bool take_answer(uint32_t probe_number) noexcept {
    if (probe_ == 0 || probe_number != number_of(probe_)) return false;
    const uint64_t sent_behind = static_cast<uint32_t>(transmissions_) - probe_;
    newest_arrived_ =
        std::max(newest_arrived_, transmissions_ - sent_behind + reordering_threshold);
    LINTEL_ASSERT(newest_arrived_ <= transmissions_ + reordering_threshold);
    probe_ = 0;
    return true;
  }

 private:
  static constexpr unsigned number_bits = 29;
  [[nodiscard]] uint32_t number_of(uint64_t transmission) const noexcept {
    return path_ | (static_cast<uint32_t>(transmission) & ((1u << number_bits) - 1));
  }

  uint32_t path_ = 0;
  uint32_t probe_ = 0;  // low half of the number of a probe on the way; 0: none is
  uint64_t transmissions_ = 0;
  uint64_t newest_arrived_ = 0;  // the highest number that is known to have arrived
};

// Whether a path works. One that was never tried, or timed out while others work, is suspended:
// probes go by it, more and more rarely, until one is answered.
class PathHealth {
 public:
  static constexpr uint64_t never = UINT64_MAX;
  static constexpr uint64_t first_gap_ns = 2'000'000;
  static constexpr uint64_t longest_gap_ns = 1'000'000'000;
  // Time, and number of probes, without an answer after which a path is reported as lost.
  static constexpr uint64_t lost_after_ns = 250'000'000;
  static constexpr uint8_t lost_after_probes = 5;
  // Maximum number of probes in a row while nothing else is sent to the peer.
  static constexpr uint8_t most_idle_probes = 10;

  [[nodiscard]] bool is_live() const noexcept { return live_; }
  void suspend(uint64_t now_ns) noexcept {
    LINTEL_ASSERT(live_);
    live_ = false;
    since_ns_ = due_ns_ = now_ns;
    probes_ = 0;
  }
  // When the next probe is due. `idle`: nothing else is on the way to the peer.
  [[nodiscard]] uint64_t due_ns(bool idle) const noexcept {
    return live_ || (idle && probes_ >= most_idle_probes) ? never : due_ns_;
  }
  // A probe of that number was sent.
  void probed(uint32_t number, uint64_t now_ns) noexcept {
    LINTEL_ASSERT(!live_);
    if (probes_ == 0) first_number_ = number;
    last_number_ = number;
    due_ns_ = now_ns + std::min(first_gap_ns << probes_, longest_gap_ns);
    if (probes_ < most_idle_probes) ++probes_;
  }
  // Returns which probe that is since the path was suspended, from 0.
  [[nodiscard]] uint32_t place_of(uint32_t number) const noexcept {
    return probes_ == 0 ? 0 : number - first_number_;
  }
  [[nodiscard]] bool is_answer(uint32_t number) const noexcept {
    return !live_ && probes_ != 0 && place_of(number) <= place_of(last_number_);
  }
  // Such a probe was answered, so the path works.
  void revive() noexcept {
    LINTEL_ASSERT(!live_);
    live_ = true;
  }

  enum class Change : uint8_t { none, lost, back };
  // Returns the change to be reported, once. `heard`: the peer answers, but not to these probes.
  [[nodiscard]] Change take_change(bool heard, uint64_t now_ns) noexcept {
    if (live_ == !reported_) return Change::none;
    if (!live_ && (!heard || probes_ < lost_after_probes || now_ns < since_ns_ + lost_after_ns))
      return Change::none;
    reported_ = !reported_;
    return reported_ ? Change::lost : Change::back;
  }

 private:
  bool live_ = true;
  uint8_t probes_ = 0;         // since it was suspended, up to most_idle_probes
  bool reported_ = false;      // as lost
  uint32_t first_number_ = 0;  // numbers of the first and the last probe since it was suspended
  uint32_t last_number_ = 0;
  uint64_t since_ns_ = 0;
  uint64_t due_ns_ = 0;
};

class SendPath {
 public:
  // The first path of a connection has the index 0.
  void open(uint8_t index, const SendLimits& limits, uint64_t shortest_timeout_ns) noexcept {
    *this = SendPath{};
    timer_.open(shortest_timeout_ns);
    losses_.open(index);
    congestion_.open(limits.window_bytes, limits.charge.of(limits.frame_bytes),
                     limits.queue_delay_ns);
  }

  [[nodiscard]] uint8_t index() const noexcept { return losses_.path(); }
  [[nodiscard]] const RoundTrip& round_trip() const noexcept { return timer_.round_trip(); }
  [[nodiscard]] bool has_timed_out() const noexcept { return timer_.has_timed_out(); }
  [[nodiscard]] LossDetector& losses() noexcept { return losses_; }
  [[nodiscard]] const LossDetector& losses() const noexcept { return losses_; }

  // Charges of frames sent and neither acknowledged nor lost.
  [[nodiscard]] uint64_t in_flight_bytes() const noexcept { return in_flight_; }
  [[nodiscard]] uint64_t window_bytes() const noexcept { return congestion_.window_bytes(); }
  // If no frame is on the way, one is always sent, or there would never be an answer.
  [[nodiscard]] bool has_room(uint64_t charge) const noexcept {
    return in_flight_ == 0 || in_flight_ + charge <= window_bytes();
  }
  // Whether frames wait for room for more of them, so that one system call sends many. An
  // acknowledgement makes the room, so it is only while one is due.
  [[nodiscard]] bool awaits_room_for_burst(uint64_t unsent_bytes) const noexcept {
    if (in_flight_ == 0) return false;
    const uint64_t window = window_bytes();
    const uint64_t room = window - std::min(window, in_flight_);
    return room < std::min({unsent_bytes, window / least_burst_share, most_burst_bytes});
  }
  // When a frame of that charge arrives if it goes by this path.
  [[nodiscard]] uint64_t expected_ns(uint64_t charge) const noexcept {
    const uint64_t round_trip_ns = round_trip().smoothed_ns();
    return round_trip_ns / 2 + static_cast<uint64_t>(static_cast<double>(round_trip_ns) *
                                                     static_cast<double>(in_flight_ + charge) /
                                                     static_cast<double>(window_bytes()));
  }
  // Whether the peer should acknowledge a frame of that charge at once: one in each part of the
  // window, so that acknowledgements of one part come while the next ones are on the way.
  [[nodiscard]] bool wants_ack(uint64_t charge) noexcept {
    since_wanted_ += static_cast<uint32_t>(charge);
    if (since_wanted_ * acks_per_window < window_bytes()) return false;
    since_wanted_ = 0;
    return true;
  }

  void note_sent(FrameBuffer& frame, uint64_t charge) noexcept {
    frame.transmission = losses_.next_transmission();
    in_flight_ += charge;
  }
  void start_timer(uint64_t now_ns) noexcept { timer_.start(now_ns); }
  // `was_lost`: it counted as lost, and arrived all the same.
  void note_delivered(const FrameBuffer& frame, uint64_t charge, bool was_lost,
                      uint64_t now_ns) noexcept {
    if (!was_lost) {
      take_back(charge);
      if (in_flight_ == 0) since_wanted_ = 0;
    }
    congestion_.delivered(charge);
    losses_.note_arrival(frame.transmission);
    timer_.note_progress(now_ns);
  }
  void note_lost(uint64_t charge) noexcept {
    take_back(charge);
    congestion_.lost(charge);
  }
  // A frame is not on the way any more, which says nothing about the path.
  void take_back(uint64_t charge) noexcept {
    LINTEL_ASSERT(in_flight_ >= charge);
    in_flight_ -= charge;
  }
  void forget_frames() noexcept { in_flight_ = 0; }
  void measure(uint64_t sample_ns, uint64_t now_ns) noexcept {
    timer_.measure(sample_ns);
    congestion_.measured(sample_ns, now_ns);
  }
  // A round ends when a frame has arrived that was sent after its begin.
  void end_round_if_due() noexcept {
    if (static_cast<int32_t>(static_cast<uint32_t>(losses_.newest_arrived()) - round_end_) < 0)
      return;
    congestion_.round_ended();
    round_end_ = static_cast<uint32_t>(losses_.last_transmission());
  }
  void set_frame_charge(uint32_t charge) noexcept { congestion_.set_frame_bytes(charge); }

  [[nodiscard]] uint64_t deadline_ns() const noexcept {
    return in_flight_ == 0 ? UINT64_MAX : timer_.deadline_ns();
  }
  // Called at the deadline. False: a probe must be sent by this path, whose answer shows which
  // frames are lost. True: all its frames on the way count as lost.
  [[nodiscard]] bool time_out(uint64_t now_ns) noexcept {
    if (!timer_.time_out(now_ns)) {
      losses_.renew_probe();
      return false;
    }
    in_flight_ = 0;
    congestion_.timed_out();
    return true;
  }

  // The acknowledgement that follows names that probe. True: it was sent for a timeout.
  [[nodiscard]] bool take_answer(uint32_t number) noexcept {
    if (!losses_.take_answer(number)) return false;
    timer_.note_answer();
    return true;
  }
  // It works again.
  void revive() noexcept { timer_.forget_timeouts(); }

 private:
  static constexpr uint64_t least_burst_share = 4;
  static constexpr uint64_t most_burst_bytes = 60 * 1024;
  static constexpr uint64_t acks_per_window = 2;

  RetransmissionTimer timer_;
  Congestion congestion_;
  LossDetector losses_;
  uint64_t in_flight_ = 0;
  uint32_t since_wanted_ = 0;  // charges of frames since one that wants_ack()
  uint32_t round_end_ = 0;     // low half of the transmission whose arrival ends the round trip
};

// The state of a connection with several paths beside its first one.
struct FurtherPaths {
  SendPath path[most_rails - 1];
  PathHealth health[most_rails];  // of all paths
  RailPairs rails;
  LinkAddress answers_to;   // where the peer was heard last
  uint64_t most_bytes = 0;  // SendLimits::window_bytes
  uint8_t most_used = 0;    // of the paths that work; later ones stand in for them
  uint8_t proven = 0;       // a bit for each path that has worked
};
static_assert(sizeof(FurtherPaths) <= (most_rails - 1) * 1024);

}  // namespace lintel
