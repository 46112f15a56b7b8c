#include "verbs/channel_change.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "transport/packet_link.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

// Number of messages sent as datagrams before another request to a peer that declined. Doubled by
// each queue pair in sequence that fails before it carries anything: its messages wait until the
// device reports that.
constexpr uint32_t messages_between_requests = 256;
constexpr uint32_t most_doublings = 12;
constexpr uint32_t most_number = 0xffffff;  // QPNs and PSNs have 24 bits

// Takes the lock: a sender may request the end of the queue pair at any time.
bool sends_datagrams(VerbsLink& link) noexcept {
  const LockGuard guard(link.lock);
  return link.path == Path::datagrams;
}

bool is_sound(const AgreementBody& body) noexcept {
  return body.version == agreement_version && body.sender_number <= most_number &&
         body.receiver_number <= most_number && body.first_packet <= most_number &&
         body.rail < most_rails && body.zero[0] == 0 && body.zero[1] == 0;
}

bool is_sound_offer(const AgreementBody& body) noexcept {
  return body.sender_number != 0 && body.mtu >= IBV_MTU_256 && body.mtu <= IBV_MTU_4096 &&
         body.reads != 0;
}

// A device that has not ended the work requests of a stopped queue pair by then ends them only when
// the queue pair is destroyed.
constexpr uint64_t flush_limit_ns = 500'000'000;

}  // namespace

void ChannelChange::stop_broken(const ChannelRequests::Broken& broken) noexcept {
  // Messages that had arrived in a lost queue and were not taken are lost. The ends find such
  // losses when they compare their counts.
  if (broken.shared_queue) parts_.channels.close();
  parts_.channels.for_each([&](VerbsLink& link, Channel& channel) {
    if (channel.number == broken.queue_pair)
      parts_.channels.stop(link, "the device reports that it has failed");
    if (broken.shared_queue) parts_.channels.stop(link, "a queue that all share is lost");
  });
}

void ChannelChange::grant(VerbsLink& link) noexcept {
  bool wanted;
  const char* stop_because;
  {
    const LockGuard guard(link.lock);
    wanted = std::exchange(link.wants_channel, false) && link.channel == nullptr;
    stop_because = std::exchange(link.stop_because, nullptr);
    if (wanted) link.messages_until_request = messages_between_requests;
  }
  if (stop_because != nullptr) parts_.channels.stop(link, stop_because);
  if (!wanted || link.pending != 0) return;
  // A queue pair that is stopped now makes room for a later request.
  static_cast<void>(offer(link));
}

bool ChannelChange::offer(VerbsLink& link) noexcept {
  if (parts_.channels.is_closed()) return false;
  if (parts_.channels.is_full()) {
    static_cast<void>(idle_.stop_longest_idle());
    return false;
  }
  if (parts_.channels.make(link, sizes_) == nullptr) return false;
  agreements_.schedule(link, VerbsLink::pending_offer);
  return true;
}

void ChannelChange::handle(VerbsLink& link, const InboundMessage& message,
                           MessageSink& sink) noexcept {
  AgreementBody body;
  if (message.payload_length != sizeof body) {
    refused_.increment();
    return;
  }
  std::memcpy(&body, message.payload, sizeof body);
  const auto kind = static_cast<Agreement>(message.header.operation);
  if (kind == Agreement::rails) return;  // this process has one port
  if (!is_sound(body) || body.rail != link.rail) {
    refused_.increment();
    return;
  }
  if (kind == Agreement::offer) {
    handle_offer(link, body, sink);
    return;
  }
  if (kind == Agreement::loss) {
    log_message(LogLevel::error,
                "verbs: %s reports that messages were lost in a queue pair that failed",
                ProcessText(link.peer.nid, link.peer.pid).c_str());
    fail(link, sink);
    return;
  }
  Channel* const channel = link.channel;
  if (channel == nullptr || body.receiver_number != channel->number) {
    // About a queue pair that is gone, or never was. The peer waits for an answer before it gives
    // up its own.
    if (kind == Agreement::resume) agreements_.deny(link, body.receiver_number, body.sender_number);
    return;
  }
  switch (kind) {
    case Agreement::decline:
      if (channel->connected) break;
      declined_.increment();
      release(link, RemoteStatus::unsupported, sink);
      forget(link);
      break;
    case Agreement::change:
      if (!channel->connected) break;
      parts_.arrivals.hand_up_kept(link, sink);
      if (channel->stop.begun) break;
      channel->received.treatment = Receiving::hands_up;
      if (sends_datagrams(link)) agreements_.begin_change(link);
      break;
    case Agreement::resume:
      if (channel->connected) handle_resume(link, body, sink);
      break;
    case Agreement::offer:
    case Agreement::loss:
    case Agreement::rails:
      break;
  }
}

void ChannelChange::handle_offer(VerbsLink& link, const AgreementBody& body,
                                 MessageSink& sink) noexcept {
  Channel* channel = link.channel;
  const bool asked = channel != nullptr;  // this end has offered, too, or before
  if (body.receiver_number != 0 && (!asked || body.receiver_number != channel->number)) return;
  if (asked && channel->connected && !channel->stop.begun) {
    refused_.increment();
    return;
  }
  const bool usable = is_sound_offer(body) && body.eager_bytes >= eager_bytes_ && allowed_ &&
                      !parts_.channels.is_closed() && !(asked && channel->stop.begun);
  if (usable && !asked) {
    if (parts_.channels.is_full()) {
      static_cast<void>(idle_.stop_longest_idle());
    } else {
      channel = parts_.channels.make(link, sizes_);
    }
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
    const LockGuard guard(link.lock);
    channel->peer = peer;
    channel->peer_index = body.channel_index;
  }
  if (!connected) {
    if (channel != nullptr && !channel->stop.begun) {
      log_message(LogLevel::warn, "verbs: %s; %s is served by datagrams", reason.c_str(),
                  ProcessText(link.peer.nid, link.peer.pid).c_str());
      release(link, RemoteStatus::unsupported, sink);
      forget(link);
    }
    agreements_.decline(link, body.sender_number);
    return;
  }
  channel->connected = true;
  connected_.increment();
  if (asked) {
    agreements_.begin_change(link);
  } else {
    agreements_.schedule(link, VerbsLink::pending_offer);
  }
}

bool ChannelChange::serve(VerbsLink& link, MessageSink& sink) noexcept {
  if (!agreements_.send_pending(link)) return false;
  return link.channel == nullptr || !link.channel->stop.begun || continue_stopping(link, sink);
}

// True: datagrams have taken over.
bool ChannelChange::continue_stopping(VerbsLink& link, MessageSink& sink) noexcept {
  Channel& channel = *link.channel;
  if (!channel.stop.resume_sent) {
    {
      const LockGuard guard(link.lock);
      if (!channel.queue.is_empty() && elapsed_ns(channel.stop.since_ns, now_ns()) < flush_limit_ns)
        return false;
    }
    parts_.completions.stop_receiving(channel, sink);
    release(link, RemoteStatus::unsupported, sink);
    channel.stop.resume_sent = true;
    link.pending |= VerbsLink::pending_resume;
  }
  if (!agreements_.send_pending(link) || !channel.stop.peer_resumes) return false;
  if (channel.stop.peer_received < channel.sent.retired) {
    log_message(LogLevel::error,
                "verbs: %s has %llu messages of %llu that the device reported as delivered",
                ProcessText(link.peer.nid, link.peer.pid).c_str(),
                static_cast<unsigned long long>(channel.stop.peer_received),
                static_cast<unsigned long long>(channel.sent.retired));
    link.pending |= VerbsLink::pending_loss;
    static_cast<void>(agreements_.send_pending(link));
    fail(link, sink);
    return true;
  }
  if (!parts_.sender.send_again(link, parts_.datagrams)) return false;
  forget(link);
  return true;
}

void ChannelChange::release(VerbsLink& link, RemoteStatus status, MessageSink& sink) noexcept {
  parts_.completions.release(link, status);
  parts_.completions.report_ended(sink);
}

void ChannelChange::forget(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  if (channel.received.count + channel.sent.retired != 0) {
    link.failures = 0;
  } else if (std::strcmp(channel.stop.reason, "") != 0) {
    ++link.failures;
    const LockGuard guard(link.lock);
    if (link.messages_until_request != ChannelRequests::never)
      link.messages_until_request = messages_between_requests
                                    << std::min(link.failures, most_doublings);
  }
  parts_.arrivals.discard_kept(channel);
  parts_.channels.remove(link);
}

void ChannelChange::handle_resume(VerbsLink& link, const AgreementBody& body,
                                  MessageSink& sink) noexcept {
  Channel& channel = *link.channel;
  channel.stop.peer_resumes = true;
  channel.stop.peer_received = body.received;
  parts_.channels.stop(link, "the peer gave it up");
  // Datagrams behind this one were sent after all messages that came over the queue pair.
  parts_.completions.stop_receiving(channel, sink);
}

void ChannelChange::fail(VerbsLink& link, MessageSink& sink) noexcept {
  if (rails_ != nullptr) rails_->fail(link);
  {
    // Sends from now on, by other threads or by the core as accesses end below, answer peer_failed.
    const LockGuard guard(link.lock);
    link.path = Path::datagrams;
  }
  if (Channel* const channel = link.channel; channel != nullptr) {
    channel->stop.begun = true;
    if (channel->queue_pair != nullptr) channel->queue_pair->stop();
    // The last messages of a peer that closes may have come just now.
    parts_.completions.stop_receiving(*channel, sink);
    release(link, RemoteStatus::peer_failed, sink);
    channel->stop.reason = "";
    forget(link);
  }
  parts_.sender.discard_unsent(link);
  link.pending = 0;
  sink.on_peer_failed(link);
}

}  // namespace lintel
