// Opening and closing a port; repairing its queue pair. Set-up and connection path, but for
// receive().
#include "verbs/ud_rail.h"

#include <bit>
#include <utility>

#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr uint64_t longest_flush_ns = 100'000'000;
constexpr uint64_t between_repairs_ns = 10'000'000;

}  // namespace

void UdRepair::step() noexcept {
  const uint64_t now = now_ns();
  if (!flushing_) {
    if (now - repaired_ns_ < between_repairs_ns || waits_for_port()) return;
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
  queue_pair_.note_repaired();
  receiver_.post();
  count_.increment();
  log_message(LogLevel::info,
              "verbs: the queue pair for datagrams of %s had failed and works again",
              queue_pair_.device().name().c_str());
}

namespace {

constexpr uint32_t empty_receives_between_looks = 64;

}  // namespace

UdRail::UdRail(std::shared_ptr<VerbsDevice> device, uint8_t rail, UdHosts& hosts,
               Resolver& resolver) noexcept
    : device_(std::move(device)),
      rail_(rail),
      hosts_(hosts),
      sender_(rail, queue_pair_, hosts, offered_, resolver, counters_),
      receiver_(rail, queue_pair_, hosts, counters_) {}

bool UdRail::open(uint32_t slots, uint32_t mtu, std::string& reason) {
  mtu_ = mtu;
  if (!queue_pair_.open(slots, reason) || !receiver_.open(slots, mtu, reason) ||
      !sender_.open(mtu, reason) || !queue_pair_.start(reason))
    return false;
  receiver_.post();
  const UdDestination own = destination();
  std::string ignored;  // a port need not reach itself
  static_cast<void>(hosts_.make(rail_, hosts_.key_of(rail_, own.gid, own.lid), ignored));
  device_->async_events.add(*this);
  return true;
}

UdRail::~UdRail() {
  device_->async_events.remove(*this);
  if (queue_pair_.get() != nullptr)
    sender_.finish(std::bit_cast<UdAddress>(address_of(destination())));
  queue_pair_.close();
}

UdDestination UdRail::destination() const noexcept {
  return {device_->gid,        device_->lid, device_->is_roce, queue_pair_.get()->qp_num,
          queue_pair_.q_key(), mtu_};
}

LinkAddress UdRail::address_of(const UdDestination& to) const noexcept {
  const uint32_t host = hosts_.admit(hosts_.key_of(rail_, to.gid, to.lid));
  auto address = std::bit_cast<LinkAddress>(UdAddress{to.queue_pair, to.q_key, host, {}});
  address.set_rail(rail_);
  return address;
}

unsigned UdRail::receive(InboundFrame* frames, unsigned max) noexcept {
  if (queue_pair_.is_broken()) [[unlikely]]
    repair_.step();
  const unsigned count = receiver_.receive(frames, max);
  if (count == 0 && ++empty_receives_ % empty_receives_between_looks == 0)
    sender_.look_for_failures();
  return count;
}

bool UdRail::arm() noexcept {
  sender_.look_for_failures();
  return (!queue_pair_.is_broken() || repair_.waits_for_port()) && receiver_.arm();
}

void UdRail::on_async_event(const ibv_async_event& event) noexcept {
  if (event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == queue_pair_.get())
    queue_pair_.note_broken();
}

std::string UdRail::describe() const {
  return text_of(device_->description(), ", ", receiver_.slots(), " datagrams wait at most, ",
                 queue_pair_.inline_bytes(), " bytes inline, ",
                 (receiver_.buffer_bytes() + sender_.buffer_bytes()) / 1024, " KiB locked, ",
                 offered_.refused() ? "frames copied (locked memory is limited)"
                                    : "frames sent from where they are");
}

}  // namespace lintel
