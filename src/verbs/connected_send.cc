// Sending: over the queue pair if there is one, as datagrams until then. Message path: no system call
// of ours (a driver may make its own), no allocation.
#include <arpa/inet.h>

#include <cstring>
#include <mutex>
#include <utility>

#include "util/guarded_memory.h"
#include "verbs/verbs_transport.h"

namespace lintel {

SendStatus VerbsTransport::send(Link& base, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const std::lock_guard guard(link.lock);
  // PTL_MD_UNRELIABLE: a datagram, if need be lost.
  const bool unreliable = (header.flags & flag_unreliable) != 0 && header.kind == MessageKind::put;
  if (link.path == Path::queue_pair && !unreliable) [[likely]]
    return send_connected(link, header, pieces, count);
  if (link.path == Path::datagrams || unreliable) {
    if (!unreliable) wish_channel(link);
    return datagrams_->send(*link.datagrams, header, pieces, count);
  }
  return SendStatus::connecting;
}

uint32_t VerbsTransport::acquire_slot(Channel& channel, uint64_t bytes) noexcept {
  if (bytes <= slots_.small_bytes() && channel.spare_count != 0)
    return channel.spare_slots[--channel.spare_count];
  return slots_.acquire(bytes);
}

// The next message of the channel may have it, without a locked instruction.
void VerbsTransport::release_slot(Channel& channel, uint32_t number) noexcept {
  if (!SendSlots::is_large(number) && channel.spare_count < Channel::spare_slots_kept) {
    channel.spare_slots[channel.spare_count++] = number;
  } else {
    slots_.release(number);
  }
}

SendStatus VerbsTransport::send_connected(VerbsLink& link, const MessageHeader& header,
                                          const Piece* pieces, unsigned count) noexcept {
  Channel& channel = *link.channel;
  if (channel.room() <= Channel::reserved_requests) return SendStatus::queue_full;
  uint64_t payload = 0;
  for (unsigned i = 0; i < count; ++i) payload += pieces[i].length;
  const uint64_t total = sizeof header + payload;
  const uint32_t slot = acquire_slot(channel, total);
  if (slot == SendSlots::none) return SendStatus::queue_full;
  std::byte* const data = slots_.data(slot);
  MessageHeader sent = header;
  // What invalidates a window says which exposure that is part of, what does not how long it is.
  const uint64_t forgone = channel.forgone;
  sent.link_word = forgone == 0 ? static_cast<uint32_t>(payload) : exposure_of_key(forgone);
  std::memcpy(data, &sent, sizeof sent);
  std::byte* to = data + sizeof sent;
  for (unsigned i = 0; i < count; ++i) {
    if (!guarded_copy(to, pieces[i].base, pieces[i].length)) {
      release_slot(channel, slot);
      return SendStatus::inaccessible;
    }
    to += pieces[i].length;
  }
  slots_.length(slot) = static_cast<uint32_t>(total);

  ibv_sge piece{reinterpret_cast<uint64_t>(data), static_cast<uint32_t>(total), slots_.lkey(slot)};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  if (forgone == 0) [[likely]] {
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(channel.peer_index);
  } else {
    request.opcode = IBV_WR_SEND_WITH_INV;
    request.invalidate_rkey = static_cast<uint32_t>(forgone);
  }
  if (total <= channel.queue_pair->sizes().inline_bytes) request.send_flags = IBV_SEND_INLINE;
  // Large slots are few: they come back as soon as they can.
  if (!post(link, request, {RequestKind::message, slot}, SendSlots::is_large(slot))) {
    release_slot(channel, slot);
    return SendStatus::queue_full;
  }
  channel.forgone = 0;
  ++channel.messages_posted;
  return SendStatus::sent;
}

// The lock of the link is held. False: the device refused, and the poller has been told.
bool VerbsTransport::post(VerbsLink& link, ibv_send_wr& request, PostedRequest record,
                          bool signalled, Posting when) noexcept {
  Channel& channel = *link.channel;
  HeldRequests& held = channel.held;
  request.wr_id = uint64_t{channel.index} << 32 | channel.posted;
  if (++channel.unsignalled >= Channel::signal_interval || signalled) {
    request.send_flags |= IBV_SEND_SIGNALED;
    channel.unsignalled = 0;
  }
  const bool waits = when == Posting::with_next || link.holds != 0;
  if (!waits && held.count == 0) [[likely]] {
    ibv_send_wr* refused = nullptr;
    if (ibv_post_send(channel.queue_pair->get(), &request, &refused) != 0) [[unlikely]] {
      ask_to_stop(link, "the device refused a work request");
      return false;
    }
    channel.requests[channel.posted++ % Channel::send_requests] = record;
    return true;
  }
  channel.requests[channel.posted++ % Channel::send_requests] = record;
  held.requests[held.count] = request;
  if (request.num_sge == 1) {
    held.pieces[held.count] = request.sg_list[0];
    held.requests[held.count].sg_list = &held.pieces[held.count];
  }
  ++held.count;
  // The caller's pieces do not last.
  if (!waits || request.num_sge > 1 || held.count == HeldRequests::most) post_held(link);
  return true;
}

// In one call, which is what costs. What the device refuses counts as posted: with the queue pair given up
// it will be sent another way.
void VerbsTransport::post_held(VerbsLink& link) noexcept {
  Channel& channel = *link.channel;
  HeldRequests& held = channel.held;
  const unsigned count = std::exchange(held.count, 0u);
  for (unsigned i = 0; i < count; ++i)
    held.requests[i].next = i + 1 < count ? &held.requests[i + 1] : nullptr;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(channel.queue_pair->get(), held.requests, &refused) != 0) [[unlikely]]
    ask_to_stop(link, "the device refused a work request");
  // Posting a binding takes the former key from there, and leaves it to its user to note the new one.
  for (unsigned i = 0; i < count; ++i)
    if (held.requests[i].opcode == IBV_WR_BIND_MW)
      held.requests[i].bind_mw.mw->rkey = held.requests[i].bind_mw.rkey;
}

void VerbsTransport::hold(Link& base) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const std::lock_guard guard(link.lock);
  ++link.holds;
}

void VerbsTransport::let_go(Link& base) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const std::lock_guard guard(link.lock);
  if (--link.holds == 0 && link.channel != nullptr && link.channel->held.count != 0)
    post_held(link);
}

}  // namespace lintel
