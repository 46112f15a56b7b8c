// From datagrams to a queue pair: who wishes one, the offers, the change. Connection path, the poller,
// except for wish_channel().
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "util/log.h"
#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

// Messages as datagrams before a peer that declined is asked again.
constexpr uint32_t messages_until_next_wish = 256;
constexpr uint32_t most_number = 0xffffff;  // QPNs and PSNs have 24 bits

bool is_sound(const AgreementBody& body) noexcept {
  return body.version == agreement_version && body.sender_number <= most_number &&
         body.receiver_number <= most_number && body.first_packet <= most_number &&
         body.zero[0] == 0 && body.zero[1] == 0 && body.zero[2] == 0;
}

bool is_sound_offer(const AgreementBody& body) noexcept {
  return body.sender_number != 0 && body.mtu >= IBV_MTU_256 && body.mtu <= IBV_MTU_4096 &&
         body.reads != 0;
}

}  // namespace

void VerbsTransport::grant_wishes() noexcept {
  const ChannelRequests::Broken broken = requests_.take();
  for (Place& place : channels_)
    if (place.channel != nullptr && place.channel->number == broken.queue_pair)
      stop_channel(*place.link, "the device says that it is broken");
  // What had arrived and was not looked at is gone; if that was anything, the ends find out when they
  // compare what they have.
  if (broken.shared_queue) {
    no_more_channels_ = true;
    for (Place& place : channels_)
      if (place.channel != nullptr) stop_channel(*place.link, "a queue that all share is lost");
  }
  const std::lock_guard guard(links_mutex_);
  for (const auto& [key, link] : links_) {
    bool wishes;
    const char* stop_because;
    {
      const std::lock_guard link_guard(link->lock);
      wishes = std::exchange(link->wishes, false) && link->channel == nullptr;
      stop_because = std::exchange(link->stop_because, nullptr);
      if (wishes) link->wish_after = messages_until_next_wish;
    }
    if (stop_because != nullptr) stop_channel(*link, stop_because);
    if (!wishes || link->owed != 0 || no_more_channels_) continue;
    if (channel_count_ >= settings_.most_queue_pairs && !give_up_idle_channel()) continue;
    if (channel_count_ < settings_.most_queue_pairs && make_channel(*link) != nullptr)
      owe(*link, VerbsLink::owes_offer);
  }
}

// The completion queue must have room for everything that may end at once.
bool VerbsTransport::have_room_for_channel() noexcept {
  if (channel_count_ < completions_for_) return true;
  const uint32_t wanted = completions_for_ * 2;
  const uint64_t entries = receives_.count() + uint64_t{wanted} * SendQueue::capacity;
  if (entries > static_cast<uint64_t>(device_->attributes.max_cqe) ||
      ibv_resize_cq(completions_, static_cast<int>(entries)) != 0) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn,
             "verbs: the completion queue cannot serve more than %u queue pairs; other peers are "
             "served by datagrams",
             completions_for_);
    return false;
  }
  completions_for_ = wanted;
  return true;
}

Channel* VerbsTransport::make_channel(VerbsLink& link) noexcept {
  if (!have_room_for_channel()) return nullptr;
  try {
    std::string reason;
    auto channel = std::make_unique<Channel>();
    channel->queue_pair = QueuePair::create(
        *device_, completions_, receives_.queue(),
        {SendQueue::capacity, sender_.small_bytes(), accesses_.pieces_of_request()}, reason);
    if (channel->queue_pair == nullptr) {
      log_message(LogLevel::warn, "verbs: %s; nid 0x%08x pid %u is served by datagrams",
                  reason.c_str(), link.peer.nid, link.peer.pid);
      return nullptr;
    }
    const auto place = std::find_if(channels_.begin(), channels_.end(),
                                    [](const Place& p) { return p.channel == nullptr; });
    channel->index = static_cast<uint32_t>(place - channels_.begin());
    channel->number = channel->queue_pair->number();
    if (place == channels_.end()) channels_.emplace_back();
    Place& taken = channels_[channel->index];
    taken.channel = std::move(channel);
    taken.link = &link;
    ++channel_count_;
    const std::lock_guard guard(link.lock);
    taken.channel->queue.open(link, requests_, taken.channel->queue_pair->get(),
                              taken.channel->index);
    link.channel = taken.channel.get();
    return link.channel;
  } catch (...) {
    log_message(LogLevel::error, "verbs: no memory for a queue pair");
    return nullptr;
  }
}

void VerbsTransport::handle_agreement(VerbsLink& link, const InboundMessage& message) noexcept {
  AgreementBody body;
  if (message.payload_length != sizeof body) {
    add(counts_.refused);
    return;
  }
  std::memcpy(&body, message.payload, sizeof body);
  if (!is_sound(body)) {
    add(counts_.refused);
    return;
  }
  const auto kind = static_cast<Agreement>(message.header.operation);
  if (kind == Agreement::offer) {
    handle_offer(link, body);
    return;
  }
  if (kind == Agreement::loss) {
    log_message(LogLevel::error,
                "verbs: nid 0x%08x pid %u says that messages were lost in a queue pair that failed",
                link.peer.nid, link.peer.pid);
    fail_link(link);
    return;
  }
  Channel* const channel = link.channel;
  if (channel == nullptr || body.receiver_number != channel->number) {
    // About a queue pair that is gone, or never was. Whoever waits to give it up is not to wait for ever.
    if (kind != Agreement::resume) return;
    link.denied_number = body.receiver_number;
    link.denied_peer_number = body.sender_number;
    owe(link, VerbsLink::owes_denial);
    return;
  }
  switch (kind) {
    case Agreement::decline:
      if (channel->connected) break;
      add(counts_.declined);
      release_queue_pair(link, *channel, RemoteStatus::unsupported);
      forget_channel(link);
      break;
    case Agreement::change:
      if (!channel->connected) break;
      hand_up_kept(*channel);
      if (channel->stopping) break;
      channel->receiving = Receiving::hands_up;
      if (link.path == Path::datagrams) begin_change(link);
      break;
    case Agreement::resume:
      if (channel->connected) handle_resume(link, body);
      break;
    case Agreement::offer:
    case Agreement::loss:
      break;
  }
}

void VerbsTransport::handle_offer(VerbsLink& link, const AgreementBody& body) noexcept {
  Channel* channel = link.channel;
  const bool asked = channel != nullptr;  // we offered too, or before
  if (body.receiver_number != 0 && (!asked || body.receiver_number != channel->number)) return;
  if (asked && channel->connected && !channel->stopping) {
    add(counts_.refused);
    return;
  }
  const bool usable = is_sound_offer(body) && body.eager_bytes >= settings_.eager_bytes &&
                      settings_.most_queue_pairs != 0 && !no_more_channels_ &&
                      !(asked && channel->stopping);
  if (usable && !asked) {
    if (channel_count_ >= settings_.most_queue_pairs) give_up_idle_channel();
    if (channel_count_ < settings_.most_queue_pairs) channel = make_channel(link);
  }
  std::string reason = "it cannot be used here";
  bool connected = false;
  if (usable && channel != nullptr) {
    QueuePairAddress peer;
    std::memcpy(&peer.gid, body.gid, sizeof peer.gid);
    peer.number = body.sender_number;
    peer.first_packet = body.first_packet;
    peer.lid = body.lid;
    peer.mtu = body.mtu;
    peer.reads = body.reads;
    connected = channel->queue_pair->connect(peer, reason);
    const std::lock_guard guard(link.lock);
    channel->peer = peer;
    channel->peer_index = body.channel_index;
  }
  if (!connected) {
    if (channel != nullptr && !channel->stopping) {
      log_message(LogLevel::warn, "verbs: %s; nid 0x%08x pid %u is served by datagrams",
                  reason.c_str(), link.peer.nid, link.peer.pid);
      release_queue_pair(link, *channel, RemoteStatus::unsupported);
      forget_channel(link);
    }
    link.declined_number = body.sender_number;
    owe(link, VerbsLink::owes_decline);
    return;
  }
  channel->connected = true;
  add(counts_.queue_pairs);
  if (asked) {
    begin_change(link);
  } else {
    owe(link, VerbsLink::owes_offer);
  }
}

// From here on nothing travels until the peer has been told so.
void VerbsTransport::begin_change(VerbsLink& link) noexcept {
  {
    const std::lock_guard guard(link.lock);
    link.path = Path::changing;
  }
  owe(link, VerbsLink::owes_change);
}

void VerbsTransport::owe(VerbsLink& link, uint8_t what) noexcept {
  link.owed |= what;
  list(link);
}

void VerbsTransport::list(VerbsLink& link) noexcept {
  if (link.listed) return;
  try {
    listed_.push_back(&link);
    link.listed = true;
  } catch (...) {
    log_message(LogLevel::error, "verbs: no memory to go on with nid 0x%08x pid %u", link.peer.nid,
                link.peer.pid);
  }
}

// True: sent, or there is nobody to send it to.
bool VerbsTransport::pay(VerbsLink& link, uint8_t what, Agreement kind) noexcept {
  if ((link.owed & what) == 0) return true;
  AgreementBody body{};
  body.version = agreement_version;
  if (const Channel* channel = link.channel; channel != nullptr) {
    body.sender_number = channel->number;
    body.receiver_number = channel->peer.number;
    body.channel_index = channel->index;
    body.received = channel->messages_received;
    if (channel->queue_pair != nullptr) {
      const QueuePairAddress own = channel->queue_pair->address();
      std::memcpy(body.gid, &own.gid, sizeof body.gid);
      body.lid = own.lid;
      body.mtu = own.mtu;
      body.reads = own.reads;
      body.first_packet = own.first_packet;
    }
  }
  if (what == VerbsLink::owes_decline) body.receiver_number = link.declined_number;
  if (what == VerbsLink::owes_denial) {
    body.sender_number = link.denied_number;
    body.receiver_number = link.denied_peer_number;
    body.received = 0;
  }
  body.eager_bytes = settings_.eager_bytes;
  MessageHeader header{};
  header.kind = MessageKind::connection;
  header.operation = static_cast<uint8_t>(kind);
  header.set_length(sizeof body);
  const Piece piece{reinterpret_cast<std::byte*>(&body), sizeof body};
  const SendStatus status = datagrams_->send(*link.datagrams, header, &piece, 1);
  if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
  link.owed &= static_cast<uint8_t>(~what);
  if (what == VerbsLink::owes_change && status == SendStatus::sent) {
    const std::lock_guard guard(link.lock);
    if (link.path == Path::changing) link.path = Path::queue_pair;
  }
  return true;
}

bool VerbsTransport::pay_all(VerbsLink& link) noexcept {
  return pay(link, VerbsLink::owes_decline, Agreement::decline) &&
         pay(link, VerbsLink::owes_offer, Agreement::offer) &&
         pay(link, VerbsLink::owes_change, Agreement::change) &&
         pay(link, VerbsLink::owes_resume, Agreement::resume) &&
         pay(link, VerbsLink::owes_denial, Agreement::resume) &&
         pay(link, VerbsLink::owes_loss, Agreement::loss);
}

bool VerbsTransport::serve(VerbsLink& link) noexcept {
  if (!pay_all(link)) return false;
  return link.channel == nullptr || !link.channel->stopping || continue_stopping(link);
}

void VerbsTransport::serve_listed() noexcept {
  for (size_t i = 0; i < listed_.size();) {
    VerbsLink& link = *listed_[i];
    if (serve(link)) {
      link.listed = false;
      listed_[i] = listed_.back();
      listed_.pop_back();
    } else {
      ++i;
    }
  }
}

}  // namespace lintel
