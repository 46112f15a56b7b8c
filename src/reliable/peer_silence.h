// How long a peer has been silent, and whether it has to answer. Message path; the connection's
// lock is held.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lintel {

// Other threads take the time, too: `since` may be a little later than the poller's `now`.
[[nodiscard]] inline uint64_t elapsed_ns(uint64_t since, uint64_t now) noexcept {
  return now > since ? now - since : 0;
}

class PeerSilence {
 public:
  // The network says that nobody listens there. The peer may be about to start, and the hint may be
  // forged: only after this long, and this many, without a sign of life.
  static constexpr uint64_t believe_hints_ns = 1'000'000'000;
  // Of this very node the kernel knows at once, and nobody can forge what it says.
  static constexpr uint64_t believe_own_node_ns = 10'000'000;
  static constexpr uint8_t believed_hints = 4;

  void heard(uint64_t now_ns) noexcept {
    heard_ns_ = now_ns;
    awaited_since_ns_ = 0;
    hints_ = 0;
  }
  // It has something to answer.
  void await(uint64_t now_ns) noexcept {
    if (awaited_since_ns_ == 0) awaited_since_ns_ = now_ns;
  }
  void asked(uint64_t now_ns) noexcept { asked_ns_ = now_ns; }
  void hint(uint64_t now_ns) noexcept {
    if (hints_ == 0) hinted_since_ns_ = now_ns;
    if (hints_ < believed_hints) ++hints_;
  }

  [[nodiscard]] uint64_t lasts_ns(uint64_t now_ns) const noexcept {
    return elapsed_ns(heard_ns_, now_ns);
  }
  // For how long it has not given the answer that is awaited; 0: none is.
  [[nodiscard]] uint64_t awaited_ns(uint64_t now_ns) const noexcept {
    return awaited_since_ns_ != 0 ? elapsed_ns(awaited_since_ns_, now_ns) : 0;
  }
  [[nodiscard]] uint64_t last_sign_ns() const noexcept { return std::max(heard_ns_, asked_ns_); }
  [[nodiscard]] bool is_unreachable(bool on_own_node, uint64_t now_ns) const noexcept {
    return hints_ == believed_hints && elapsed_ns(hinted_since_ns_, now_ns) >
                                           (on_own_node ? believe_own_node_ns : believe_hints_ns);
  }

 private:
  uint64_t heard_ns_ = 0;
  uint64_t awaited_since_ns_ = 0;  // 0: it has nothing to answer
  uint64_t asked_ns_ = 0;
  uint64_t hinted_since_ns_ = 0;
  uint8_t hints_ = 0;  // since it was last heard
};

}  // namespace lintel
