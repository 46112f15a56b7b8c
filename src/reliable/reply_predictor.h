// Predicts whether the application answers the messages of a peer at once, as in a round trip. Then
// the acknowledgement of such a message waits for the answer, to travel in one frame with it.
// Message path; the connection's lock is held.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

class ReplyPredictor {
 public:
  // An answer within this time is "at once". The time is longer where sending takes longer, as on
  // machines with slow system calls.
  static constexpr uint64_t prompt_ns = 5'000;
  // Bounds of the number of messages in a row that must have been answered at once. The number
  // grows after each wait that was too long, and shrinks with quick answers. After several times as
  // many quick answers a rare late one is tolerated.
  static constexpr uint32_t least_run = 8;
  static constexpr uint32_t longest_run = 512;
  static constexpr uint32_t runs_until_trusted = 4;

  [[nodiscard]] bool expects_reply() const noexcept { return run_ >= needed_; }
  // Time for which an acknowledgement is held for the answer: about twice the cost of sending it by
  // itself.
  [[nodiscard]] uint64_t hold_ns() const noexcept { return std::max(least_hold_ns, 2 * cost_ns_); }
  // Records that an acknowledgement is held until a message can carry it.
  void hold() noexcept {
    LINTEL_ASSERT(pending_ && expects_reply());
    holds_ = true;
  }
  [[nodiscard]] bool holds() const noexcept { return holds_; }

  // A message of the peer was acknowledged, or could be.
  void acknowledged(uint64_t now_ns) noexcept {
    if (pending_) run_ = 0;
    pending_ = true;
    since_ns_ = now_ns;
  }
  // The acknowledgement was sent by itself. Until now the application could not answer.
  void acknowledgement_went(uint64_t now_ns) noexcept {
    cost_ns_ += std::min(now_ns - since_ns_, most_cost_ns) / cost_share - cost_ns_ / cost_share;
    since_ns_ = now_ns;
  }
  // The application has sent something.
  void sent(uint64_t now_ns) noexcept {
    holds_ = false;
    if (!pending_) return;
    pending_ = false;
    if (now_ns > since_ns_ + std::max(prompt_ns, cost_ns_)) {
      run_ /= 2;
      return;
    }
    const uint32_t enough = runs_until_trusted * needed_;
    run_ = std::min(run_ + 1, enough);
    if (run_ < enough || needed_ == least_run) return;
    needed_ /= 2;
    run_ = needed_;
  }
  // An acknowledgement was held, and no answer came; `long_ago`: that was noticed late.
  void hold_expired(bool long_ago) noexcept {
    pending_ = holds_ = false;
    run_ = long_ago ? 0 : run_ / 2;
    if (long_ago) needed_ = std::min(needed_ * 4, longest_run);
    LINTEL_ASSERT(needed_ >= least_run);
  }

 private:
  static constexpr uint64_t least_hold_ns = 6'000;
  static constexpr uint64_t most_cost_ns = 20'000;
  static constexpr uint64_t cost_share = 8;  // a new value counts 1/cost_share in the average

  bool pending_ = false;  // an acknowledgement without an answer yet
  bool holds_ = false;
  uint32_t run_ = 0;
  uint32_t needed_ = least_run;
  uint64_t since_ns_ = 0;
  uint64_t cost_ns_ = 0;  // average cost of sending an acknowledgement by itself
};

}  // namespace lintel
