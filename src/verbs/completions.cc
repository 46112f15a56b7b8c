// What the device has done: messages that arrived, work requests that ended. Message path, the poller.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

// The completion names a key that the message has invalidated. rxe hands up the flag of the kernel, whose
// number is that of another flag here; queue pairs of this kind never have that one.
constexpr unsigned invalidated = IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;

}  // namespace

unsigned VerbsTransport::poll_completions(unsigned budget) noexcept {
  unsigned handled = 0;
  while (handled < budget) {
    ibv_wc completions[completion_burst];
    unsigned count = std::exchange(early_count_, 0u);
    if (count != 0) {
      std::copy_n(early_, count, completions);
    } else {
      const int got = ibv_poll_cq(completions_, completion_burst, completions);
      if (got <= 0) break;
      count = static_cast<unsigned>(got);
    }
    for (unsigned i = 0; i < count; ++i) {
      if ((completions[i].wr_id & receive_tag) != 0) {
        take_receive(completions[i]);
      } else {
        take_send(completions[i]);
      }
    }
    handled += count;
    deliver();
    if (count < completion_burst) break;
  }
  if (handled == 0) return 0;
  report_ended();
  return handled;
}

bool VerbsTransport::is_plausible(const MessageHeader& header, uint32_t payload_bytes,
                                  bool invalidates) const noexcept {
  const auto kind = static_cast<unsigned>(header.kind);
  return kind - 1u < message_kinds - 1u && (header.flags & ~flag_known) == 0 &&
         (invalidates || header.link_word == payload_bytes) &&
         payload_bytes <= settings_.eager_bytes;
}

// Whom it is from: the immediate data say it, so that nothing need be searched. What invalidates a window
// cannot have any, and comes with long transfers only.
VerbsTransport::Place* VerbsTransport::place_of(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS) return nullptr;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) [[likely]] {
    const uint32_t index = ntohl(completion.imm_data);
    return index < channels_.size() && channels_[index].channel != nullptr &&
                   channels_[index].channel->number == completion.qp_num
               ? &channels_[index]
               : nullptr;
  }
  for (Place& place : channels_)
    if (place.channel != nullptr && place.channel->number == completion.qp_num) return &place;
  return nullptr;
}

void VerbsTransport::take_receive(const ibv_wc& completion) noexcept {
  const auto buffer = static_cast<uint32_t>(completion.wr_id);
  Place* const place = place_of(completion);
  if (place == nullptr) {
    // An error that concerns the queue pair, or a peer that does not keep to what was agreed.
    receives_.give_back(buffer);
    for (Place& other : channels_)
      if (other.channel != nullptr && other.channel->number == completion.qp_num)
        stop_channel(*other.link, completion.status == IBV_WC_SUCCESS
                                      ? "its message names another queue pair"
                                      : ibv_wc_status_str(completion.status));
    return;
  }
  Channel& channel = *place->channel;
  if (channel.receiving != Receiving::hands_up) [[unlikely]] {
    if (channel.receiving == Receiving::keeps) {
      keep(channel, completion);
    } else {
      receives_.give_back(buffer);
    }
    return;
  }
  ++channel.messages_received;
  take_message(*place, completion);
}

void VerbsTransport::take_message(Place& place, const ibv_wc& completion) noexcept {
  const auto buffer = static_cast<uint32_t>(completion.wr_id);
  MessageHeader header;
  const std::byte* const data = receives_.data(buffer);
  if (completion.byte_len < sizeof header) {
    add(counts_.refused);
    receives_.give_back(buffer);
    return;
  }
  std::memcpy(&header, data, sizeof header);
  const auto payload = static_cast<uint32_t>(completion.byte_len - sizeof header);
  const bool invalidates = (completion.wc_flags & invalidated) != 0;
  if (invalidates)
    exposures_.note_invalidated(*place.link, header.link_word, completion.invalidated_rkey);
  if (!is_plausible(header, payload, invalidates) || header.kind == MessageKind::connection) {
    // One of kind connection only makes what went before it end, see all_delivered(), or ends an exposure.
    if (header.kind != MessageKind::connection) add(counts_.refused);
    receives_.give_back(buffer);
    return;
  }
  if (batch_.link != place.link || batch_.count == completion_burst) deliver();
  batch_.link = place.link;
  batch_.buffers[batch_.count] = buffer;
  batch_.messages[batch_.count++] = {header, data + sizeof header, payload};
}

// A message that has overtaken the last datagram. Its sender is told that it has arrived, and it will be handed up.
void VerbsTransport::keep(Channel& channel, const ibv_wc& completion) noexcept {
  const auto buffer = static_cast<uint32_t>(completion.wr_id);
  ++channel.messages_received;
  kept_[buffer] = {completion, Channel::none_kept};
  if (channel.kept_first == Channel::none_kept) {
    channel.kept_first = buffer;
  } else {
    kept_[channel.kept_last].next = buffer;
  }
  channel.kept_last = buffer;
}

// The last datagram is there.
void VerbsTransport::hand_up_kept(Channel& channel) noexcept {
  while (channel.kept_first != Channel::none_kept) {
    const KeptMessage& kept = kept_[channel.kept_first];
    channel.kept_first = kept.next;
    take_message(channels_[channel.index], kept.completion);
  }
  deliver();
}

void VerbsTransport::deliver() noexcept {
  if (batch_.count == 0) return;
  const unsigned count = std::exchange(batch_.count, 0u);
  // Nobody else writes it.
  counts_.received.store(counts_.received.load(std::memory_order_relaxed) + count,
                         std::memory_order_relaxed);
  // Answers to several messages are posted together.
  if (count > 1) hold(*batch_.link);
  sink_->on_messages(*batch_.link, batch_.messages, count);
  if (count > 1) let_go(*batch_.link);
  for (unsigned i = 0; i < count; ++i) receives_.give_back(batch_.buffers[i]);
}

void VerbsTransport::take_send(const ibv_wc& completion) noexcept {
  const uint64_t index = completion.wr_id >> 32;
  const auto position = static_cast<uint32_t>(completion.wr_id);
  if (index >= channels_.size() || channels_[index].channel == nullptr ||
      channels_[index].channel->number != completion.qp_num)
    return;  // of a queue pair that is gone
  VerbsLink& link = *channels_[index].link;
  Channel& channel = *channels_[index].channel;
  const bool success = completion.status == IBV_WC_SUCCESS;
  {
    const std::lock_guard guard(link.lock);
    if (!channel.queue.contains(position)) return;
    // Those before it have ended well and ask for no completion. When the queue pair has failed, the peer says
    // which messages it has, and no access to memory counts as done.
    while (channel.queue.oldest() != position) retire(link, success);
    retire(link, success);
    if (success && !channel.stopping) {
      if (channel.waiting != nullptr) accesses_.post_waiting(link);
      if (channel.exposures_to_conceal != 0) exposures_.post_waiting(link);
    }
  }
  if (!success) stop_channel(link, ibv_wc_status_str(completion.status));
}

void VerbsTransport::retire(VerbsLink& link, bool success) noexcept {
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
    case RequestKind::conceal:
      exposures_.retire(record.index);
      break;
  }
}

// What must not be done under the lock of a link.
void VerbsTransport::report_ended() noexcept {
  exposures_.release_ended();
  accesses_.report(*sink_);
}

}  // namespace lintel
