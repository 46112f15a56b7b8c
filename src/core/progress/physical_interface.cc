// Opening and closing a physical interface, its peers and its pools. Set-up and connection path,
// except for the pools of operations and transfers.
#include "core/progress/physical_interface.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "core/objects/network_interface.h"
#include "core/operations/initiator.h"
#include "core/operations/initiator_payload.h"
#include "core/operations/target.h"
#include "util/asymmetric_fence.h"
#include "util/clock.h"
#include "util/config.h"
#include "util/log.h"

namespace lintel {

namespace {

// Pools are address space until used; a cookie has 24 bits for the index.
constexpr uint32_t most_operations = 1u << 20;
constexpr uint32_t most_transfers = 1u << 18;
constexpr uint32_t most_answers = 1u << 18;
constexpr uint32_t most_copies = 1u << 16;
constexpr uint32_t most_counted_put_rings = 1u << 12;  // peers with counted puts
constexpr uint32_t cookie_index_bits = 24;
constexpr uint32_t cookie_index_mask = (1u << cookie_index_bits) - 1;
// The uppermost bit tells counted puts from operations.
constexpr uint8_t cookie_generation_mask = 0x7f;

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
      return PTL_NO_SPACE;
  }
  if (!opened.reason.empty())
    log_message(opened.degraded ? LogLevel::warn : LogLevel::info,
                "interface %u opens without a transport: %s", number, opened.reason.c_str());
  id_ = opened.id;
  transports_ = std::move(opened.transports);
  if (!peers_.open() || !operations_.open(most_operations) || !transfers_.open(most_transfers) ||
      !answers_.open(most_answers) || !volatile_copies_.open(most_copies) ||
      !counted_put_rings_.open(most_counted_put_rings)) {
    log_message(LogLevel::error, "interface %u: no address space for its pools (ulimit -v?)",
                number);
    return PTL_NO_SPACE;
  }
  if (transports_.size() > most_transports) return PTL_FAIL;
  for (const auto& transport : transports_) {
    if (transport->capabilities().in_process)
      in_process_transport_ = transport.get();
    else
      polled_[polled_count_++] = {transport.get(), transport->capabilities().polls_by_system_call};
  }
  for (const auto& transport : transports_) {
    if (Doorbell* doorbell = transport->doorbell(); doorbell != nullptr) {
      doorbell_ = doorbell;
      break;
    }
  }
  doorbell_->fences.full.store(asymmetric_fence_available() ? 0 : 1, std::memory_order_relaxed);
  gate_.set_doorbell(doorbell_);
  for (const auto& transport : transports_) transport->set_doorbell(*doorbell_);
  set_up_waiting();
  // A dead peer is noticed within two looks.
  peer_check_interval_ns_ =
      std::min(config_u64(ConfigKey::peer_timeout_ms) * 1'000'000 / 4, longest_peer_check_ns);
  const ProgressMode mode = progress_mode();
  progress_by_callers_ = mode != ProgressMode::thread;
  if (!progress_thread_.start(*this, mode)) return PTL_NO_SPACE;
  if (log_enabled(LogLevel::info)) {
    for (const auto& transport : transports_)
      log_message(LogLevel::info, "interface %u, nid 0x%08x pid %u: %s: %s", number, id_.nid,
                  id_.pid, transport->capabilities().name, transport->describe().c_str());
  }
  return PTL_OK;
}

void PhysicalInterface::set_up_waiting() {
  const WaitHeuristics heuristics = configured_wait_heuristics();
  WaitSettings settings{.spin_ns = config_u64(ConfigKey::spin_us) * 1000, .heuristics = heuristics};
  for (const auto& transport : transports_)
    settings.least_spin_ns =
        std::max(settings.least_spin_ns, transport->capabilities().least_spin_ns);
  processor_load().use(heuristics);
  watch_fence_cost(heuristics.uses(WaitHeuristic::costly_fences));
  wait_policy_.use(settings);
  passing_.use(heuristics);
}

void PhysicalInterface::close() noexcept {
  const uint64_t deadline = now_ns() + closing_limit_ns;
  bool done = false;
  while (!done && now_ns() < deadline) {
    exclusively([&] {
      done = !anything_queued() && all_delivered();
      if (!done) poll_once();
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
    if (transport->doorbell() != doorbell_) transport.reset();
}

void PhysicalInterface::set_logical(unsigned slot, NetworkInterface* interface) noexcept {
  NetworkInterface* before = nullptr;
  exclusively([&] { before = logical_[slot].exchange(interface, std::memory_order_acq_rel); });
  if (before == nullptr) return;
  finish_remote_accesses(*before);
  exclusively([&] { forget_logical(*before); });
}

void PhysicalInterface::finish_remote_accesses(const NetworkInterface& interface) noexcept {
  bool under_way = true;
  while (under_way) {
    under_way = false;
    exclusively([&] {
      for (uint32_t i = 0; i < transfers_.high_water(); ++i) {
        const Transfer& transfer = transfers_.at(i);
        under_way |= transfer.peer.load(std::memory_order_acquire) != nullptr &&
                     transfer.interface == &interface && transfer.in_flight != 0;
      }
      if (under_way) poll_once();
    });
  }
}

void PhysicalInterface::forget_logical(NetworkInterface& interface) noexcept {
  for (uint32_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_.at(i);
    std::lock_guard guard(peer.send_lock);
    QueuedSend** link = &peer.queue_head;
    while (QueuedSend* item = *link) {
      NetworkInterface* owner =
          item->kind == QueuedSend::Kind::answer          ? nullptr
          : item->kind == QueuedSend::Kind::transfer_data ? static_cast<Transfer*>(item)->interface
                                                          : static_cast<Operation*>(item)->interface;
      if (owner == &interface) {
        *link = item->next_queued;
        --peer.queue_length;
      } else {
        link = &item->next_queued;
      }
    }
    peer.queue_tail = link;
  }
  for (uint32_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_.at(i);
    peer.counted_puts.end_if([&](const CountedPuts::Put& put) {
      const bool ends = interface.descriptors().owns(put.descriptor.descriptor);
      if (ends) peer.count_as_ended();
      return ends;
    });
  }
  for (uint32_t i = 0; i < operations_.high_water(); ++i) {
    Operation& operation = operations_.at(i);
    if (operation.peer.load(std::memory_order_acquire) == nullptr ||
        operation.interface != &interface)
      continue;
    if (operation.copied) volatile_copies_.release(operation.copy_index);
    end_operation(operation);
  }
  for (uint32_t i = 0; i < peers_.size(); ++i) return_ended_operations(peers_.at(i));
  Transfer** link = &active_transfers_;
  while (Transfer* transfer = *link) {
    if (transfer->interface == &interface) {
      *link = transfer->next_active;
    } else {
      link = &transfer->next_active;
    }
  }
  for (Peer* peer = peers_unreleased_; peer != nullptr; peer = peer->next_unreleased) {
    Transfer* unreleased = std::exchange(peer->unreleased_head, nullptr);
    while (unreleased != nullptr) {
      Transfer* const next = unreleased->next_active;
      if (unreleased->interface != &interface) await_release(*unreleased);
      unreleased = next;
    }
  }
  for (uint32_t i = 0; i < transfers_.high_water(); ++i) {
    Transfer& transfer = transfers_.at(i);
    if (transfer.peer.load(std::memory_order_acquire) != nullptr &&
        transfer.interface == &interface)
      release_transfer(transfer);
  }
}

Operation* PhysicalInterface::allocate_operation(Peer& peer) noexcept {
  if (peer.free_operations == Arena<Operation>::no_index)
    peer.free_operations =
        peer.returned_operations.exchange(Arena<Operation>::no_index, std::memory_order_acquire);
  uint32_t index = peer.free_operations;
  if (index != Arena<Operation>::no_index) {
    peer.free_operations = operations_.at(index).next_free.load(std::memory_order_relaxed);
  } else {
    index = operations_.allocate();
    if (index == Arena<Operation>::no_index) return nullptr;
  }
  return &operations_.at(index);
}

// Ended operations go back to their peer in one chain per burst, so that neither side pays a locked
// instruction for each.
void PhysicalInterface::end_operation(Operation& operation) noexcept {
  conceal_memory(operation, false);
  Peer& peer = *operation.peer.load(std::memory_order_relaxed);
  const uint32_t index = operations_.index_of(operation);
  ++operation.generation;
  operation.peer.store(nullptr, std::memory_order_relaxed);
  operation.next_free.store(peer.returned_chain_head, std::memory_order_relaxed);
  if (peer.returned_chain_head == Arena<Operation>::no_index) peer.returned_chain_tail = index;
  peer.returned_chain_head = index;
  peer.count_as_ended();
}

void PhysicalInterface::return_ended_operations(Peer& peer) noexcept {
  if (peer.returned_chain_head == Arena<Operation>::no_index) return;
  Operation& last = operations_.at(peer.returned_chain_tail);
  uint32_t head = peer.returned_operations.load(std::memory_order_relaxed);
  // The other side only ever takes the whole chain, so there is no ABA.
  do {
    last.next_free.store(head, std::memory_order_relaxed);
  } while (!peer.returned_operations.compare_exchange_weak(
      head, peer.returned_chain_head, std::memory_order_release, std::memory_order_relaxed));
  peer.returned_chain_head = Arena<Operation>::no_index;
}

void PhysicalInterface::discard_operation(Operation& operation) noexcept {
  ++operation.generation;
  operation.peer.store(nullptr, std::memory_order_relaxed);
  operations_.release(operations_.index_of(operation));
}

uint32_t PhysicalInterface::cookie_of(const Operation& operation) const noexcept {
  return operations_.index_of(operation) |
         uint32_t{static_cast<uint8_t>(operation.generation & cookie_generation_mask)}
             << cookie_index_bits;
}

Operation* PhysicalInterface::find_operation(uint32_t cookie) noexcept {
  const uint32_t index = cookie & cookie_index_mask;
  if (!operations_.contains(index)) return nullptr;
  Operation& operation = operations_.at(index);
  return operation.peer.load(std::memory_order_acquire) != nullptr &&
                 (operation.generation & cookie_generation_mask) == cookie >> cookie_index_bits
             ? &operation
             : nullptr;
}

Transfer* PhysicalInterface::allocate_transfer() noexcept {
  const uint32_t index = transfers_.allocate();
  return index == Arena<Transfer>::no_index ? nullptr : &transfers_.at(index);
}

void PhysicalInterface::release_transfer(Transfer& transfer) noexcept {
  ++transfer.generation;
  --transfer.peer.load(std::memory_order_relaxed)->transfers;
  transfer.peer.store(nullptr, std::memory_order_release);
  transfers_.release(transfers_.index_of(transfer));
}

uint32_t PhysicalInterface::cookie_of(const Transfer& transfer) const noexcept {
  return transfers_.index_of(transfer) | uint32_t{transfer.generation} << cookie_index_bits;
}

Transfer* PhysicalInterface::find_transfer(uint32_t cookie) noexcept {
  const uint32_t index = cookie & cookie_index_mask;
  if (!transfers_.contains(index)) return nullptr;
  Transfer& transfer = transfers_.at(index);
  return transfer.peer.load(std::memory_order_acquire) != nullptr &&
                 transfer.generation == cookie >> cookie_index_bits
             ? &transfer
             : nullptr;
}

uint64_t PhysicalInterface::sent_messages(MessageKind kind) const noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < peers_.size(); ++i)
    sum += peers_.at(i).sent.messages[static_cast<unsigned>(kind)].get();
  return sum;
}

uint64_t PhysicalInterface::sent_bytes(MessageKind kind) const noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < peers_.size(); ++i)
    sum += peers_.at(i).sent.bytes[static_cast<unsigned>(kind)].get();
  return sum;
}

NetworkCounters PhysicalInterface::network_counters() const noexcept {
  NetworkCounters sum;
  for (const auto& transport : transports_) {
    const NetworkCounters of_one = transport->network_counters();
    sum.retransmissions += of_one.retransmissions;
    sum.frames_dropped += of_one.frames_dropped;
    sum.unreliable_sent += of_one.unreliable_sent;
    sum.connections_refused += of_one.connections_refused;
  }
  return sum;
}

void PhysicalInterface::print_statistics() const noexcept {
  static constexpr const char* names[message_kinds] = {
      "none", "put",       "get",   "atomic",       "fetch_atomic", "swap",
      "ack",  "ack_batch", "reply", "data_request", "data",         "connection"};
  fprintf(stderr, "lintel: interface %u, nid 0x%08x pid %u\n", number_, id_.nid, id_.pid);
  for (unsigned kind = 1; kind < message_kinds; ++kind) {
    const auto k = static_cast<MessageKind>(kind);
    const uint64_t out = sent_messages(k);
    const uint64_t in = received.messages[kind].get();
    if (out == 0 && in == 0) continue;
    fprintf(stderr,
            "  %-13s sent %12llu messages %14llu bytes   received %12llu messages %14llu bytes\n",
            names[kind], static_cast<unsigned long long>(out),
            static_cast<unsigned long long>(sent_bytes(k)), static_cast<unsigned long long>(in),
            static_cast<unsigned long long>(received.bytes[kind].get()));
  }
  fprintf(stderr,
          "  sends queued %llu, messages refused %llu, peers failed %llu, polls %llu (%llu with "
          "work), sleeps %llu\n",
          static_cast<unsigned long long>(sends_queued.get()),
          static_cast<unsigned long long>(messages_refused.get()),
          static_cast<unsigned long long>(peers_failed.get()),
          static_cast<unsigned long long>(poll_counters.polls.get()),
          static_cast<unsigned long long>(poll_counters.polls_with_work.get()),
          static_cast<unsigned long long>(poll_counters.sleeps.get()));
  for (const auto& transport : transports_) {
    const std::string text = transport->statistics();
    if (!text.empty()) fprintf(stderr, "  %s\n", text.c_str());
  }
}

}  // namespace lintel
