#include "verbs/message_sender.h"

#include <arpa/inet.h>

#include <cstring>

#include "util/guarded_memory.h"
#include "util/lock.h"
#include "util/text.h"
#include "verbs/channel.h"

namespace lintel {

bool SendSlots::Pool::open(ibv_pd* pd, uint32_t count, uint32_t bytes, std::string& reason) {
  constexpr uint32_t alignment = 64;
  slot_bytes = (bytes + alignment - 1) / alignment * alignment;
  if (!states.open(count))
    return explained(false, reason, "no address space for messages (ulimit -v?)");
  return memory.open(pd, size_t{count} * slot_bytes, 0, "messages to be sent", reason);
}

bool SendSlots::open(ibv_pd* pd, uint32_t small_bytes, uint32_t large_bytes, std::string& reason) {
  constexpr uint32_t small_count = 8192;
  constexpr uint32_t large_count = 512;
  return small_.open(pd, small_count, small_bytes, reason) &&
         large_.open(pd, large_count, large_bytes, reason);
}

uint32_t SendSlots::acquire(uint64_t bytes) noexcept {
  if (bytes <= small_.slot_bytes) return small_.states.allocate();
  if (bytes > large_.slot_bytes) return none;
  const uint32_t index = large_.states.allocate();
  return index == none ? none : index | large_bit;
}

namespace {

constexpr MessageHeader make_nothing() noexcept {
  MessageHeader header{};
  header.kind = MessageKind::connection;
  return header;
}
// Has no meaning itself: carries an invalidation, or requests a completion.
constexpr MessageHeader nothing = make_nothing();

}  // namespace

uint32_t MessageSender::acquire_slot(Channel& channel, uint64_t bytes) noexcept {
  if (bytes <= slots_.small_bytes() && !channel.sent.spares.is_empty())
    return channel.sent.spares.pop();
  return slots_.acquire(bytes);
}

// Small ones stay with the channel, whose next messages use them without a locked instruction.
void MessageSender::release_slot(Channel& channel, uint32_t slot) noexcept {
  if (!SendSlots::is_large(slot) && !channel.sent.spares.is_full()) {
    channel.sent.spares.push(slot);
  } else {
    slots_.release(slot);
  }
}

SendStatus MessageSender::send(VerbsLink& link, const MessageHeader& header, const Piece* pieces,
                               unsigned count) noexcept {
  Channel& channel = *link.channel;
  if (channel.queue.room() <= SendQueue::reserved) return SendStatus::queue_full;
  uint64_t payload = 0;
  for (unsigned i = 0; i < count; ++i) payload += pieces[i].length;
  const uint64_t total = sizeof header + payload;
  const uint32_t slot = acquire_slot(channel, total);
  if (slot == SendSlots::none) return SendStatus::queue_full;
  std::byte* const data = slots_.data(slot);
  MessageHeader sent = header;
  // A message that invalidates a window names its exposure there, others their length.
  const uint64_t key_to_invalidate = channel.sent.key_to_invalidate;
  sent.link_word =
      key_to_invalidate == 0 ? static_cast<uint32_t>(payload) : exposure_of_key(key_to_invalidate);
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
  if (key_to_invalidate == 0) [[likely]] {
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(channel.peer_index);
  } else {
    request.opcode = IBV_WR_SEND_WITH_INV;
    request.invalidate_rkey = static_cast<uint32_t>(key_to_invalidate);
  }
  if (total <= channel.queue_pair->sizes().inline_bytes) request.send_flags = IBV_SEND_INLINE;
  // Large slots are few: each has a completion.
  if (!channel.queue.post(request, {RequestKind::message, slot}, SendSlots::is_large(slot))) {
    release_slot(channel, slot);
    return SendStatus::queue_full;
  }
  channel.sent.key_to_invalidate = 0;
  ++channel.sent.posted;
  return SendStatus::sent;
}

// The device of the peer invalidates the windows when messages arrive that name them; the peer need
// not wait for that, as it would for an invalidation of its own. The next message, at the latest
// the answer to the operation, invalidates one; further windows need messages of their own. Those
// for which there is no room are invalidated by the peer after the answer.
void MessageSender::invalidate_windows(VerbsLink& link, const RemoteMemory* remote,
                                       unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    if (!is_key_of_window(remote[i].key)) continue;
    if (link.path != Path::queue_pair ||
        !is_key_of_channel(remote[i].key, link.channel->peer.number))
      return;
    if (link.channel->sent.key_to_invalidate != 0 &&
        send(link, nothing, nullptr, 0) != SendStatus::sent)
      return;
    link.channel->sent.key_to_invalidate = remote[i].key;
  }
}

void MessageSender::request_completion(VerbsLink& link) noexcept {
  SendQueue& queue = link.channel->queue;
  if (!queue.is_unsignalled() || queue.room() <= SendQueue::reserved) return;
  queue.signal_next();
  static_cast<void>(send(link, nothing, nullptr, 0));
}

void MessageSender::retire(VerbsLink& link, uint32_t slot, bool success) noexcept {
  Channel& channel = *link.channel;
  if (success) {
    ++channel.sent.retired;
    sent_.increment();
    release_slot(channel, slot);
    return;
  }
  if (link.resend_head == SendSlots::none) {
    link.resend_head = slot;
    link.resend_first = channel.sent.retired;
  } else {
    slots_.next(link.resend_tail) = slot;
  }
  link.resend_tail = slot;
}

void MessageSender::release_spares(Channel& channel) noexcept {
  while (!channel.sent.spares.is_empty()) slots_.release(channel.sent.spares.pop());
}

uint32_t MessageSender::take_unsent(VerbsLink& link) noexcept {
  const uint32_t slot = link.resend_head;
  if (slot == link.resend_tail) {
    link.resend_head = link.resend_tail = SendSlots::none;
  } else {
    link.resend_head = slots_.next(slot);
  }
  ++link.resend_first;
  return slot;
}

bool MessageSender::send_again(VerbsLink& link, Transport& datagrams) noexcept {
  const LockGuard guard(link.lock);
  while (link.resend_head != SendSlots::none) {
    const uint32_t slot = link.resend_head;
    if (link.resend_first >= link.channel->stop.peer_received) {
      MessageHeader header;
      std::memcpy(&header, slots_.data(slot), sizeof header);
      const Piece piece{slots_.data(slot) + sizeof header, slots_.length(slot) - sizeof header};
      // Messages of send() that only invalidate a window or cause a completion are not repeated.
      if (header.kind != MessageKind::connection) {
        header.link_word = 0;
        const SendStatus status =
            datagrams.send(*link.datagrams, header, &piece, piece.length != 0 ? 1 : 0);
        if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
        sent_again_.increment();
      }
    }
    slots_.release(take_unsent(link));
  }
  return true;
}

void MessageSender::discard_unsent(VerbsLink& link) noexcept {
  const LockGuard guard(link.lock);
  while (link.resend_head != SendSlots::none) slots_.release(take_unsent(link));
}

}  // namespace lintel
