// First every work request has to come back from the device: those that were posted to receive are
// counted, those to send end in the order of posting. A device that keeps some is not waited for
// longer than longest_flush_ns.
#include "verbs/ud_repair.h"

#include "util/clock.h"
#include "util/log.h"

namespace lintel {

namespace {

constexpr uint64_t longest_flush_ns = 100'000'000;
constexpr uint64_t between_repairs_ns = 10'000'000;

}  // namespace

void UdRepair::step() noexcept {
  const uint64_t now = now_ns();
  if (!flushing_) {
    if (now - repaired_ns_ < between_repairs_ns) return;
    sender_.stop();
    receiver_.stop();
    queue_pair_.stop();
    flushing_ = true;
    flushing_since_ns_ = now;
    return;
  }
  const bool all_ended = sender_.all_ended() && receiver_.all_ended();
  if (!all_ended && now - flushing_since_ns_ < longest_flush_ns) return;
  if (!queue_pair_.reset()) {
    flushing_since_ns_ = now;
    return;
  }
  sender_.forget_sent();
  receiver_.resume();
  flushing_ = false;
  repaired_ns_ = now;
  std::string reason;
  if (!queue_pair_.start(reason)) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn, "verbs: %s; trying again", reason.c_str());
    return;
  }
  receiver_.post();
  queue_pair_.note_repaired();
  sender_.resume();
  count_.increment();
  log_message(LogLevel::info,
              "verbs: the queue pair for datagrams of %s had failed and works again",
              queue_pair_.device().name().c_str());
}

}  // namespace lintel
