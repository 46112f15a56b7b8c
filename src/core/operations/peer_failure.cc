#include "core/operations/peer_failure.h"

#include "core/operations/initiator.h"
#include "core/operations/initiator_answers.h"
#include "core/operations/physical_interface.h"
#include "core/operations/target_transfer.h"
#include "util/awaited_process.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {
constexpr uint64_t gone_said_again_ns = 10'000'000'000;
constexpr uint32_t many_answers = 64;

// Returns the format of a log line. Its arguments are process, transport and reason.
constexpr const char* failure_format(Link::Failure::Kind kind) noexcept {
  switch (kind) {
    case Link::Failure::Kind::unanswered:
      return "nobody answers at %s (%s: %s): operations to it end as PTL_NI_UNDELIVERABLE";
    case Link::Failure::Kind::refused:
      return "%s refuses to connect (%s: %s): operations to it end as PTL_NI_UNDELIVERABLE";
    case Link::Failure::Kind::gone:
      break;
  }
  return "%s is gone (%s: %s): operations to it end as PTL_NI_UNDELIVERABLE";
}
}  // namespace

void fail_peer(PhysicalInterface& physical, Peer& peer, const Link::Failure& failure) noexcept {
  peer.failed_because = failure.reason;
  // A peer that closed its interface in order leaves nothing that could fail. An operation may be
  // acknowledged before its sender, which holds the send lock, has counted it as started.
  bool in_order;
  QueuedSend* queued;
  {
    const LockGuard guard(peer.send_lock);
    in_order = !peer.has_outstanding() && peer.queue_length == 0;
    peer.failed.store(true, std::memory_order_release);
    queued = physical.queues().take_all(peer);
  }
  if (in_order) {
    log_message(LogLevel::debug, "%s has left", ProcessText(peer.id.nid, peer.id.pid).c_str());
  } else {
    // A program that waits for a process to start sends to it again and again.
    const uint64_t now = now_ns();
    const bool said = peer.gone_said_ns != 0 && now - peer.gone_said_ns < gone_said_again_ns;
    const bool awaited =
        failure.kind == Link::Failure::Kind::unanswered && is_awaited(peer.id.nid, peer.id.pid);
    if (!said && !awaited) peer.gone_said_ns = now;
    log_message(said || awaited ? LogLevel::debug : LogLevel::warn, failure_format(failure.kind),
                ProcessText(peer.id.nid, peer.id.pid).c_str(), peer.transport->capabilities().name,
                peer.failed_because);
    physical.peers_failed.increment();
  }
  peer.ack_count = 0;
  uint32_t answers = 0;
  while (queued != nullptr) {
    QueuedSend* next = queued->next_queued;
    if (queued->kind == QueuedSend::Kind::request) {
      fail_unsent_operation(physical, static_cast<Operation&>(*queued), PTL_NI_UNDELIVERABLE);
    } else if (queued->kind == QueuedSend::Kind::answer) {
      ++answers;
      const LockGuard guard(peer.send_lock);
      physical.answers().release(peer, static_cast<Answer&>(*queued));
    }
    queued = next;  // data of operations and transfers end with these, below
  }
  if (answers > many_answers) physical.answers().give_back();
  physical.operations().for_each([&](Operation& operation) {
    polling.assert_held();
    if (operation.peer.load(std::memory_order_relaxed) == &peer)
      fail_operation(physical, operation);
  });
  fail_counted_puts(peer);
  physical.operations().return_ended(peer);
  // A peer that left in order has acknowledged what it had received.
  TransferTable& transfers = physical.transfers();
  static_cast<void>(end_released_transfers(physical));
  peer.unreleased_head = nullptr;
  transfers.for_each([&](Transfer& transfer) {
    polling.assert_held();
    if (transfer.peer.load(std::memory_order_relaxed) != &peer) return;
    // An active transfer fails by itself, or has ended and only posts its events.
    if (transfers.is_active(transfer))
      transfer.stays = false;  // nobody says any more when its memory is released
    else
      fail_transfer(physical, transfer);
  });
}

}  // namespace lintel
