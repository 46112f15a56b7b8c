#include "verbs/completion_queue.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "util/log.h"

namespace lintel {

bool CompletionQueue::open(uint32_t receives, uint32_t sends, std::string& reason) {
  receives_ = receives;
  sends_ = sends;
  queue_ = ibv_create_cq(device_.context, static_cast<int>(entries()), nullptr,
                         device_.events.channel(), 0);
  if (queue_ != nullptr) return true;
  reason = std::string("a completion queue cannot be made: ").append(std::strerror(errno));
  return false;
}

CompletionQueue::~CompletionQueue() {
  if (queue_ == nullptr) return;
  // A queue whose events have not been taken cannot be destroyed.
  device_.events.drain();
  ibv_destroy_cq(queue_);
}

bool CompletionQueue::reserve(uint32_t queue_pairs) noexcept {
  if (queue_pairs <= queue_pairs_) return true;
  const uint64_t wanted = receives_ + uint64_t{queue_pairs_} * 2 * sends_;
  if (wanted > static_cast<uint64_t>(device_.attributes.max_cqe) ||
      ibv_resize_cq(queue_, static_cast<int>(wanted)) != 0) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn,
             "verbs: the completion queue cannot serve more than %u queue pairs; other peers are "
             "served by datagrams",
             queue_pairs_);
    return false;
  }
  queue_pairs_ *= 2;
  return true;
}

unsigned CompletionQueue::take(ibv_wc* completions) noexcept {
  if (early_count_ != 0) [[unlikely]] {
    std::copy_n(early_, early_count_, completions);
    return std::exchange(early_count_, 0u);
  }
  const int got = ibv_poll_cq(queue_, burst, completions);
  return got <= 0 ? 0 : static_cast<unsigned>(got);
}

bool CompletionQueue::arm() noexcept {
  if (!device_.events.arm(queue_) || early_count_ != 0) return false;
  // A completion that came before arming makes nothing readable.
  early_count_ = take(early_);
  return early_count_ == 0;
}

}  // namespace lintel
