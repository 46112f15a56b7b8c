#include "verbs/completions.h"

#include <arpa/inet.h>

#include <cstring>
#include <utility>

#include "util/lock.h"

namespace lintel {

namespace {

// The completion names a key that the message has invalidated. rxe hands up the flag of the kernel,
// whose number is that of another flag here; queue pairs of this kind never have that one.
constexpr unsigned invalidated = IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;

}  // namespace

bool Arrivals::is_plausible(const MessageHeader& header, uint32_t payload_bytes,
                            bool invalidates) const noexcept {
  const auto kind = static_cast<unsigned>(header.kind);
  return kind - 1u < message_kinds - 1u && (header.flags & ~flag_known) == 0 &&
         (invalidates || header.link_word == payload_bytes) && payload_bytes <= eager_bytes_;
}

// The immediate data name the channel, so that nothing need be searched. Messages that invalidate a
// window cannot have any, and come with long transfers only.
Channels::Place* Arrivals::sender_of(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS) return nullptr;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) [[likely]]
    return channels_.find(ntohl(completion.imm_data), completion.qp_num);
  return channels_.find(completion.qp_num);
}

void Arrivals::take(const ibv_wc& completion, MessageSink& sink) noexcept {
  const auto buffer = static_cast<uint32_t>(completion.wr_id);
  Channels::Place* const place = sender_of(completion);
  if (place == nullptr) {
    // An error that concerns the queue pair, or a peer that does not keep to what was agreed.
    receives_.give_back(buffer);
    if (const Channels::Place* const other = channels_.find(completion.qp_num); other != nullptr)
      channels_.stop(*other->link, completion.status == IBV_WC_SUCCESS
                                       ? "its message names another queue pair"
                                       : ibv_wc_status_str(completion.status));
    return;
  }
  Channel& channel = *place->channel;
  if (channel.received.treatment != Receiving::hands_up) [[unlikely]] {
    if (channel.received.treatment == Receiving::keeps) {
      keep(channel, completion);
    } else {
      receives_.give_back(buffer);
    }
    return;
  }
  ++channel.received.count;
  take_message(*place->link, completion, sink);
}

void Arrivals::refuse(uint32_t buffer) noexcept {
  refused_.increment();
  receives_.give_back(buffer);
}

void Arrivals::take_message(VerbsLink& link, const ibv_wc& completion, MessageSink& sink) noexcept {
  const auto buffer = static_cast<uint32_t>(completion.wr_id);
  MessageHeader header;
  const std::byte* const data = receives_.data(buffer);
  if (completion.byte_len < sizeof header) return refuse(buffer);
  std::memcpy(&header, data, sizeof header);
  const auto payload = static_cast<uint32_t>(completion.byte_len - sizeof header);
  const bool invalidates = (completion.wc_flags & invalidated) != 0;
  if (invalidates) exposures_.note_invalidated(link, header.link_word, completion.invalidated_rkey);
  // The message only causes a completion, or invalidates a window, see MessageSender.
  if (header.kind == MessageKind::connection) {
    if (notices_ != nullptr && payload != 0)
      notices_->on_notice(link, data + sizeof header, payload);
    return receives_.give_back(buffer);
  }
  if (!is_plausible(header, payload, invalidates)) return refuse(buffer);
  if (link_ != &link || count_ == most_together) deliver(sink);
  link_ = &link;
  buffers_[count_] = buffer;
  messages_[count_++] = {header, data + sizeof header, payload};
}

// Keeps a message that is delivered later. It counts as received.
void Arrivals::keep(Channel& channel, const ibv_wc& completion) noexcept {
  const auto buffer = static_cast<uint32_t>(completion.wr_id);
  ++channel.received.count;
  kept_[buffer] = {completion, ReceivedMessages::none_kept};
  if (channel.received.kept_first == ReceivedMessages::none_kept) {
    channel.received.kept_first = buffer;
  } else {
    kept_[channel.received.kept_last].next = buffer;
  }
  channel.received.kept_last = buffer;
}

void Arrivals::hand_up_kept(VerbsLink& link, MessageSink& sink) noexcept {
  Channel& channel = *link.channel;
  while (channel.received.kept_first != ReceivedMessages::none_kept) {
    const KeptMessage& kept = kept_[channel.received.kept_first];
    channel.received.kept_first = kept.next;
    take_message(link, kept.completion, sink);
  }
  deliver(sink);
}

void Arrivals::discard_kept(Channel& channel) noexcept {
  for (; channel.received.kept_first != ReceivedMessages::none_kept;
       channel.received.kept_first = kept_[channel.received.kept_first].next)
    receives_.give_back(channel.received.kept_first);
}

void Arrivals::deliver(MessageSink& sink) noexcept {
  if (count_ == 0) return;
  const unsigned count = std::exchange(count_, 0u);
  received_.add(count);
  // Answers to several messages are posted together.
  if (count > 1) cork(*link_);
  sink.on_messages(*link_, messages_, count);
  if (count > 1) uncork(*link_);
  for (unsigned i = 0; i < count; ++i) receives_.give_back(buffers_[i]);
}

unsigned Completions::poll(MessageSink& sink, unsigned budget) noexcept {
  unsigned handled = 0;
  while (handled < budget) {
    ibv_wc completions[CompletionQueue::burst];
    const unsigned count = queue_.take(completions);
    if (count == 0) break;
    for (unsigned i = 0; i < count; ++i) {
      if ((completions[i].wr_id & Arrivals::tag) != 0) {
        arrivals_.take(completions[i], sink);
      } else {
        take_send(completions[i]);
      }
    }
    handled += count;
    arrivals_.deliver(sink);
    if (count < CompletionQueue::burst) break;
  }
  if (handled != 0) report_ended(sink);
  return handled;
}

void Completions::stop_receiving(Channel& channel, MessageSink& sink) noexcept {
  if (channel.received.treatment == Receiving::drops) return;
  // There were no more when this began; what other peers go on sending need not be waited for.
  for (uint64_t handled = 0; handled < queue_.entries();) {
    const unsigned now = poll(sink, CompletionQueue::burst);
    if (now == 0) break;
    handled += now;
  }
  channel.received.treatment = Receiving::drops;
}

void Completions::take_send(const ibv_wc& completion) noexcept {
  const auto position = static_cast<uint32_t>(completion.wr_id);
  Channels::Place* const place = channels_.find(completion.wr_id >> 32, completion.qp_num);
  if (place == nullptr) return;  // the queue pair is gone
  VerbsLink& link = *place->link;
  Channel& channel = *place->channel;
  const bool success = completion.status == IBV_WC_SUCCESS;
  {
    const LockGuard guard(link.lock);
    if (!channel.queue.contains(position)) return;
    // Earlier requests without completion have succeeded. When the queue pair has failed, the peer
    // reports which messages it has, and no access to memory counts as done.
    while (channel.queue.oldest() != position) retire(link, success);
    retire(link, success);
    if (success && !channel.stop.begun) {
      if (channel.accesses.waiting != nullptr) accesses_.post_waiting(link);
      if (channel.exposures_to_withdraw != 0) exposures_.post_waiting(link);
    }
  }
  if (!success) channels_.stop(link, ibv_wc_status_str(completion.status));
}

void Completions::retire(VerbsLink& link, bool success) noexcept {
  Channel& channel = *link.channel;
  const PostedRequest record = channel.queue.retire();
  switch (record.kind) {
    case RequestKind::message:
      sender_.retire(link, record.index, success);
      break;
    case RequestKind::remote_access:
      accesses_.retire(channel, record.index, success);
      break;
    case RequestKind::bind:
      break;
    case RequestKind::withdraw:
      // Otherwise the window stays bound until the queue pair is gone, see Exposures::abandon().
      if (success) exposures_.retire(record.index);
      break;
  }
}

void Completions::release(VerbsLink& link, RemoteStatus status) noexcept {
  Channel& channel = *link.channel;
  if (channel.queue_pair == nullptr) return;
  const LockGuard guard(link.lock);
  channel.queue.discard_held();
  exposures_.abandon(channel);
  channels_.release(std::move(channel.queue_pair));
  while (!channel.queue.is_empty()) retire(link, false);
  accesses_.abandon(channel);
  sender_.release_spares(channel);
  if (status != RemoteStatus::unsupported) accesses_.set_failure(link, status);
}

void Completions::report_ended(MessageSink& sink) noexcept {
  exposures_.release_ended();
  accesses_.report(sink);
}

}  // namespace lintel
