// Opening and closing a physical interface, and what its transports hand up.
// Message path for on_messages() and advance(); set-up and connection path otherwise.
#include "core/operations/physical_interface.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/objects/network_interface.h"
#include "core/operations/plain_put.h"
#include "util/assert.h"
#include "util/clock.h"
#include "util/config.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

// A look within the node is cheap enough for this.
constexpr uint64_t longest_peer_check_ns = 500'000'000;

// Maximum time for which close() sends queued messages.
constexpr uint64_t closing_limit_ns = 500'000'000;

ProgressMode progress_mode() noexcept {
  const std::string& word = config_string(ConfigKey::progress);
  if (word == "thread") return ProgressMode::thread;
  if (word == "caller") return ProgressMode::caller;
  return ProgressMode::automatic;
}

// Peers that leave more answers behind than this give memory back.
constexpr uint32_t many_answers = 64;

// Queued operations whose first message has gone out, in the order of their calls.
struct SentChain {
  QueuedSend* first = nullptr;
  QueuedSend** last = &first;
  void append(QueuedSend& item) noexcept {
    item.next_queued = nullptr;
    *last = &item;
    last = &item.next_queued;
  }
};

// Returns nullptr if nothing can be sent. A request that would exceed a limit of peer_share.h
// waits, and all requests behind it wait, too, so that their order is kept.
QueuedSend* next_to_send(SendQueues& queues, Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock) {
  if (peer.failed.load(std::memory_order_relaxed)) return nullptr;
  QueuedSend* first = queues.first(peer);
  while (first != nullptr && queues.stops(peer, *first)) first = queues.first(peer);
  if (first == nullptr || first->kind != QueuedSend::Kind::request ||
      !has_to_wait(peer, static_cast<Operation&>(*first).header))
    return first;
  queues.hold_requests(peer);
  return queues.first_not_held(peer);
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
      !queues_.open() || !initiator_.open() || !target_.open() ||
      !scratch_.open(most_scratch_blocks) || !staging_.open()) {
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
  if (interface != nullptr) interface->set_room_listener(*this);
  NetworkInterface* before = nullptr;
  poller_.exclusively([&]() LINTEL_REQUIRES(polling) {
    before = logical_[slot].exchange(interface, std::memory_order_acq_rel);
  });
  if (before == nullptr) return;
  for (bool under_way = true; under_way;) {
    poller_.exclusively([&]() LINTEL_REQUIRES(polling) {
      target_.transfers().stop_copies(*before);
      initiator_.answers().stop_copies(*before);
      under_way = target_.transfers().access_under_way(*before) ||
                  initiator_.answers().copies_under_way(*before);
      poller_.check_peers_if_due(now_ns());
      if (under_way) poller_.poll_once();
    });
  }
  poller_.exclusively([&]() LINTEL_REQUIRES(polling) {
    initiator_.drop_all_of(*before);
    target_.transfers().drop_all_of(*before);
    target_.drop_held(*before);
  });
}

void PhysicalInterface::room_appeared() noexcept {
  target_.held().note_room();
  poller_.doorbell().ring_if_sleeping();
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
      fail_peer(*peer, {Link::Failure::Kind::gone, "another process has taken its place"});
      break;
  }
  return peers_.accept(link, transport);
}

void PhysicalInterface::on_peer_failed(Link& link) noexcept {
  const LockGuard guard(peers_.mutex());
  Peer* const peer = PeerDirectory::peer_of(link);
  if (peer == nullptr || peer->failed.load(std::memory_order_relaxed)) return;
  if (peer->route.link == &link) return fail_peer(*peer, link.failure);
  // An earlier incarnation may be reported after its successor has connected.
  if (relation_of(*peer, poller_.transports().current(), link) != LinkRelation::receives) return;
  // Messages of the peer by it may be lost, answers too. The other link may live on: the next
  // message over it reconnects.
  fail_peer(*peer, link.failure);
  PeerDirectory::set_peer(*peer->route.link, nullptr);
}

void PhysicalInterface::on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept {
  target_.transfers().end_remote_access(link, token, result);
}

bool PhysicalInterface::may_access(Link& link, const RemoteMemory& memory, bool write) noexcept {
  return initiator_.operations().may_access(PeerDirectory::peer_of(link), memory, write);
}

bool PhysicalInterface::exclude_senders(Link& link, void (*action)(Link&, void*),
                                        void* argument) noexcept {
  return peers_.exclude_senders(link, action, argument);
}

unsigned PhysicalInterface::advance() noexcept {
  for (Peer* peer = queues_.any() ? queues_.take_listed() : nullptr; peer != nullptr;) {
    Peer* const next = peer->queue_counts.next_with_queue;
    flush_queue(*peer);
    peer = next;
  }
  unsigned advanced = target_.deliver_held();
  advanced += target_.transfers().advance_all();
  if (staging_.is_busy()) advanced += staging_.advance();
  if (target_.transfers().table().awaits_release()) poller_.work_due().set();
  return advanced;
}

bool PhysicalInterface::is_ready() const noexcept {
  const TransferTable& transfers = target_.transfers().table();
  return transfers.has_active() || transfers.anything_released() || staging_.is_busy() ||
         target_.held().is_due();
}

void PhysicalInterface::check_peers() noexcept {
  peers_.check_awaited([&](Transport& transport, Link* const* links, unsigned count)
                           LINTEL_REQUIRES(polling) {
                             poller_.transports().check_peers(transport, *this, links, count);
                           });
  tell_of_freed_memory();
}

// Others that map what this process has freed hold the memory of the device.
void PhysicalInterface::tell_of_freed_memory() noexcept {
  ExportedAllocation freed;
  for (size_t place = 0; staging_.exports().take_freed(&place, &freed);) {
    MessageHeader header{};
    header.kind = MessageKind::freed;
    header.operation = freed.kind;
    header.match_bits = freed.id;
    for (Peer& peer : peers_.all()) {
      bool knows = false;
      {
        const LockGuard guard(peer.send_lock);
        knows = peer.route.knows_memory;
      }
      if (knows) target_.answers().send(peer, header, nullptr, 0);
    }
  }
}

// A peer names memory of its own only.
void PhysicalInterface::forget_freed_memory(Peer& peer, const MessageHeader& header) noexcept {
  const uint32_t process = peer.route.transport->process_of(*peer.route.link);
  MemoryKind* const kind = kind_numbered(header.operation);
  if (kind != nullptr && process != 0)
    kind->forget_exported(process, &header.match_bits);
  else
    refused_requests.messages.increment();
}

void PhysicalInterface::wake_awaited_peers() noexcept {
  peers_.check_awaited([](Transport& transport, Link* const* links, unsigned count)
                           LINTEL_REQUIRES(polling) {
                             if (!transport.capabilities().wakes_progress) return;
                             for (unsigned i = 0; i < count; ++i)
                               transport.wake_progress(*links[i]);
                           });
}

// True: the item leaves the queue for good.
bool PhysicalInterface::send_queued(Peer& peer, QueuedSend& item) noexcept {
  switch (item.kind) {
    case QueuedSend::Kind::request:
      return initiator_.send_queued(peer, static_cast<Operation&>(item));
    case QueuedSend::Kind::request_data:
      return initiator_.answers().send_data(peer, static_cast<Operation&>(item));
    case QueuedSend::Kind::transfer_data:
      return target_.transfers().send_data(peer, static_cast<Transfer&>(item));
    case QueuedSend::Kind::answer:
      return target_.answers().send_queued(peer, static_cast<Answer&>(item));
    case QueuedSend::Kind::mark:
      break;
  }
  return true;
}

void PhysicalInterface::flush_queue(Peer& peer) noexcept {
  peers_.reconsider(peer);
  SentChain sent;  // their events must not be posted under the send lock
  {
    const LockGuard guard(peer.send_lock);
    queues_.begin_flush(peer);
    const bool several =
        peer.queue_counts.length > 1 && !peer.failed.load(std::memory_order_relaxed);
    if (several) peer.route.transport->cork(*peer.route.link);
    while (QueuedSend* const item = next_to_send(queues_, peer)) {
      if (!send_queued(peer, *item)) {
        queues_.retries.increment();
        break;
      }
      queues_.remove(peer, *item);
      if (item->kind == QueuedSend::Kind::request) sent.append(*item);
    }
    if (several) peer.route.transport->uncork(*peer.route.link);
    peer.note_in_process_send();
    queues_.end_flush(peer);
  }
  for (QueuedSend* item = sent.first; item != nullptr;) {
    QueuedSend* next = item->next_queued;
    initiator_.report_queued_send(static_cast<Operation&>(*item));
    item = next;
  }
}

// Ends every operation with a peer that has died or left, as PTL_NI_UNDELIVERABLE
// (spec 3.13.3). The lock of the PeerDirectory is held.
void PhysicalInterface::fail_peer(Peer& peer, const Link::Failure& failure) noexcept {
  peer.failure.because = failure.reason;
  // A peer that closed its interface in order leaves nothing that could fail. An operation may be
  // acknowledged before its sender, which holds the send lock, has counted it as started.
  bool in_order;
  QueuedSend* queued;
  {
    const LockGuard guard(peer.send_lock);
    in_order = !peer.has_outstanding() && peer.queue_counts.length == 0;
    queued = queues_.take_all(peer);
    peer.set_failed(true);
  }
  if (!in_order) peers_failed.increment();
  PeerDirectory::tell_of_failure(peer, failure, in_order);
  peer.acks.count = 0;
  fail_queued(peer, queued);
  initiator_.answers().fail_all_of(peer);
  target_.transfers().fail_all_of(peer);
  target_.held().forget_initiator(peer);
  if (peer.long_messages.device_ways != 0)
    forget_allocations_of(peer.route.transport->process_of(*peer.route.link));
}

// Data of operations and transfers end with these.
void PhysicalInterface::fail_queued(Peer& peer, QueuedSend* queued) noexcept {
  uint32_t answers = 0;
  for (QueuedSend* next; queued != nullptr; queued = next) {
    next = queued->next_queued;
    if (queued->kind == QueuedSend::Kind::request) {
      initiator_.fail_unsent(static_cast<Operation&>(*queued), PTL_NI_UNDELIVERABLE);
    } else if (queued->kind == QueuedSend::Kind::answer) {
      ++answers;
      const LockGuard guard(peer.send_lock);
      target_.answers().release(peer, static_cast<Answer&>(*queued));
    }
  }
  if (answers > many_answers) target_.answers().give_back();
}

// A put of the common case, see place_plain_put().
[[gnu::always_inline]] inline bool PhysicalInterface::take_plain_put(
    Peer& peer, const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  const uint64_t length = message.payload_length;
  if ((header.flags & ~flag_interface_mask) != 0 || header.length() != length) return false;
  NetworkInterface* const interface = logical(header.interface_slot());
  const HeaderWords words(header);
  if (interface == nullptr ||
      !place_plain_put(*interface, words, header.pt_index, length, message.payload,
                       initiator_of(*interface, peer, header.initiator_rank)))
    return false;
  received.count(MessageKind::put, length);
  if (header.asks_for_ack()) target_.answers().acknowledge_exactly(peer, header.cookie);
  return true;
}

bool PhysicalInterface::on_put(Link& link, const MessageCell& cell, uint64_t first_word,
                               uint32_t length) noexcept {
  LINTEL_ASSERT(is_plain_put(first_word) && length <= cell_payload_bytes);
  const uint64_t bytes = length;
  Peer* const peer = PeerDirectory::peer_of(link);
  NetworkInterface* const interface = logical(slot_in(first_word));
  const HeaderWords header(cell.header);
  const uint64_t index_and_length = header.index_and_length();
  if (peer == nullptr || !peer->sends_by(link)) [[unlikely]]
    return MessageSink::on_put(link, cell, first_word, static_cast<uint32_t>(bytes));
  if (interface == nullptr || index_and_length >> 16 != bytes ||
      !place_plain_put(
          *interface, header, static_cast<uint16_t>(index_and_length), bytes, cell.payload,
          initiator_of(*interface, *peer, static_cast<uint32_t>(header.rank_and_cookie()))))
      [[unlikely]] {
    take_one_in_general(*peer, copy_of(cell, first_word, static_cast<uint32_t>(bytes)));
    return false;
  }
  received.count(MessageKind::put, bytes);
  if (asks_for_ack(first_word)) peer->acknowledged_in_place.increment();
  return true;
}

[[gnu::noinline]] void PhysicalInterface::take_one_in_general(
    Peer& peer, const InboundMessage& message) noexcept {
  static_cast<void>(take_in_general(peer, &message, &message + 1));
  target_.answers().flush_acknowledgements(peer);
}

void PhysicalInterface::take_message(Peer& peer, const InboundMessage& message) noexcept {
  const bool may_join =
      message.header.kind == MessageKind::put && (message.header.flags & flag_remote_memory) != 0;
  if (target_.transfers().has_batch() && !may_join) target_.transfers().fetch_batch();
  switch (message.header.kind) {
    case MessageKind::put:
    case MessageKind::get:
    case MessageKind::atomic:
    case MessageKind::fetch_atomic:
    case MessageKind::swap:
      target_.handle_request(logical(message.header.interface_slot()), peer, message);
      break;
    case MessageKind::ack:
      initiator_.answers().take_ack(peer, message.header);
      break;
    case MessageKind::ack_batch:
      initiator_.answers().take_ack_batch(peer, message);
      break;
    case MessageKind::reply:
      initiator_.answers().take_reply(peer, message);
      break;
    case MessageKind::data_request:
      if ((message.header.modes & data_for_reply) != 0)
        target_.transfers().take_data_request(peer, message.header);
      else
        initiator_.answers().take_data_request(peer, message.header);
      break;
    case MessageKind::data:
      if ((message.header.modes & data_for_reply) != 0) {
        initiator_.answers().take_reply_data(peer, message);
      } else {
        target_.transfers().take_data(peer, message);
      }
      break;
    case MessageKind::refusal:
      refused_requests.note_answer(peer.id, message.header);
      break;
    case MessageKind::hold:
      queues_.set_stopped(peer, message.header);
      break;
    case MessageKind::freed:
      forget_freed_memory(peer, message.header);
      break;
    case MessageKind::connection:
    case MessageKind::none:
      refused_requests.messages.increment();
      break;
  }
}

// Takes one message or more and returns the next one: a put while no batch of transfers is open, or
// the end.
[[gnu::noinline]] const InboundMessage* PhysicalInterface::take_in_general(
    Peer& peer, const InboundMessage* message, const InboundMessage* end) noexcept {
  do {
    received.count(message->header.kind, message->payload_length);
    take_message(peer, *message);
  } while (++message != end &&
           (message->header.kind != MessageKind::put || target_.transfers().has_batch()));
  if (target_.transfers().has_batch()) target_.transfers().fetch_batch();
  initiator_.operations().return_ended(peer);
  return message;
}

void PhysicalInterface::on_messages(Link& link, const InboundMessage* messages,
                                    unsigned count) noexcept {
  Peer* const peer = PeerDirectory::peer_of(link);
  if (peer == nullptr || !peer->sends_by(link)) [[unlikely]]
    return take_from_other_link(link, messages, count);
  const InboundMessage* const end = messages + count;
  while (messages != end) {
    if (messages->header.kind == MessageKind::put && take_plain_put(*peer, *messages)) [[likely]]
      ++messages;
    else
      messages = take_in_general(*peer, messages, end);
  }
  target_.answers().flush_acknowledgements(*peer);
}

unsigned PhysicalInterface::on_acknowledgement(Link& link, uint32_t cookie) noexcept {
  Peer* const peer = PeerDirectory::peer_of(link);
  if (peer == nullptr || !peer->sends_by(link)) [[unlikely]]
    return MessageSink::on_acknowledgement(link, cookie);
  received.messages[static_cast<unsigned>(MessageKind::ack_batch)].increment();
  initiator_.answers().take_single_ack(*peer, cookie);
  return 1;
}

void PhysicalInterface::on_acknowledgements(Link& link, const uint32_t* cookies,
                                            unsigned count) noexcept {
  Peer* const peer = PeerDirectory::peer_of(link);
  if (peer == nullptr || !peer->sends_by(link)) [[unlikely]]
    return MessageSink::on_acknowledgements(link, cookies, count);
  received.messages[static_cast<unsigned>(MessageKind::ack_batch)].increment();
  initiator_.answers().take_acks(*peer, reinterpret_cast<const std::byte*>(cookies), count);
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
  // The process had the address before.
  if (relation == LinkRelation::of_another_process) return refused_requests.messages.add(count);
  for (unsigned i = 0; i < count; ++i) {
    InboundMessage message = messages[i];
    const MessageKind kind = message.header.kind;
    const bool describes = (message.header.flags & flag_remote_memory) != 0 &&
                           (kind == MessageKind::put || kind == MessageKind::get);
    if (describes && relation != LinkRelation::sends) message.payload_length = 0;
    static_cast<void>(take_in_general(*peer, &message, &message + 1));
  }
  target_.answers().flush_acknowledgements(*peer);
}

}  // namespace lintel
