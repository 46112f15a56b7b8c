// Long messages at the target (spec 2.6): their data are fetched from, or written into, the
// initiator's memory slice by slice, or travel in data messages where that memory cannot be
// reached. The target decides where everything goes; only the bytes that the entry keeps are moved.
// Message path.
#include "core/operations/transfers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/objects/delivery.h"
#include "core/objects/network_interface.h"
#include "core/operations/plain_put.h"
#include "util/assert.h"
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
  for (unsigned i = 0; i < transfer.remote.count && length != 0; ++i) {
    const RemoteMemory& memory = transfer.remote.pieces[i];
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

// The initiator's memory, if it is that of a device which copies from or to the entry. The entry
// must be memory of the host, or one range of the same kind.
DeviceImport import_of(const InboundMessage& message, const Transfer& transfer) noexcept {
  DeviceDescription description;
  if ((message.header.modes & names_device) == 0 || message.payload_length != sizeof description)
    return {};
  const Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  const MemoryRegion& region = transfer.place.entry->region;
  std::memcpy(&description, message.payload, sizeof description);
  if (!region.is_host(transfer.place.offset, transfer.mlength)) {
    const KindPiece piece = region.first_piece(transfer.place.offset, transfer.mlength);
    if (piece.kind == nullptr || piece.length != transfer.mlength ||
        piece.kind->number() != description.allocation.kind)
      return {};
  }
  return DeviceImport::open(description, peer.route.transport->process_of(*peer.route.link),
                            message.header.length());
}

// Copies the initiator's description of its memory; false if it does not cover the message.
bool take_description(const InboundMessage& message, Transfer& transfer) noexcept {
  if ((message.header.modes & names_device) != 0) return false;
  const unsigned count = message.payload_length / sizeof(RemoteMemory);
  if (count == 0 || count > transfer_remote_pieces) return false;
  std::memcpy(transfer.remote.pieces, message.payload, count * sizeof(RemoteMemory));
  uint64_t total = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (transfer.remote.pieces[i].length > message.header.length() - total) return false;
    total += transfer.remote.pieces[i].length;
  }
  transfer.remote.count = count;
  return total == message.header.length();
}

// Reports a message that an appended entry claimed while its data were arriving.
void end_claim(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header) noexcept
    LINTEL_REQUIRES(portal.lock) {
  ListEntry& entry = *header.claimant;
  report_overflow(interface, portal, header, entry);
  --entry.operations;
  settle_entry(interface, portal, entry, false);
}

Outcome outcome_of(const Transfer& transfer) noexcept {
  return {transfer.fail, transfer.fail == PTL_NI_OK ? transfer.mlength : 0, transfer.place.offset,
          transfer.place.entry->list, transfer.source_fault};
}

}  // namespace

void Transfers::end(Transfer& transfer) noexcept {
  if (transfer.staged != nullptr && !end_staging(transfer)) return;
  NetworkInterface& interface = *transfer.place.interface;
  PortalEntry& portal = *transfer.place.portal;
  ListEntry& entry = *transfer.place.entry;
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  const Outcome outcome = outcome_of(transfer);
  const MessageHeader header = transfer.header;
  const bool answered = transfer.writes_peer && transfer.by_messages && transfer.ended;
  const bool peer_gone = transfer.peer_gone;
  const bool ends_access =
      !answered && transfer.remote.count != 0 && !(peer_gone && transfer.ending);
  const bool unlink_reserved = transfer.place.reserved.unlink;
  if (outcome.fail == PTL_NI_SEGV && !outcome.source_fault) [[unlikely]]
    entry.region.explain_fault(transfer.place.offset, transfer.mlength);

  TriggerHold hold;  // a claim may be counted below, under the lock
  PendingCount count;
  {
    const LockGuard guard(portal.lock);
    const InitiatorId initiator = initiator_of(interface, peer, header.initiator_rank);
    count = report_delivery(
        interface, portal, entry,
        {header, initiator.id(), initiator.uid(), entry.region.address(transfer.place.offset),
         outcome.mlength, outcome.fail},
        transfer.place.reserved.communication);
    --portal.operations;
    if (UnexpectedHeader* unexpected = transfer.place.unexpected; unexpected != nullptr) {
      unexpected->arriving = false;
      interface.unexpected_headers().set_outcome(*unexpected, outcome.fail, outcome.mlength);
      if (unexpected->claimed) end_claim(interface, portal, *unexpected);
    }
    // The message counts until here, so that the end of its entry is reported after its own events.
    --entry.operations;
    settle_entry(interface, portal, entry, unlink_reserved);
  }
  if (ends_access) {
    RemoteMemory remote[transfer_remote_pieces];
    const unsigned remote_count = remote_range(transfer, 0, transfer.mlength, remote);
    peer.route.transport->end_access(*peer.route.link, remote, remote_count);
  }
  table_.release(transfer);
  count.apply();
  if (!answered && !peer_gone) answers_.answer(peer, header, outcome);
}

// The peer's memory is out of reach: the data travel in messages.
void Transfers::continue_by_messages(Transfer& transfer) noexcept {
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  transfer.by_messages = true;
  if (!transfer.writes_peer) {
    transfer.progress.requested = transfer.progress.moved;
    return transfer.staged != nullptr ? advance_staged(transfer)
                                      : request_data(transfer, transfer.mlength);
  }
  if ((transfer.header.modes & get_in_windows) != 0) {
    transfer.progress.requested = 0;
    return offer_data(transfer);
  }
  transfer.progress.requested = transfer.mlength;
  transfer.release.awaited = transfer.staged == nullptr &&
                             transfer.mlength >= sent_in_place_bytes &&
                             peer.route.transport->capabilities().refers_to_payloads;
  continue_sending(transfer);
}

// Asks the initiator of a put for more data, up to `end`.
void Transfers::request_data(Transfer& transfer, uint64_t end) noexcept {
  if (end == transfer.progress.requested) return;
  MessageHeader request{};
  request.kind = MessageKind::data_request;
  request.cookie = transfer.header.cookie;
  request.match_bits = table_.cookie_of(transfer);
  request.remote_offset = transfer.progress.requested;
  request.set_length(end - transfer.progress.requested);
  transfer.progress.requested = end;
  answers_.send(*transfer.peer.load(std::memory_order_relaxed), request, nullptr, 0);
}

// Tells the initiator of a get how much there is to ask for.
void Transfers::offer_data(Transfer& transfer) noexcept {
  MessageHeader offer{};
  offer.kind = MessageKind::data;
  offer.flags = flag_last;  // none follows at once
  offer.modes = data_for_reply;
  offer.cookie = transfer.header.cookie;
  offer.match_bits = table_.cookie_of(transfer);
  offer.hdr_data = transfer.mlength;
  answers_.send(*transfer.peer.load(std::memory_order_relaxed), offer, nullptr, 0);
}

// Sends what the initiator of a get may have and what is there.
void Transfers::continue_sending(Transfer& transfer) noexcept {
  if (transfer.streaming || transfer.ended) return;
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  if (StagedStream* const staged = transfer.staged; staged != nullptr) {
    staged->load(transfer.progress.requested);
    staging_.watch(*staged);
    if (staged->fail() == PTL_NI_OK && staged->ready().length == 0) return;
  }
  transfer.streaming = true;
  const LockGuard guard(peer.send_lock);
  if (peer.queue.head == nullptr && send_data(peer, transfer)) {
    peer.note_in_process_send();
    return;
  }
  queues_.enqueue(peer, transfer);
}

void Transfers::take_result(Transfer& transfer, RemoteResult result) noexcept {
  transfer.progress.moved += result.bytes;
  if (StagedStream* const staged = transfer.staged; staged != nullptr) {
    if (staged->is_to_device())
      staged->filled(result.bytes);
    else
      staged->taken(result.bytes);
    staging_.watch(*staged);
    if (staged->fail() != PTL_NI_OK) return fail(transfer, staged->fail());
  }
  switch (result.status) {
    case RemoteStatus::done:
      if (transfer.progress.moved >= transfer.mlength) {
        // Copies to the device may be under way.
        if (transfer.staged == nullptr || transfer.staged->is_complete()) end(transfer);
        return;
      }
      [[fallthrough]];
    case RemoteStatus::busy:
      return table_.activate(transfer);
    case RemoteStatus::started:
      return;
    case RemoteStatus::unsupported:
      // The network may reach buffers if it does not reach the device.
      if (transfer.staged != nullptr ||
          transfer.place.entry->region.is_host(transfer.place.offset, transfer.mlength))
        return continue_by_messages(transfer);
      return begin_staging(transfer, {}) ? advance(transfer) : fail(transfer, PTL_NI_UNDELIVERABLE);
    case RemoteStatus::peer_failed:
      return fail(transfer, PTL_NI_UNDELIVERABLE);
    case RemoteStatus::remote_fault:
      transfer.source_fault = true;
      [[fallthrough]];
    case RemoteStatus::local_fault:
      return fail(transfer, PTL_NI_SEGV);
  }
}

// Moves one slice, or ends the transfer if all is moved.
void Transfers::advance(Transfer& transfer) noexcept {
  if (transfer.ended)
    return transfer.release.awaited ? table_.await_release(transfer) : end(transfer);
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  // Its link may become that of the next process with its address.
  if (transfer.peer_gone || peer.failed.load(std::memory_order_acquire))
    return fail(transfer, PTL_NI_UNDELIVERABLE);
  if (transfer.staged != nullptr) return advance_staged(transfer);
  const bool asynchronous = peer.route.transport->capabilities().remote_asynchronous;
  const uint64_t left = transfer.mlength - transfer.progress.moved;
  Piece local[transfer_remote_pieces];
  uint64_t covered = 0;
  const unsigned local_count = transfer.place.entry->region.pieces(
      transfer.place.offset + transfer.progress.moved,
      asynchronous ? left : std::min(slice_bytes, left), local, transfer_remote_pieces, &covered);
  access(transfer, local, local_count, covered);
}

// Copies the next `length` bytes from or to the initiator's memory.
void Transfers::access(Transfer& transfer, const Piece* local, unsigned local_count,
                       uint64_t length) noexcept {
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  RemoteMemory remote[transfer_remote_pieces];
  const unsigned remote_count = remote_range(transfer, transfer.progress.moved, length, remote);
  const uint32_t token = table_.cookie_of(transfer);
  const RemoteResult result = peer.route.transport->remote_access(
      *peer.route.link, transfer.writes_peer, local, local_count, remote, remote_count, token);
  if (result.status == RemoteStatus::started) transfer.progress.in_flight = length;
  take_result(transfer, result);
}

// ---- memory of devices: that of the entry, or an import of the initiator's

bool Transfers::begin_staging(Transfer& transfer, const DeviceImport& import) noexcept {
  const bool entry_is_host =
      transfer.place.entry->region.is_host(transfer.place.offset, transfer.mlength);
  transfer.staged = staging_.begin({.direction = transfer.writes_peer == entry_is_host
                                                     ? StagedStream::Direction::to_device
                                                     : StagedStream::Direction::from_device,
                                    .region = &transfer.place.entry->region,
                                    .region_offset = transfer.place.offset,
                                    .begin = transfer.progress.moved,
                                    .end = transfer.mlength,
                                    .client = this,
                                    .owner = &transfer,
                                    .import = import});
  if (transfer.staged == nullptr) return false;
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  const bool was_named = (transfer.header.modes & names_device) != 0;
  staging_.ways().note(peer,
                       !import.is_open()              ? DeviceWay::staged
                       : transfer.staged->is_direct() ? DeviceWay::copied
                                                      : DeviceWay::mapped,
                       transfer.mlength - transfer.progress.moved,
                       import.is_open() ? ""
                       : was_named      ? "its device does not reach that of the peer"
                                        : why_staged(peer));
  return true;
}

// False: a copy to the device is under way, whose end ends the transfer.
bool Transfers::end_staging(Transfer& transfer) noexcept {
  StagedStream& staged = *transfer.staged;
  staged.cancel();
  if (staged.is_writing()) {
    transfer.ending = true;
    return false;
  }
  transfer.staged = nullptr;
  staging_.end(staged);
  return true;
}

void Transfers::on_staged(StagedStream& stream) noexcept {
  auto& transfer = static_cast<Transfer&>(stream.owner());
  LINTEL_ASSERT(transfer.staged == &stream);
  if (transfer.active || transfer.ended) return;
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  if (!transfer.ending) {
    // Otherwise stopped: the interface goes.
    if (!stream.is_cancelled()) advance(transfer);
  } else if (!stream.is_copying()) {
    end(transfer);
  }
  if (!peer.failed.load(std::memory_order_relaxed)) answers_.flush_acknowledgements(peer);
}

// Moves what there is room for, or what is there.
void Transfers::advance_staged(Transfer& transfer) noexcept {
  StagedStream& staged = *transfer.staged;
  if (transfer.by_messages && transfer.writes_peer) return continue_sending(transfer);
  if (staged.is_complete()) return end(transfer);
  if (transfer.by_messages && staged.fail() != PTL_NI_OK) {
    // Otherwise the initiator is still sending.
    if (transfer.progress.moved == transfer.progress.requested) fail(transfer, staged.fail());
    return;
  }
  if (transfer.by_messages) {
    const uint64_t end_of_blocks = staged.open_blocks();
    staging_.watch(staged);
    return request_data(transfer, end_of_blocks);
  }
  if (transfer.progress.in_flight != 0) return;
  Piece local{nullptr, 0};
  if (staged.is_direct()) {
    staged.copy_directly();
  } else if (staged.is_to_device()) {
    local = staged.room();
  } else {
    staged.load(transfer.mlength);
    local = staged.ready();
  }
  staging_.watch(staged);
  if (staged.fail() != PTL_NI_OK) return fail(transfer, staged.fail());
  if (staged.is_complete()) return end(transfer);
  if (local.length == 0) return;
  if (!staged.has_import()) return access(transfer, &local, 1, local.length);
  // Memory of a device of the initiator, which the transport does not see.
  const MemoryRegion& region = transfer.place.entry->region;
  const uint64_t offset = transfer.place.offset + transfer.progress.moved;
  const bool moved = staged.is_to_device() ? region.read(offset, local.base, local.length)
                                           : region.write(offset, local.base, local.length);
  take_result(transfer, moved ? RemoteResult{RemoteStatus::done, local.length}
                              : RemoteResult{RemoteStatus::local_fault, 0});
}

void Transfers::take_staged_data(Transfer& transfer, const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  StagedStream& staged = *transfer.staged;
  if (staged.is_cancelled()) return;
  if (!staged.put(header.remote_offset, message.payload, message.payload_length))
    return refused_.messages.increment();
  staging_.watch(staged);
  transfer.progress.moved += message.payload_length;
  // The last message of a window may come behind the first ones of the next.
  if ((header.flags & flag_last) != 0 && header.fail() != PTL_NI_OK) {
    transfer.source_fault = true;
    return fail(transfer, PTL_NI_SEGV);
  }
  if (staged.fail() != PTL_NI_OK || staged.is_complete()) advance_staged(transfer);
}

// ----

void Transfers::start(Transfer& transfer, const InboundMessage& message) noexcept {
  transfer.writes_peer = message.header.kind == MessageKind::get;
  transfer.by_messages = false;
  transfer.source_fault = false;
  transfer.release.awaited = false;
  transfer.streaming = false;
  transfer.ended = false;
  transfer.progress = {};
  transfer.ending = false;
  transfer.peer_gone = false;
  transfer.staged = nullptr;
  transfer.fail = PTL_NI_OK;
  transfer.remote.count = 0;
  DeviceImport import = import_of(message, transfer);
  const bool described = import.is_open() || take_description(message, transfer);
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  if (import.is_open() ||
      !transfer.place.entry->region.is_host(transfer.place.offset, transfer.mlength)) [[unlikely]] {
    if (transfer.remote.count != 0 && peer.route.transport->capabilities().accesses_accelerators) {
      staging_.ways().note(peer, DeviceWay::accessed, transfer.mlength, "");
    } else if (!begin_staging(transfer, import)) {
      import.close();
      return fail(transfer, PTL_NI_UNDELIVERABLE);
    }
  }
  if (!described) return continue_by_messages(transfer);
  if (transfer.writes_peer || transfer.staged != nullptr || transfer.mlength > batched_bytes ||
      peer.route.transport->capabilities().remote_asynchronous) {
    fetch_batch();
    // Sent at once: the initiator would otherwise wait for the end of the burst, which takes as
    // long as several copies.
    advance(transfer);
    answers_.flush_acknowledgements(peer);
    return;
  }
  LINTEL_ASSERT(batch_.count < Batch::capacity);
  batch_.transfers[batch_.count++] = &transfer;
  batch_.bytes += transfer.mlength;
  if (batch_.count < Batch::capacity && batch_.bytes < most_batch_bytes) return;
  fetch_batch();
  answers_.flush_acknowledgements(peer);
}

// One remote read for all: the cost of a call is that of copying several KiB.
void Transfers::fetch_batch() noexcept {
  const Batch batch = std::exchange(batch_, Batch{});
  if (batch.count == 0) return;
  Piece local[Batch::capacity];
  RemoteMemory remote[Batch::capacity];
  unsigned simple = 0;  // transfers between contiguous memory, which the arrays have room for
  for (; simple < batch.count; ++simple) {
    const Transfer& transfer = *batch.transfers[simple];
    uint64_t covered = 0;
    if (transfer.remote.count != 1 ||
        transfer.place.entry->region.pieces(transfer.place.offset, transfer.mlength, &local[simple],
                                            1, &covered) != 1 ||
        covered != transfer.mlength)
      break;
    remote[simple] = transfer.remote.pieces[0];
    remote[simple].length = transfer.mlength;
  }
  bool fetched = false;
  if (simple == batch.count && simple > 1) {
    Peer& peer = *batch.transfers[0]->peer.load(std::memory_order_relaxed);
    fetched = peer.route.transport
                  ->remote_access(*peer.route.link, false, local, simple, remote, simple, 0)
                  .status == RemoteStatus::done;
  }
  for (unsigned i = 0; i < batch.count; ++i) {
    Transfer& transfer = *batch.transfers[i];
    if (fetched) {
      transfer.progress.moved = transfer.mlength;
      end(transfer);
    } else {
      // Whatever went wrong concerns one of them: each finds out for itself.
      advance(transfer);
    }
  }
}

void Transfers::end_remote_access(Link& link, uint32_t token, RemoteResult result) noexcept {
  Transfer* transfer = table_.find(token);
  if (transfer == nullptr || transfer->progress.in_flight == 0) return;
  Peer& peer = *transfer->peer.load(std::memory_order_relaxed);
  if (peer.route.link != &link) return;
  transfer->progress.in_flight = 0;
  take_result(*transfer, result);
  answers_.flush_acknowledgements(peer);
}

// Parts come in any order, each once; the last one after all others.
void Transfers::take_data(Peer& peer, const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Transfer* transfer = table_.find(header.cookie);
  const uint64_t offset = header.remote_offset;
  if (transfer == nullptr || transfer->peer.load(std::memory_order_relaxed) != &peer ||
      !transfer->by_messages || transfer->writes_peer || offset > transfer->mlength ||
      message.payload_length > transfer->mlength - std::max(offset, transfer->progress.moved)) {
    refused_.messages.increment();
    return;
  }
  if (transfer->staged != nullptr) return take_staged_data(*transfer, message);
  if (transfer->fail == PTL_NI_OK &&
      !transfer->place.entry->region.write(transfer->place.offset + offset, message.payload,
                                           message.payload_length))
    transfer->fail = PTL_NI_SEGV;
  transfer->progress.moved += message.payload_length;
  if ((header.flags & flag_last) == 0) return;
  if (transfer->progress.moved != transfer->mlength && transfer->fail == PTL_NI_OK) {
    transfer->fail = PTL_NI_SEGV;  // the initiator could not read its memory
    transfer->source_fault = true;
  }
  end(*transfer);
}

void Transfers::take_data_request(Peer& peer, const MessageHeader& header) noexcept {
  Transfer* const transfer = table_.find(header.cookie);
  if (transfer == nullptr || transfer->peer.load(std::memory_order_relaxed) != &peer ||
      !transfer->by_messages || !transfer->writes_peer ||
      (transfer->header.modes & get_in_windows) == 0 || transfer->ended ||
      header.remote_offset != transfer->progress.requested ||
      header.length() > transfer->mlength - transfer->progress.requested)
    return refused_.messages.increment();
  transfer->progress.requested += header.length();
  continue_sending(*transfer);
}

bool Transfers::send_data(Peer& peer, Transfer& transfer) noexcept {
  const uint64_t chunk = peer.route.link->max_data_bytes.load(std::memory_order_relaxed);
  StagedStream* const staged = transfer.staged;
  while (transfer.progress.moved < transfer.mlength && transfer.fail == PTL_NI_OK) {
    Piece pieces[transfer_remote_pieces];
    uint64_t covered = 0;
    unsigned count = 1;
    uint64_t sendable = transfer.progress.requested - transfer.progress.moved;
    if (staged != nullptr) {
      transfer.fail = staged->fail();
      if (transfer.fail != PTL_NI_OK) break;
      pieces[0] = staged->ready();
      sendable = pieces[0].length;
      pieces[0].length = covered = std::min(chunk, sendable);
    } else if (sendable != 0) {
      count = transfer.place.entry->region.pieces(transfer.place.offset + transfer.progress.moved,
                                                  std::min(chunk, sendable), pieces,
                                                  transfer_remote_pieces, &covered);
    }
    if (sendable == 0) {
      // Left until more is there, or asked for.
      transfer.streaming = false;
      return true;
    }
    MessageHeader header{};
    header.kind = MessageKind::data;
    header.modes = transfer.release.awaited ? data_for_reply | data_stays : data_for_reply;
    if (covered == sendable && transfer.progress.moved + covered != transfer.mlength)
      header.modes |= data_pauses;
    header.cookie = transfer.header.cookie;
    header.remote_offset = transfer.progress.moved;
    header.set_length(covered);
    const SendStatus status = peer.route.transport->send(*peer.route.link, header, pieces, count);
    if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
    if (status == SendStatus::inaccessible) transfer.fail = PTL_NI_SEGV;
    if (status == SendStatus::peer_failed) transfer.fail = PTL_NI_UNDELIVERABLE;
    if (status != SendStatus::sent) break;
    peer.sent.count(MessageKind::data, covered);
    transfer.progress.moved += covered;
    if (staged == nullptr) continue;
    staged->taken(covered);
    staged->load(transfer.progress.requested);
    staging_.watch(*staged);
  }
  MessageHeader header = answer_header(transfer.header, MessageKind::reply, outcome_of(transfer));
  header.flags |= flag_remote_memory;  // the data went ahead
  const SendStatus status = peer.route.transport->send(*peer.route.link, header, nullptr, 0);
  if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
  if (status == SendStatus::sent) {
    peer.sent.count(MessageKind::reply, 0);
    transfer.release.mark = peer.route.transport->payload_mark(*peer.route.link);
  } else {
    transfer.release.awaited = false;
  }
  // The events of the transfer are posted without the send lock, in the next round of polling.
  transfer.streaming = false;
  transfer.ended = true;
  table_.activate(transfer);
  return true;
}

void Transfers::fail_all_of(Peer& peer) noexcept {
  // A peer that left in order has acknowledged what it had received.
  static_cast<void>(end_released());
  peer.unreleased.head = nullptr;
  table_.for_each([&](Transfer& transfer) {
    polling.assert_held();
    if (transfer.peer.load(std::memory_order_relaxed) != &peer) return;
    transfer.peer_gone = true;
    // An active transfer fails by itself, or has ended and only posts its events.
    if (transfer.active)
      transfer.release.awaited = false;  // nobody says any more when its memory is released
    else
      fail(transfer, PTL_NI_UNDELIVERABLE);
  });
}

bool Transfers::access_under_way(const NetworkInterface& interface) noexcept {
  bool under_way = false;
  table_.for_each([&](const Transfer& transfer) {
    const bool copies = transfer.staged != nullptr && transfer.staged->is_writing();
    under_way |=
        transfer.place.interface == &interface && (transfer.progress.in_flight != 0 || copies);
  });
  return under_way;
}

void Transfers::stop_copies(const NetworkInterface& interface) noexcept {
  table_.for_each([&](const Transfer& transfer) {
    // A remote access may use a buffer.
    if (transfer.place.interface == &interface && transfer.staged != nullptr &&
        transfer.progress.in_flight == 0)
      transfer.staged->cancel();
  });
}

void Transfers::drop_all_of(const NetworkInterface& interface) noexcept {
  table_.for_each([&](Transfer& transfer) {
    polling.assert_held();
    if (transfer.place.interface == &interface && transfer.staged != nullptr)
      staging_.end(*std::exchange(transfer.staged, nullptr));
  });
  table_.drop_all_of(interface);
}

unsigned Transfers::advance_all() noexcept {
  unsigned advanced = 0;
  for (Transfer* transfer = table_.take_active(); transfer != nullptr; ++advanced) {
    Transfer* const next = transfer->next_active;
    Peer& peer = *transfer->peer.load(std::memory_order_relaxed);
    advance(*transfer);
    answers_.flush_acknowledgements(peer);
    transfer = next;
  }
  return advanced + end_released();
}

unsigned Transfers::end_released() noexcept {
  unsigned ended = 0;
  for (; Transfer* const transfer = table_.take_released(); ++ended) {
    transfer->release.awaited = false;
    advance(*transfer);
  }
  return ended;
}

}  // namespace lintel
