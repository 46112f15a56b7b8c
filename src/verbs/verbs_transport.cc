// Opening, closing and describing; one round of polling. Set-up path, except for poll().
#include "verbs/verbs_transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "util/log.h"

namespace lintel {

namespace {

constexpr uint32_t small_payload = 80;  // header and payload in two cache lines
// What a connected peer costs in memory of our own: state, and slots that wait for its next messages.
constexpr size_t bytes_of_peer =
    sizeof(VerbsLink) + sizeof(Connection) + sizeof(Channel) + sizeof(QueuePair) +
    Channel::spare_slots_kept * (sizeof(MessageHeader) + small_payload);
static_assert(bytes_of_peer <= 8192);
}  // namespace

std::unique_ptr<VerbsTransport> VerbsTransport::open(std::shared_ptr<VerbsDevice> device,
                                                     std::unique_ptr<ReliableTransport> datagrams,
                                                     const ConnectedSettings& settings,
                                                     std::string& reason) {
  std::unique_ptr<VerbsTransport> transport(
      new VerbsTransport(std::move(device), std::move(datagrams), settings));
  if (!transport->open_queues(reason)) return nullptr;
  return transport;
}

VerbsTransport::VerbsTransport(std::shared_ptr<VerbsDevice> device,
                               std::unique_ptr<ReliableTransport> datagrams,
                               const ConnectedSettings& settings)
    : device_(std::move(device)),
      settings_(settings),
      capabilities_{"verbs", settings.eager_bytes, false, true, settings.eager_bytes},
      memory_(*device_),
      requests_(settings.most_queue_pairs != 0),
      accesses_(*device_, memory_),
      exposures_(*device_, memory_, requests_),
      datagrams_(std::move(datagrams)) {}

bool VerbsTransport::open_queues(std::string& reason) {
  const uint32_t large = sizeof(MessageHeader) + settings_.eager_bytes;
  if (!accesses_.open() || !exposures_.open()) {
    reason = "no address space for its pools (ulimit -v?)";
    return false;
  }
  if (settings_.most_queue_pairs == 0) return true;
  if (!sender_.open(device_->pd, sizeof(MessageHeader) + small_payload, large, reason) ||
      !receives_.open(*device_, settings_.receive_buffers, large, receive_tag, reason))
    return false;
  kept_.resize(receives_.count());
  completions_for_ = 64;
  completions_ =
      ibv_create_cq(device_->context,
                    static_cast<int>(receives_.count() + completions_for_ * SendQueue::capacity),
                    nullptr, device_->events.channel(), 0);
  if (completions_ == nullptr) {
    reason = std::string("a completion queue cannot be made: ").append(std::strerror(errno));
    return false;
  }
  memory_.open(settings_.registrations);
  capabilities_.remote_access = memory_.is_open();
  requests_.watch(completions_, receives_.queue());
  device_->async_events.add(requests_);
  return true;
}

VerbsTransport::~VerbsTransport() {
  device_->async_events.remove(requests_);
  for (Place& place : channels_) {
    if (place.channel == nullptr || place.channel->queue_pair == nullptr) continue;
    place.channel->queue_pair->stop();
    release_queue_pair(*place.link, *place.channel, RemoteStatus::peer_failed);
  }
  // Queues whose events have not been taken cannot be destroyed.
  if (completions_ != nullptr) {
    device_->events.drain();
    ibv_destroy_cq(completions_);
  }
}

SendStatus VerbsTransport::send(Link& base, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const std::lock_guard guard(link.lock);
  // Of PTL_MD_UNRELIABLE: a datagram, which may be lost.
  const bool unreliable = (header.flags & flag_unreliable) != 0 && header.kind == MessageKind::put;
  if (link.path == Path::queue_pair && !unreliable) [[likely]]
    return sender_.send(link, header, pieces, count);
  if (link.path == Path::datagrams || unreliable) {
    if (!unreliable) requests_.wish(link);
    return datagrams_->send(*link.datagrams, header, pieces, count);
  }
  return SendStatus::connecting;
}

void VerbsTransport::forgo(Link& base, const RemoteMemory* remote, unsigned count) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  if (!memory_.has_windows()) return;
  const std::lock_guard guard(link.lock);
  sender_.forgo(link, remote, count);
}

void VerbsTransport::hold(Link& base) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const std::lock_guard guard(link.lock);
  ++link.holds;
}

void VerbsTransport::let_go(Link& base) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const std::lock_guard guard(link.lock);
  if (--link.holds == 0 && link.channel != nullptr) link.channel->queue.flush();
}

unsigned VerbsTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  sink_ = &sink;
  unsigned handled = completions_ != nullptr ? poll_completions(budget) : 0;
  // Where messages travel over queue pairs datagrams are rare, and a look for them costs as much again.
  constexpr uint32_t looks_before_rare = 64;
  constexpr uint32_t polls_between_rare_looks = 8;
  if (looks_in_vain_ < looks_before_rare || channel_count_ == 0 ||
      polls_ % polls_between_rare_looks == 0) {
    const unsigned datagrams = datagrams_->poll(static_cast<MessageSink&>(*this), budget);
    looks_in_vain_ = datagrams == 0 ? looks_in_vain_ + 1 : 0;
    handled += datagrams;
  }
  if (requests_.is_pending(std::memory_order_relaxed)) [[unlikely]]
    grant_wishes();
  if (!listed_.empty()) [[unlikely]]
    serve_listed();
  constexpr uint32_t polls_between_looks = 8192;
  if (++polls_ >= polls_between_looks) [[unlikely]] {
    polls_ = 0;
    give_up_idle();
  }
  sink_ = nullptr;
  return handled;
}

std::string VerbsTransport::statistics() const {
  const auto item = [](const char* name, uint64_t value) {
    return std::string(", ") + name + " " + std::to_string(value);
  };
  const auto count = [](const std::atomic<uint64_t>& value) {
    return value.load(std::memory_order_relaxed);
  };
  std::string text = datagrams_->statistics();
  text.append("; over queue pairs: messages sent ").append(std::to_string(sender_.sent()));
  text.append(item("received", count(counts_.received)))
      .append(item("remote accesses", accesses_.started()))
      .append(item("bytes", accesses_.bytes()))
      .append(item("exposures", exposures_.exposed()))
      .append(item("registered without being pinned", memory_.on_demand_count()))
      .append(item("refused", count(counts_.refused)))
      .append(item("queue pairs", count(counts_.queue_pairs)))
      .append(item("stopped", count(counts_.stopped)))
      .append(item("messages sent again", sender_.sent_again()))
      .append(item("declined", count(counts_.declined)))
      .append(item("device events", requests_.events()));
  return text;
}

std::string VerbsTransport::describe() const {
  std::string text = datagrams_->describe();
  if (settings_.most_queue_pairs == 0) return text.append("; no queue pairs (PTL_VERBS_MAX_RC=0)");
  text.append("; at most ")
      .append(std::to_string(settings_.most_queue_pairs))
      .append(" RC queue pairs, messages to ");
  text.append(std::to_string(settings_.eager_bytes))
      .append(" bytes, longer ones by RDMA read and write");
  if (!memory_.is_open()) {
    text.append(": no, there is no registration cache");
  } else if (memory_.has_windows()) {
    text.append(" through memory windows");
  } else {
    text.append(
        ", registered one by one (the device has no memory windows of type 2 that can be relied on)");
  }
  if (memory_.is_open() && device_->has_on_demand_paging)
    text.append("; what cannot be locked is paged on demand");
  return text;
}

}  // namespace lintel
