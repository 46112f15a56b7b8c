// Prints the state for debuggers. Takes no locks: a thread that holds one may be stopped.
#include <unistd.h>

#include <cinttypes>

#include "core/library/library.h"
#include "core/operations/physical_interface.h"
#include "core/operations/staged_stream.h"
#include "util/state_writer.h"

// Writes peers, queues, operations, transfers and links of all interfaces to standard error. Takes
// no lock: call it while the process is stopped, as by gdb's `call` (docs/debugging.md).
extern "C" [[gnu::visibility("default")]] void lintel_dump_state();

namespace lintel {

namespace {

constexpr unsigned most_of_a_kind = 100;  // lines

const char* stage_text(Operation::Stage stage) noexcept {
  switch (stage) {
    case Operation::Stage::sending:
      return "is being sent";
    case Operation::Stage::queued:
      return "waits in the send queue";
    case Operation::Stage::sent:
      return "was sent";
  }
  return "?";
}

// Returns what a message with memory of a device waits for.
const char* copies_text(const StagedStream* staged) noexcept {
  if (staged == nullptr) return "";
  if (staged->is_copying()) return ", a device copies";
  if (staged->lacks_buffer()) return ", no buffer is free";
  return ", through buffers";
}

const char* queued_text(QueuedSend::Kind kind) noexcept {
  switch (kind) {
    case QueuedSend::Kind::request:
      return "request";
    case QueuedSend::Kind::request_data:
      return "data of a put";
    case QueuedSend::Kind::transfer_data:
      return "data of a get";
    case QueuedSend::Kind::answer:
      return "answer";
    case QueuedSend::Kind::mark:
      return "mark of held requests";
  }
  return "?";
}

void write_peer(const Peer& peer, StateWriter& out) noexcept LINTEL_UNCHECKED_LOCKS {
  out.line("  peer %08x/%u by %s%s: %u in flight, %u queued, %u transfers to it or from it",
           peer.id.nid, peer.id.pid,
           peer.route.transport != nullptr ? peer.route.transport->capabilities().name : "nothing",
           peer.failed.load() ? " (failed)" : "", peer.in_flight(), peer.queue_counts.length.load(),
           peer.long_messages.transfers);
  unsigned count = 0;
  for (const QueuedSend* first : {peer.queue.held.head, peer.queue.head})
    for (const QueuedSend* item = first; item != nullptr && count < most_of_a_kind;
         item = item->next_queued)
      out.line("    queued %u: %s", count++, queued_text(item->kind));
  for (const StoppedEntry* entry = peer.queue.stopped.first; entry != nullptr; entry = entry->next)
    out.line("    stopped portal %u: %u requests", entry->name / interface_slots, entry->count);
  for (const HeldQueue* queue = peer.held.first; queue != nullptr; queue = queue->next_of_peer)
    out.line("    holds messages for portal %u", queue->portal->index);
}

void write_interface(PhysicalInterface& physical,
                     StateWriter& out) noexcept LINTEL_UNCHECKED_LOCKS {
  const PollToken& token = physical.poller().token();
  out.line("interface %u, %08x/%u: %s, %" PRIu64 " rounds of polling, %s", physical.number(),
           physical.id().nid, physical.id().pid,
           token.rounds() % 2 != 0 ? "in a round"
           : token.asleep()        ? "an application thread sleeps with the poll token"
                                   : "between rounds",
           token.rounds() / 2, token.wanted() ? "a thread waits for the token" : "no thread waits");
  for (const Peer& peer : physical.peers().all()) write_peer(peer, out);
  unsigned operations = 0;
  physical.initiator().operations().for_each([&](const Operation& operation) {
    if (operations++ >= most_of_a_kind) return;
    const Peer& peer = *operation.peer.load();
    out.line("  operation to %08x/%u, cookie %u: %s, %" PRIu64
             " bytes, portal %u, match bits 0x%" PRIx64 ", %s%s%s%s",
             peer.id.nid, peer.id.pid, physical.initiator().operations().cookie_of(operation),
             kind_name(operation.header.kind), operation.header.length(), operation.header.pt_index,
             operation.header.match_bits, stage_text(operation.stage.load()),
             operation.answer_due ? ", answer due" : "", operation.streaming ? ", streams" : "",
             copies_text(operation.staged));
  });
  unsigned transfers = 0;
  physical.target().transfers().table().for_each([&](const Transfer& transfer) {
    if (transfers++ >= most_of_a_kind) return;
    const Peer& peer = *transfer.peer.load();
    out.line("  transfer %s %08x/%u: %" PRIu64 " of %" PRIu64 " bytes moved, %" PRIu64
             " in flight, by %s%s",
             transfer.writes_peer ? "to" : "from", peer.id.nid, peer.id.pid,
             transfer.progress.moved, transfer.mlength, transfer.progress.in_flight,
             transfer.by_messages ? "messages" : "access to memory", copies_text(transfer.staged));
  });
  out.line("  %u operations, %u transfers", operations, transfers);
  for (const auto& transport : physical.transports()) {
    out.line("  transport %s", transport->capabilities().name);
    transport->write_state(out);
  }
}

}  // namespace

}  // namespace lintel

void lintel_dump_state() {
  lintel::StateWriter out(STDERR_FILENO);
  for (const auto& entry : lintel::library_detail::process.wakeable)
    if (lintel::PhysicalInterface* const physical = entry.load(); physical != nullptr)
      lintel::write_interface(*physical, out);
}
