// Opening and closing a physical interface, and what its transports hand up.
// Message path for on_messages() and advance(); set-up and connection path otherwise.
#include "core/operations/physical_interface.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/objects/network_interface.h"
#include "core/operations/flush_queues.h"
#include "core/operations/initiator_answers.h"
#include "core/operations/peer_failure.h"
#include "core/operations/target_transfer.h"
#include "util/clock.h"
#include "util/config.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

// A look within the node is cheap enough for this.
constexpr uint64_t longest_peer_check_ns = 500'000'000;

// How long close() goes on sending what is queued.
constexpr uint64_t closing_limit_ns = 500'000'000;

ProgressMode progress_mode() noexcept {
  const std::string& word = config_string(ConfigKey::progress);
  if (word == "thread") return ProgressMode::thread;
  if (word == "caller") return ProgressMode::caller;
  return ProgressMode::automatic;
}

}  // namespace

int PhysicalInterface::open(uint32_t number, uint32_t pid, OpenTransports open_transports) {
  number_ = number;
  uid_ = geteuid();
  OpenedTransports opened = open_transports(number, pid);
  switch (opened.status) {
    case OpenStatus::opened:
      break;
    case OpenStatus::pid_in_use:
      log_message(LogLevel::info, "interface %u: pid %u is in use: %s", number, pid,
                  opened.reason.c_str());
      return PTL_PID_IN_USE;
    case OpenStatus::failed:
      if (opened.no_such_interface) return PTL_ARG_INVALID;
      log_message(LogLevel::error, "interface %u cannot be opened: %s", number,
                  opened.reason.c_str());
      return opened.is_misconfigured ? PTL_FAIL : PTL_NO_SPACE;
  }
  for (const OpenedTransports::Unused& unused : opened.unused)
    log_message(unused.is_unexpected ? LogLevel::warn : LogLevel::info,
                "interface %u opens without %s: %s", number, unused.transport.c_str(),
                unused.reason.c_str());
  id_ = opened.id;
  transports_ = std::move(opened.transports);
  unused_ = std::move(opened.unused);
  if (!peers_.open(transports_, unused_, poller_.transports().in_process_sends()) ||
      !operations_.open() || !transfers_.open() || !answers_.open() ||
      !scratch_.open(most_scratch_blocks)) {
    log_message(LogLevel::error, "interface %u: no address space for its pools (ulimit -v?)",
                number);
    return PTL_NO_SPACE;
  }
  Doorbell* doorbell = nullptr;
  for (const auto& transport : transports_) {
    if (!poller_.transports().add(*transport)) return PTL_FAIL;
    if (doorbell == nullptr) doorbell = transport->doorbell();
  }
  if (doorbell == nullptr) doorbell = &private_doorbell_;
  const ProgressMode mode = progress_mode();
  // A dead peer is noticed within two looks.
  poller_.open(
      *doorbell, mode != ProgressMode::thread,
      std::min(config_u64(ConfigKey::peer_timeout_ms) * 1'000'000 / 4, longest_peer_check_ns));
  for (const auto& transport : transports_) transport->set_doorbell(*doorbell);
  peers_.set_doorbell(*doorbell);
  set_up_waiting();
  if (mode == ProgressMode::caller) passing_polls_.check_peers();
  if (!progress_thread_.start(poller_, mode)) return PTL_NO_SPACE;
  if (log_enabled(LogLevel::info)) {
    for (const auto& transport : transports_)
      log_message(LogLevel::info, "interface %u, %s: %s: %s", number,
                  ProcessText(id_.nid, id_.pid).c_str(), transport->capabilities().name,
                  transport->describe().c_str());
  }
  return PTL_OK;
}

void PhysicalInterface::set_up_waiting() {
  const WaitHeuristics heuristics = configured_wait_heuristics();
  WaitSettings settings{.spin_ns = config_u64(ConfigKey::spin_us) * 1000, .heuristics = heuristics};
  for (const auto& transport : transports_) {
    const Capabilities& capabilities = transport->capabilities();
    settings.least_spin_ns = std::max(settings.least_spin_ns, capabilities.least_spin_ns);
    settings.polls_by_system_call |= capabilities.polls_by_system_call;
  }
  processor_load().use(heuristics);
  wait_policy_.use(settings);
  passing_polls_.use(heuristics);
}

void PhysicalInterface::close() noexcept {
  const uint64_t deadline = now_ns() + closing_limit_ns;
  bool done = false;
  while (!done && now_ns() < deadline) {
    poller_.exclusively([&]() LINTEL_REQUIRES(polling) {
      done = !queues_.any() && all_delivered();
      if (!done) poller_.poll_once();
    });
  }
  progress_thread_.stop();
}

bool PhysicalInterface::all_delivered() noexcept {
  bool delivered = true;
  for (const auto& transport : transports_) delivered &= transport->all_delivered();
  return delivered;
}

PhysicalInterface::~PhysicalInterface() {
  progress_thread_.stop();
  // Transports that ring the doorbell go before the one to whose memory it belongs.
  for (std::unique_ptr<Transport>& transport : transports_)
    if (transport->doorbell() != &poller_.doorbell()) transport.reset();
}

void PhysicalInterface::set_logical(unsigned slot, NetworkInterface* interface) noexcept {
  NetworkInterface* before = nullptr;
  poller_.exclusively([&]() LINTEL_REQUIRES(polling) {
    before = logical_[slot].exchange(interface, std::memory_order_acq_rel);
  });
  if (before == nullptr) return;
  finish_remote_accesses(*before);
  poller_.exclusively([&]() LINTEL_REQUIRES(polling) { forget_logical(*before); });
}

void PhysicalInterface::finish_remote_accesses(const NetworkInterface& interface) noexcept {
  bool under_way = true;
  while (under_way) {
    under_way = false;
    poller_.exclusively([&]() LINTEL_REQUIRES(polling) {
      transfers_.for_each([&](const Transfer& transfer) {
        under_way |= transfer.interface == &interface && transfer.in_flight != 0;
      });
      poller_.check_peers_if_due(now_ns());
      if (under_way) poller_.poll_once();
    });
  }
}

void PhysicalInterface::forget_logical(NetworkInterface& interface) noexcept {
  const PeerTable& peers = peers_.all();
  for (uint32_t i = 0; i < peers.size(); ++i) {
    Peer& peer = peers.at(i);
    {
      const LockGuard guard(peer.send_lock);
      queues_.drop_all_of(peer, interface);
    }
    peer.counted_puts.end_if([&](const CountedPuts::Put& put) {
      polling.assert_held();
      const bool ends = interface.descriptors().owns(put.descriptor.descriptor);
      if (ends) peer.count_as_ended();
      return ends;
    });
  }
  operations_.for_each([&](Operation& operation) {
    polling.assert_held();
    if (operation.interface != &interface) return;
    operations_.end(operation);
  });
  for (uint32_t i = 0; i < peers.size(); ++i) operations_.return_ended(peers.at(i));
  transfers_.drop_all_of(interface);
}

void* PhysicalInterface::on_new_link(Link& link) noexcept {
  const LockGuard guard(peers_.mutex());
  Transport& transport = poller_.transports().current();
  Peer* const peer = peers_.find(link.peer);
  if (peer == nullptr || peer->failed.load(std::memory_order_relaxed))
    return peers_.accept(link, transport);
  switch (relation_of(*peer, transport, link)) {
    case LinkRelation::sends:
    case LinkRelation::receives:
      PeerDirectory::set_peer(link, peer);
      return peer;
    case LinkRelation::replaces:
      break;
    case LinkRelation::of_another_process:
      fail_peer(*this, *peer, {Link::Failure::Kind::gone, "another process has taken its place"});
      break;
  }
  return peers_.accept(link, transport);
}

void PhysicalInterface::on_peer_failed(Link& link) noexcept {
  const LockGuard guard(peers_.mutex());
  Peer* const peer = PeerDirectory::peer_of(link);
  if (peer == nullptr || peer->failed.load(std::memory_order_relaxed)) return;
  if (peer->link == &link) return fail_peer(*this, *peer, link.failure);
  // An earlier incarnation may be reported after its successor has connected.
  if (relation_of(*peer, poller_.transports().current(), link) != LinkRelation::receives) return;
  // What the peer sent by it may be lost, answers among that. The other link may live on: its next
  // message connects anew.
  fail_peer(*this, *peer, link.failure);
  PeerDirectory::set_peer(*peer->link, nullptr);
}

void PhysicalInterface::on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept {
  end_remote_access(*this, link, token, result);
}

bool PhysicalInterface::may_access(Link& link, const RemoteMemory& memory, bool write) noexcept {
  return operations_.may_access(PeerDirectory::peer_of(link), memory, write);
}

bool PhysicalInterface::exclude_senders(Link& link, void (*action)(Link&, void*),
                                        void* argument) noexcept {
  if (Peer* const peer = PeerDirectory::peer_of(link); peer != nullptr) {
    const LockGuard guard(peer->send_lock);
    action(link, argument);
    return true;
  }
  // Nobody sends by a link without a peer, as one whose peer failed by another link. It would get
  // one under this lock.
  const LockGuard guard(peers_.mutex());
  if (PeerDirectory::peer_of(link) != nullptr) return false;
  action(link, argument);
  return true;
}

unsigned PhysicalInterface::advance() noexcept {
  if (queues_.any()) flush_queues(*this);
  const unsigned advanced = advance_transfers(*this) + end_released_transfers(*this);
  if (transfers_.awaits_release()) poller_.work_due().set();
  return advanced;
}

bool PhysicalInterface::is_ready() const noexcept {
  return transfers_.has_active() || transfers_.anything_released();
}

void PhysicalInterface::check_peers() noexcept {
  peers_.check_awaited([&](Transport& transport, Link* const* links, unsigned count)
                           LINTEL_REQUIRES(polling) {
                             poller_.transports().check_peers(transport, *this, links, count);
                           });
}

void PhysicalInterface::wake_awaited_peers() noexcept {
  peers_.check_awaited([](Transport& transport, Link* const* links, unsigned count)
                           LINTEL_REQUIRES(polling) {
                             if (!transport.capabilities().wakes_progress) return;
                             for (unsigned i = 0; i < count; ++i)
                               transport.wake_progress(*links[i]);
                           });
}

// Inlined: the call would cost 20 instructions a message.
[[gnu::always_inline]] inline void PhysicalInterface::take_messages(Peer& peer,
                                                                    const InboundMessage* messages,
                                                                    unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    const InboundMessage& message = messages[i];
    received.count(message.header.kind, message.payload_length);
    const bool may_join =
        message.header.kind == MessageKind::put && (message.header.flags & flag_remote_memory) != 0;
    if (transfers_.batch().count != 0 && !may_join) fetch_batch(*this);
    switch (message.header.kind) {
      case MessageKind::put:
        if (deliver_plain_put(*this, peer, message)) [[likely]]
          break;
        [[fallthrough]];
      case MessageKind::get:
      case MessageKind::atomic:
      case MessageKind::fetch_atomic:
      case MessageKind::swap:
        handle_request(*this, peer, message);
        break;
      case MessageKind::ack:
        handle_ack(*this, peer, message.header);
        break;
      case MessageKind::ack_batch:
        handle_ack_batch(*this, peer, message);
        break;
      case MessageKind::reply:
        handle_reply(*this, peer, message);
        break;
      case MessageKind::data_request:
        handle_data_request(*this, peer, message.header);
        break;
      case MessageKind::data:
        if ((message.header.modes & data_for_reply) != 0) {
          handle_reply_data(*this, peer, message);
        } else {
          handle_transfer_data(*this, peer, message);
        }
        break;
      case MessageKind::refusal:
        refused_requests.note_answer(peer.id, message.header);
        break;
      case MessageKind::connection:
      case MessageKind::none:
        messages_refused.increment();
        break;
    }
  }
  if (transfers_.batch().count != 0) fetch_batch(*this);
  answers_.flush_acknowledgements(peer);
  operations_.return_ended(peer);
}

void PhysicalInterface::on_messages(Link& link, const InboundMessage* messages,
                                    unsigned count) noexcept {
  Peer* const peer = PeerDirectory::peer_of(link);
  if (peer != nullptr && peer->sends_by(link)) [[likely]]
    return take_messages(*peer, messages, count);
  take_from_other_link(link, messages, count);
}

// The link is new, or the peer receives by another one. Then it cannot reach the memory that the
// messages describe, so the data follow in messages.
void PhysicalInterface::take_from_other_link(Link& link, const InboundMessage* messages,
                                             unsigned count) noexcept {
  const LockGuard guard(peers_.mutex());
  Transport& transport = poller_.transports().current();
  Peer* peer = PeerDirectory::peer_of(link);
  if (peer == nullptr || peer->failed.load(std::memory_order_relaxed) ||
      relation_of(*peer, transport, link) == LinkRelation::replaces) {
    peer = static_cast<Peer*>(on_new_link(link));
    if (peer == nullptr) return;
  }
  const LinkRelation relation = relation_of(*peer, transport, link);
  if (relation == LinkRelation::sends) return take_messages(*peer, messages, count);
  // The process had the address before.
  if (relation == LinkRelation::of_another_process) return messages_refused.add(count);
  for (unsigned i = 0; i < count; ++i) {
    InboundMessage message = messages[i];
    const MessageKind kind = message.header.kind;
    const bool describes = (message.header.flags & flag_remote_memory) != 0 &&
                           (kind == MessageKind::put || kind == MessageKind::get);
    if (describes) message.payload_length = 0;
    take_messages(*peer, &message, 1);
  }
}

}  // namespace lintel
