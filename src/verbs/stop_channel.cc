// Giving up a queue pair, because it failed, is idle, or the peer gave it up: what it did not deliver is
// sent again as datagrams, in order and once. Connection path, the poller.
//
// Each end stops its queue pair, takes everything that has arrived, and tells the other how many messages
// that were (resume). Either then repeats those that the other does not have, and goes on with
// datagrams. Remote accesses under way end as unsupported, and their data travel in messages.
#include <cstring>
#include <mutex>

#include "util/clock.h"
#include "util/log.h"
#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

// A device that has not ended the work requests of a stopped queue pair by then ends them no more, unless
// the queue pair is destroyed.
constexpr uint64_t flush_limit_ns = 500'000'000;
constexpr uint32_t most_failures = 3;

}  // namespace

void VerbsTransport::stop_channel(VerbsLink& link, const char* why) noexcept {
  Channel* const channel = link.channel;
  if (channel == nullptr || channel->stopping || !channel->connected) return;
  channel->stopping = true;
  channel->why_stopped = why;
  channel->stopped_at_ns = now_ns();
  {
    const std::lock_guard guard(link.lock);
    link.path = Path::stopping;
    channel->queue.flush();
  }
  channel->queue_pair->stop();
  link.owed &= static_cast<uint8_t>(~VerbsLink::owes_change);
  add(counts_.stopped);
  log_message(LogLevel::info, "verbs: the queue pair with nid 0x%08x pid %u stops: %s",
              link.peer.nid, link.peer.pid, why);
  list(link);
}

// Everything that has come over the queue pair is handed up, now or after the last datagram; nothing that
// comes later is.
void VerbsTransport::stop_receiving(Channel& channel) noexcept {
  if (channel.receiving == Receiving::drops) return;
  // What other peers go on sending need not be waited for.
  const uint64_t most = receives_.count() + uint64_t{completions_for_} * SendQueue::capacity;
  for (uint64_t handled = 0; handled < most;) {
    const unsigned now = poll_completions(completion_burst);
    if (now == 0) break;
    handled += now;
  }
  channel.receiving = Receiving::drops;
}

// True: datagrams have taken over.
bool VerbsTransport::continue_stopping(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  if (!channel.resume_sent) {
    {
      const std::lock_guard guard(link.lock);
      if (!channel.queue.is_empty() && elapsed_ns(channel.stopped_at_ns, now_ns()) < flush_limit_ns)
        return false;
    }
    stop_receiving(channel);
    release_queue_pair(link, channel, RemoteStatus::unsupported);
    channel.resume_sent = true;
    link.owed |= VerbsLink::owes_resume;
  }
  if (!pay_all(link) || !channel.peer_resumes) return false;
  if (channel.peer_received < channel.messages_retired) {
    log_message(
        LogLevel::error,
        "verbs: nid 0x%08x pid %u has %llu messages of %llu that the device called delivered",
        link.peer.nid, link.peer.pid, static_cast<unsigned long long>(channel.peer_received),
        static_cast<unsigned long long>(channel.messages_retired));
    link.owed |= VerbsLink::owes_loss;
    pay_all(link);
    fail_link(link);
    return true;
  }
  if (!sender_.send_again(link, *datagrams_)) return false;
  forget_channel(link);
  return true;
}

// Whatever the queue pair was to do is over when this returns.
void VerbsTransport::release_queue_pair(VerbsLink& link, Channel& channel,
                                        RemoteStatus status) noexcept {
  if (channel.queue_pair == nullptr) return;
  {
    const std::lock_guard guard(link.lock);
    channel.queue.discard_held();
    exposures_.abandon(channel);
    channel.queue_pair.reset();
    while (!channel.queue.is_empty()) retire(link, false);
    accesses_.abandon(channel);
    sender_.release_spares(channel);
    if (status != RemoteStatus::unsupported) accesses_.set_failure(link, status);
  }
  if (sink_ != nullptr) report_ended();
}

void VerbsTransport::forget_channel(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  if (std::strcmp(channel.why_stopped, "") != 0 &&
      channel.messages_received + channel.messages_retired == 0)
    ++link.failures;
  const uint32_t index = channel.index;
  // Those of a peer that has failed before its last datagram came.
  for (; channel.kept_first != Channel::none_kept;
       channel.kept_first = kept_[channel.kept_first].next)
    receives_.give_back(channel.kept_first);
  {
    const std::lock_guard guard(link.lock);
    link.path = Path::datagrams;
    link.channel = nullptr;
    if (link.failures >= most_failures) link.wish_after = ChannelRequests::never;
  }
  channels_[index] = {};
  --channel_count_;
}

void VerbsTransport::handle_resume(VerbsLink& link, const AgreementBody& body) noexcept {
  Channel& channel = *link.channel;
  channel.peer_resumes = true;
  channel.peer_received = body.received;
  stop_channel(link, "the peer gave it up");
  // What follows this message was sent after everything that came over the queue pair.
  stop_receiving(channel);
}

void VerbsTransport::fail_link(VerbsLink& link) noexcept {
  {
    // Who sends from now on, other threads or the core as accesses end below, hears of the failure.
    const std::lock_guard guard(link.lock);
    link.path = Path::datagrams;
  }
  if (Channel* const channel = link.channel; channel != nullptr) {
    channel->stopping = true;
    if (channel->queue_pair != nullptr) channel->queue_pair->stop();
    // The last messages of a peer that takes its leave may have come just now.
    stop_receiving(*channel);
    release_queue_pair(link, *channel, RemoteStatus::peer_failed);
    channel->why_stopped = "";
    forget_channel(link);
  }
  sender_.discard_unsent(link);
  link.owed = 0;
  sink_->on_peer_failed(link);
}

}  // namespace lintel
