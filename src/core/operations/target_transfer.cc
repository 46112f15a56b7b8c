// Long messages at the target (spec 2.6): their data are fetched from, or written into, the
// initiator's memory slice by slice, or travel in data messages where that memory cannot be
// reached. The target decides where everything goes; only the bytes that the entry keeps are moved.
// Message path.
#include "core/operations/target_transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/objects/delivery.h"
#include "core/objects/network_interface.h"
#include "core/operations/answer.h"
#include "util/lock.h"

namespace lintel {

namespace {

// Long enough to make the cost of a system call negligible, short enough not to keep other messages
// waiting for long.
constexpr uint64_t slice_bytes = uint64_t{1} << 20;

// Gets this long are not copied where the transport can do without: their events then wait for
// the initiator to have the data, which takes longer than copying less.
constexpr uint64_t sent_in_place_bytes = uint64_t{1} << 16;

// Puts are fetched together up to this sum: copying it takes less than the time for which the
// initiator polls before it sleeps (PTL_SPIN_US).
constexpr uint64_t most_batch_bytes = uint64_t{1} << 18;

// Puts longer than this are fetched one by one: nothing is gained by joining them.
constexpr uint64_t batched_bytes = uint64_t{1} << 16;

// The part [position, position + length) of the initiator's memory.
unsigned remote_range(const Transfer& transfer, uint64_t position, uint64_t length,
                      RemoteMemory* out) noexcept {
  unsigned count = 0;
  for (unsigned i = 0; i < transfer.remote_count && length != 0; ++i) {
    const RemoteMemory& memory = transfer.remote[i];
    if (position >= memory.length) {
      position -= memory.length;
      continue;
    }
    const uint64_t bytes = std::min(memory.length - position, length);
    out[count++] = {memory.address + position, bytes, memory.key};
    position = 0;
    length -= bytes;
  }
  return count;
}

// Copies the initiator's description of its memory; false if it does not cover the message.
bool take_description(const Arrival& arrival, Transfer& transfer) noexcept {
  const unsigned count = arrival.payload_length / sizeof(RemoteMemory);
  if (count == 0 || count > transfer_remote_pieces) return false;
  std::memcpy(transfer.remote, arrival.payload, count * sizeof(RemoteMemory));
  uint64_t total = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (transfer.remote[i].length > arrival.header.length() - total) return false;
    total += transfer.remote[i].length;
  }
  transfer.remote_count = count;
  return total == arrival.header.length();
}

// Reports a message that an appended entry claimed while its data were arriving.
void end_claim(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header) noexcept
    LINTEL_REQUIRES(portal.lock) {
  ListEntry& entry = *header.claimant;
  report_overflow(interface, portal, header, entry);
  --entry.operations;
  settle_entry(interface, portal, entry, false);
}

void end_transfer(PhysicalInterface& physical, Transfer& transfer) noexcept
    LINTEL_REQUIRES(polling) {
  NetworkInterface& interface = *transfer.interface;
  PortalEntry& portal = *transfer.portal;
  ListEntry& entry = *transfer.entry;
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  Outcome outcome;
  outcome.fail = transfer.fail;
  outcome.mlength = transfer.fail == PTL_NI_OK ? transfer.mlength : 0;
  outcome.offset = transfer.region_offset;
  outcome.list = entry.list;
  outcome.source_fault = transfer.source_fault;
  const MessageHeader header = transfer.header;
  const bool answered = transfer.writes_peer && transfer.by_messages && transfer.ended;
  const bool unlink_reserved = transfer.unlink_reserved;

  TriggerHold hold;  // a claim may be counted below, under the lock
  PendingCount count;
  {
    const LockGuard guard(portal.lock);
    const Initiator initiator = initiator_of(interface, peer, header);
    count = report_delivery(
        interface, portal, entry,
        {header, initiator.id, initiator.uid, entry.region.address(transfer.region_offset),
         outcome.mlength, outcome.fail},
        transfer.event_reserved);
    --portal.operations;
    if (UnexpectedHeader* unexpected = transfer.unexpected; unexpected != nullptr) {
      unexpected->arriving = false;
      interface.unexpected_headers().set_outcome(*unexpected, outcome.fail, outcome.mlength);
      if (unexpected->claimed) end_claim(interface, portal, *unexpected);
    }
    // The message counts until here, so that the end of its entry is reported after its own events.
    --entry.operations;
    settle_entry(interface, portal, entry, unlink_reserved);
  }
  if (!answered && transfer.remote_count != 0) {
    RemoteMemory remote[transfer_remote_pieces];
    const unsigned remote_count = remote_range(transfer, 0, transfer.mlength, remote);
    peer.transport->end_access(*peer.link, remote, remote_count);
  }
  physical.transfers().release(transfer);
  count.apply();
  if (!answered) answer(physical, peer, header, outcome);
}

void ask_for_data(PhysicalInterface& physical, Transfer& transfer) noexcept
    LINTEL_REQUIRES(polling) {
  MessageHeader header{};
  header.kind = MessageKind::data_request;
  header.cookie = transfer.header.cookie;
  header.match_bits = physical.transfers().cookie_of(transfer);
  header.remote_offset = transfer.moved;
  header.set_length(transfer.mlength - transfer.moved);
  physical.answers().send(*transfer.peer.load(std::memory_order_relaxed), header, nullptr, 0);
}

// The peer's memory is out of reach: the data travel in messages.
void continue_by_messages(PhysicalInterface& physical, Transfer& transfer) noexcept
    LINTEL_REQUIRES(polling) {
  transfer.by_messages = true;
  if (!transfer.writes_peer) {
    ask_for_data(physical, transfer);
    return;
  }
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  transfer.stays =
      transfer.mlength >= sent_in_place_bytes && peer.transport->capabilities().refers_to_payloads;
  transfer.kind = QueuedSend::Kind::transfer_data;
  transfer.streaming = true;
  const LockGuard guard(peer.send_lock);
  if (peer.queue_head == nullptr && send_transfer_data(physical, peer, transfer)) {
    peer.note_in_process_send();
    return;
  }
  physical.queues().enqueue(peer, transfer);
}

void fail(PhysicalInterface& physical, Transfer& transfer, ptl_ni_fail_t why) noexcept
    LINTEL_REQUIRES(polling) {
  transfer.fail = why;
  end_transfer(physical, transfer);
}

void take_result(PhysicalInterface& physical, Transfer& transfer, RemoteResult result) noexcept
    LINTEL_REQUIRES(polling) {
  transfer.moved += result.bytes;
  switch (result.status) {
    case RemoteStatus::done:
      if (transfer.moved >= transfer.mlength) {
        end_transfer(physical, transfer);
      } else {
        physical.transfers().activate(transfer);
      }
      break;
    case RemoteStatus::started:
      break;
    case RemoteStatus::busy:
      physical.transfers().activate(transfer);
      break;
    case RemoteStatus::unsupported:
      continue_by_messages(physical, transfer);
      break;
    case RemoteStatus::peer_failed:
      fail(physical, transfer, PTL_NI_UNDELIVERABLE);
      break;
    case RemoteStatus::local_fault:
      fail(physical, transfer, PTL_NI_SEGV);
      break;
    case RemoteStatus::remote_fault:
      transfer.source_fault = true;
      fail(physical, transfer, PTL_NI_SEGV);
      break;
  }
}

// Moves one slice, or ends the transfer if all is moved.
void advance_transfer(PhysicalInterface& physical, Transfer& transfer) noexcept
    LINTEL_REQUIRES(polling) {
  if (transfer.ended) {
    if (transfer.stays)
      physical.transfers().await_release(transfer);
    else
      end_transfer(physical, transfer);
    return;
  }
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  // The link may be used by the next process with the peer's address.
  if (peer.failed.load(std::memory_order_acquire))
    return fail(physical, transfer, PTL_NI_UNDELIVERABLE);
  const bool asynchronous = peer.transport->capabilities().remote_asynchronous;
  const uint64_t left = transfer.mlength - transfer.moved;
  Piece local[transfer_remote_pieces];
  uint64_t covered = 0;
  const unsigned local_count = transfer.entry->region.pieces(
      transfer.region_offset + transfer.moved, asynchronous ? left : std::min(slice_bytes, left),
      local, transfer_remote_pieces, &covered);
  RemoteMemory remote[transfer_remote_pieces];
  const unsigned remote_count = remote_range(transfer, transfer.moved, covered, remote);
  const uint32_t token = physical.transfers().cookie_of(transfer);
  const RemoteResult result = peer.transport->remote_access(
      *peer.link, transfer.writes_peer, local, local_count, remote, remote_count, token);
  if (result.status == RemoteStatus::started) transfer.in_flight = covered;
  take_result(physical, transfer, result);
}

}  // namespace

void start_transfer(Arrival& arrival, Transfer& transfer) noexcept {
  transfer.writes_peer = arrival.header.kind == MessageKind::get;
  transfer.by_messages = false;
  transfer.source_fault = false;
  transfer.stays = false;
  transfer.streaming = false;
  transfer.ended = false;
  transfer.moved = 0;
  transfer.in_flight = 0;
  transfer.fail = PTL_NI_OK;
  transfer.remote_count = 0;
  if (!take_description(arrival, transfer)) {
    continue_by_messages(arrival.physical, transfer);
    return;
  }
  PhysicalInterface& physical = arrival.physical;
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  if (transfer.writes_peer || transfer.mlength > batched_bytes ||
      peer.transport->capabilities().remote_asynchronous) {
    fetch_batch(physical);
    // Sent at once: the initiator would otherwise wait for the end of the burst, which takes as
    // long as several copies.
    advance_transfer(physical, transfer);
    physical.answers().flush_acknowledgements(peer);
    return;
  }
  TransferBatch& batch = physical.transfers().batch();
  batch.transfers[batch.count++] = &transfer;
  batch.bytes += transfer.mlength;
  if (batch.count < TransferBatch::capacity && batch.bytes < most_batch_bytes) return;
  fetch_batch(physical);
  physical.answers().flush_acknowledgements(peer);
}

// Fetches all by one remote read: a call costs as much as copying several KiB.
void fetch_batch(PhysicalInterface& physical) noexcept {
  const TransferBatch batch = std::exchange(physical.transfers().batch(), TransferBatch{});
  if (batch.count == 0) return;
  Piece local[TransferBatch::capacity];
  RemoteMemory remote[TransferBatch::capacity];
  unsigned simple = 0;  // transfers between contiguous memory, which the arrays have room for
  for (; simple < batch.count; ++simple) {
    const Transfer& transfer = *batch.transfers[simple];
    uint64_t covered = 0;
    if (transfer.remote_count != 1 ||
        transfer.entry->region.pieces(transfer.region_offset, transfer.mlength, &local[simple], 1,
                                      &covered) != 1 ||
        covered != transfer.mlength)
      break;
    remote[simple] = transfer.remote[0];
    remote[simple].length = transfer.mlength;
  }
  bool fetched = false;
  if (simple == batch.count && simple > 1) {
    Peer& peer = *batch.transfers[0]->peer.load(std::memory_order_relaxed);
    fetched =
        peer.transport->remote_access(*peer.link, false, local, simple, remote, simple, 0).status ==
        RemoteStatus::done;
  }
  for (unsigned i = 0; i < batch.count; ++i) {
    Transfer& transfer = *batch.transfers[i];
    if (fetched) {
      transfer.moved = transfer.mlength;
      end_transfer(physical, transfer);
    } else {
      // Whatever went wrong concerns one of them: each finds out for itself.
      advance_transfer(physical, transfer);
    }
  }
}

void end_remote_access(PhysicalInterface& physical, Link& link, uint32_t token,
                       RemoteResult result) noexcept {
  Transfer* transfer = physical.transfers().find(token);
  if (transfer == nullptr || transfer->in_flight == 0) return;
  Peer& peer = *transfer->peer.load(std::memory_order_relaxed);
  if (peer.link != &link) return;
  transfer->in_flight = 0;
  take_result(physical, *transfer, result);
  physical.answers().flush_acknowledgements(peer);
}

// Parts come in any order, each once; the last one after all others.
void handle_transfer_data(PhysicalInterface& physical, Peer& peer,
                          const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Transfer* transfer = physical.transfers().find(header.cookie);
  const uint64_t offset = header.remote_offset;
  if (transfer == nullptr || transfer->peer.load(std::memory_order_relaxed) != &peer ||
      !transfer->by_messages || transfer->writes_peer || offset > transfer->mlength ||
      message.payload_length > transfer->mlength - std::max(offset, transfer->moved)) {
    physical.messages_refused.increment();
    return;
  }
  if (transfer->fail == PTL_NI_OK &&
      !transfer->entry->region.write(transfer->region_offset + offset, message.payload,
                                     message.payload_length))
    transfer->fail = PTL_NI_SEGV;
  transfer->moved += message.payload_length;
  if ((header.flags & flag_last) == 0) return;
  if (transfer->moved != transfer->mlength && transfer->fail == PTL_NI_OK) {
    transfer->fail = PTL_NI_SEGV;  // the initiator could not read its memory
    transfer->source_fault = true;
  }
  end_transfer(physical, *transfer);
}

bool send_transfer_data(PhysicalInterface& physical, Peer& peer, Transfer& transfer) noexcept {
  const uint64_t chunk = peer.link->max_data_bytes.load(std::memory_order_relaxed);
  while (transfer.moved < transfer.mlength && transfer.fail == PTL_NI_OK) {
    Piece pieces[transfer_remote_pieces];
    uint64_t covered = 0;
    const unsigned count = transfer.entry->region.pieces(
        transfer.region_offset + transfer.moved, std::min(chunk, transfer.mlength - transfer.moved),
        pieces, transfer_remote_pieces, &covered);
    MessageHeader header{};
    header.kind = MessageKind::data;
    header.modes = transfer.stays ? data_for_reply | data_stays : data_for_reply;
    header.cookie = transfer.header.cookie;
    header.remote_offset = transfer.moved;
    header.set_length(covered);
    const SendStatus status = peer.transport->send(*peer.link, header, pieces, count);
    if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
    if (status == SendStatus::inaccessible) transfer.fail = PTL_NI_SEGV;
    if (status == SendStatus::peer_failed) transfer.fail = PTL_NI_UNDELIVERABLE;
    if (status != SendStatus::sent) break;
    peer.sent.count(MessageKind::data, covered);
    transfer.moved += covered;
  }
  Outcome outcome;
  outcome.fail = transfer.fail;
  outcome.mlength = transfer.fail == PTL_NI_OK ? transfer.mlength : 0;
  outcome.offset = transfer.region_offset;
  outcome.list = transfer.entry->list;
  MessageHeader header = answer_header(transfer.header, MessageKind::reply, outcome);
  header.flags |= flag_remote_memory;  // the data went ahead
  const SendStatus status = peer.transport->send(*peer.link, header, nullptr, 0);
  if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
  if (status == SendStatus::sent) {
    peer.sent.count(MessageKind::reply, 0);
    transfer.release_mark = peer.transport->payload_mark(*peer.link);
  } else {
    transfer.stays = false;
  }
  // The events of the transfer are posted without the send lock, in the next round of polling.
  transfer.streaming = false;
  transfer.ended = true;
  physical.transfers().activate(transfer);
  return true;
}

void fail_transfer(PhysicalInterface& physical, Transfer& transfer) noexcept {
  fail(physical, transfer, PTL_NI_UNDELIVERABLE);
}

unsigned advance_transfers(PhysicalInterface& physical) noexcept {
  unsigned advanced = 0;
  for (Transfer* transfer = physical.transfers().take_active(); transfer != nullptr; ++advanced) {
    Transfer* const next = transfer->next_active;
    Peer& peer = *transfer->peer.load(std::memory_order_relaxed);
    advance_transfer(physical, *transfer);
    physical.answers().flush_acknowledgements(peer);
    transfer = next;
  }
  return advanced;
}

unsigned end_released_transfers(PhysicalInterface& physical) noexcept {
  unsigned ended = 0;
  for (; Transfer* const transfer = physical.transfers().take_released(); ++ended) {
    transfer->stays = false;
    advance_transfer(physical, *transfer);
  }
  return ended;
}

}  // namespace lintel
