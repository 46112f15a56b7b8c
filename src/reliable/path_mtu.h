// The longest frame that the path to a peer takes, found in the way of RFC 8899: a switch or tunnel
// may lose longer ones without a word. A path that loses long frames while shorter ones arrive gets
// short frames at once. Probes then find out what it takes, and later whether it takes more.
//
// It has no link and no clock. Lengths are without the tag behind sealed frames. Message path:
// delivered(); the connection's lock is held.
#pragma once

#include <algorithm>
#include <cstdint>

#include "crypto/crypto_module.h"
#include "transport/packet_link.h"

namespace lintel {

class PathMtu {
 public:
  static constexpr uint64_t never = UINT64_MAX;
  // Length of frames that nearly all paths take (RFC 8899, 5.1.2), and the length that every link
  // takes, with a tag.
  static constexpr uint32_t base_bytes = 1200;
  static constexpr uint32_t least_bytes = PacketLink::least_mtu - CryptoModule::tag_bytes;

  // `most_bytes`: length of the frames that both ends and the route take, which are tried first.
  void open(uint32_t most_bytes) noexcept {
    *this = PathMtu{};
    most_bytes_ = frame_bytes_ = most_bytes;
  }

  [[nodiscard]] uint32_t frame_bytes() const noexcept { return frame_bytes_; }
  [[nodiscard]] uint32_t most_bytes() const noexcept { return most_bytes_; }

  // A frame has arrived.
  void delivered(uint32_t bytes) noexcept {
    if (bytes >= suspected_bytes_) [[unlikely]]
      forget_suspicion();
  }
  // Notes that frames did not arrive, though a later one did. The arguments are those of the first
  // lost frame that is longer than least_bytes.
  void lost(uint32_t sequence, uint32_t bytes, uint64_t now_ns) noexcept;
  // An acknowledgement that names a probe.
  void answered(uint32_t probe_number) noexcept {
    if (probed_bytes_ == 0) return;
    short_answered_ |= probe_number == short_number_;
    long_answered_ |= probe_number == long_number_;
  }

  // Whether go_on() has something to do.
  [[nodiscard]] bool is_due(uint64_t now_ns) const noexcept { return now_ns >= check_ns_; }
  // When to ask again; never: only when there is traffic.
  [[nodiscard]] uint64_t timer_ns() const noexcept { return timer_ns_; }

  enum class Change : uint8_t { none, narrowed, widened };
  // Result of go_on(). `probe_bytes`: the length of the probe that has to be sent now; 0: none.
  struct Step {
    Change change = Change::none;
    uint32_t probe_bytes = 0;
  };
  [[nodiscard]] Step go_on(uint64_t now_ns) noexcept;
  // Notes that a short probe and then the long one were sent. The long one was lost only if the
  // short one is answered.
  void sent(uint32_t short_number, uint32_t long_number, uint64_t round_trip_ns,
            uint64_t now_ns) noexcept;

 private:
  static constexpr uint32_t nothing = UINT32_MAX;
  // Conditions of a black hole: long frames are lost this many times, and for this time, and none
  // of that length arrives.
  static constexpr unsigned least_losses = 4;
  static constexpr uint64_t least_lossy_ns = 100'000'000;
  // Precision of the result.
  static constexpr uint32_t granularity_bytes = 16;
  // MAX_PROBES of RFC 8899: a length is too long when so many probes were lost.
  static constexpr unsigned most_tries = 3;
  // A search ends when the peer does not even answer short probes so many times.
  static constexpr unsigned most_silent = 8;
  static constexpr uint64_t probe_wait_ns = 10'000'000;
  // After a search the path may become wider again: PMTU_RAISE_TIMER.
  static constexpr uint64_t first_raise_ns = 10'000'000'000;
  static constexpr uint64_t longest_raise_ns = 600'000'000'000;

  [[nodiscard]] bool is_black_hole(uint64_t now_ns) const noexcept {
    return suspected_bytes_ != nothing && losses_ == least_losses &&
           now_ns >= suspected_since_ns_ + least_lossy_ns;
  }
  void forget_suspicion() noexcept {
    suspected_bytes_ = nothing;
    check_ns_ = due_ns_;
  }
  void set_due(uint64_t due_ns) noexcept;
  void narrow() noexcept;
  Change judge_probe() noexcept;
  void begin_search() noexcept;
  [[nodiscard]] uint32_t next_length() const noexcept;

  uint32_t frame_bytes_ = 0;
  uint32_t most_bytes_ = 0;
  uint32_t suspected_bytes_ = nothing;  // length of frames that seem to be lost
  uint32_t suspected_sequence_ = 0;     // number of the first such frame
  uint64_t suspected_since_ns_ = 0;
  // The search: frames of `too_long_` bytes are lost; more than most_bytes_: not known.
  uint32_t too_long_ = 0;
  uint32_t probed_bytes_ = 0;  // length of the probe on the way; 0: there is none
  uint32_t short_number_ = 0;
  uint32_t long_number_ = 0;
  uint8_t losses_ = 0;  // losses since the suspicion, up to least_losses
  bool short_answered_ = false;
  bool long_answered_ = false;
  bool is_raise_ = false;  // the search tests only whether the path has become wider
  uint8_t tries_ = 0;
  uint8_t silent_ = 0;
  uint64_t due_ns_ = never;
  uint64_t check_ns_ = never;  // due_ns_, or before that what is_black_hole() waits for
  uint64_t timer_ns_ = never;  // due_ns_ while a probe is on the way
  uint64_t raise_ns_ = first_raise_ns;
};

}  // namespace lintel
