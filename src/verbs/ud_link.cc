// Opening and closing the link; routes to peers; what the resolver's thread does for it. Set-up and
// connection path, but for receive().
#include "verbs/ud_link.h"

#include <algorithm>
#include <bit>

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
    if (now - repaired_ns_ < between_repairs_ns) return;
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

// Charge of the smallest frame in the reliability layer: a slot of the queue counts this much.
constexpr uint64_t smallest_charge_bytes = 640 + 64;
constexpr uint32_t empty_receives_between_looks = 64;

}  // namespace

UdLink::UdLink(std::shared_ptr<VerbsDevice> device, ProcessId id) : device_(std::move(device)) {
  properties_.name = "verbs";
  properties_.device = device_->name();
  properties_.id = id;
  properties_.host_mask = std::bit_cast<LinkAddress>(UdAddress{0, 0, UINT32_MAX, {}});
  properties_.mtu = device_->mtu_bytes();
  properties_.descriptor = device_->events.descriptor();
}

OpenStatus UdLink::open(std::shared_ptr<VerbsDevice> device, const UdSettings& settings,
                        std::unique_ptr<UdLink>& result, std::string& reason) {
  std::unique_ptr<UdLink> link(new UdLink(std::move(device), settings.id));
  const OpenStatus status = link->resolver_.claim(settings.id, reason);
  if (status != OpenStatus::opened) return status;
  if (!link->open_parts(settings, reason)) return OpenStatus::failed;
  result = std::move(link);
  return OpenStatus::opened;
}

bool UdLink::open_parts(const UdSettings& settings, std::string& reason) {
  if (mtu() < least_mtu)
    return explained(
        false, reason,
        text_of(device_->name(), " carries datagrams of ", mtu(),
                " bytes only; raise the MTU of its network interface to 1500 at least"));
  if (!hosts_.open(*device_))
    return explained(false, reason, "no address space for the table of nodes (ulimit -v?)");
  const uint32_t slots =
      std::min({settings.receive_buffers, static_cast<uint32_t>(device_->attributes.max_qp_wr),
                static_cast<uint32_t>(device_->attributes.max_cqe)});
  if (!queue_pair_.open(slots, reason) || !receiver_.open(slots, mtu(), reason) ||
      !sender_.open(mtu(), reason) || !queue_pair_.start(reason))
    return false;
  receiver_.post();
  const UdDestination own{device_->gid,        device_->lid,        device_->is_roce,
                          queue_pair_number(), queue_pair_.q_key(), mtu()};
  Route route;
  std::string ignored;  // a port need not reach itself
  static_cast<void>(make_route(own, route, ignored));
  properties_.own_address = route.address;
  properties_.receive_capacity_bytes = std::max(slots * smallest_charge_bytes, uint64_t{4} * mtu());
  device_->async_events.add(*this);
  return resolver_.start(own, *this, settings.lookup_timeout_ns, reason);
}

UdLink::~UdLink() {
  resolver_.stop();
  device_->async_events.remove(*this);
  sender_.finish(std::bit_cast<UdAddress>(own_address()));
  queue_pair_.close();
}

unsigned UdLink::receive(InboundFrame* frames, unsigned max) noexcept {
  if (queue_pair_.is_broken()) [[unlikely]]
    repair_.step();
  const unsigned count = receiver_.receive(frames, max);
  if (count == 0 && ++empty_receives_ % empty_receives_between_looks == 0)
    sender_.look_for_failures();
  return count;
}

bool UdLink::arm() noexcept {
  sender_.look_for_failures();
  return !queue_pair_.is_broken() && receiver_.arm();
}

// The port of its pid is closed with the process; the next process there has another queue pair and
// another Q_Key.
bool UdLink::is_gone(ProcessId peer, const LinkAddress& address) noexcept {
  Route now;
  bool refused = false;
  const ResolveStatus status = resolver_.resolve(peer, now, nullptr, &refused);
  return refused || (status == ResolveStatus::resolved && !(now.address == address));
}

bool UdLink::adopt(ProcessId, const LinkAddress& from, Route& route) noexcept {
  const auto address = std::bit_cast<UdAddress>(from);
  if (!hosts_.contains(address.host) || hosts_.handle(address.host) == nullptr) return false;
  hosts_.admit(address.host);
  route = {from, mtu()};
  return true;
}

bool UdLink::make_route(const UdDestination& destination, Route& route, std::string& reason) {
  const uint32_t host = hosts_.make(hosts_.key_of(destination.gid, destination.lid), reason);
  if (host == UdHosts::none) return false;
  route.address =
      std::bit_cast<LinkAddress>(UdAddress{destination.queue_pair, destination.q_key, host, {}});
  route.mtu = std::min(destination.mtu, mtu());
  return true;
}

void UdLink::work() noexcept {
  hosts_.make_wanted();
  offered_.register_wanted();
}

void UdLink::on_async_event(const ibv_async_event& event) noexcept {
  if (event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == queue_pair_.get())
    queue_pair_.note_broken();
}

std::string UdLink::describe() const {
  return text_of(device_->description(), ", datagrams of up to ", mtu(), " bytes, ",
                 receiver_.slots(), " of them wait at most, ", queue_pair_.inline_bytes(),
                 " bytes inline, ", (receiver_.buffer_bytes() + sender_.buffer_bytes()) / 1024,
                 " KiB locked, ",
                 offered_.refused() ? "frames copied (locked memory is limited)"
                                    : "frames sent from where they are");
}

}  // namespace lintel
