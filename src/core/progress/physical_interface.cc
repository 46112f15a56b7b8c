// Opening and closing a physical interface, its peers and its pools. Set-up and connection path,
// except for the pools of operations and transfers.
#include "core/progress/physical_interface.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

#include "core/objects/network_interface.h"
#include "util/asymmetric_fence.h"
#include "util/clock.h"
#include "util/config.h"
#include "util/log.h"

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
      return PTL_NO_SPACE;
  }
  if (!opened.reason.empty())
    log_message(opened.degraded ? LogLevel::warn : LogLevel::info,
                "interface %u opens without a transport: %s", number, opened.reason.c_str());
  id_ = opened.id;
  transports_ = std::move(opened.transports);
  if (!peers_.open(transports_, in_process_sends_) || !operations_.open() || !transfers_.open() ||
      !answers_.open()) {
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
      done = !queues_.any() && all_delivered();
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
      transfers_.for_each([&](const Transfer& transfer) {
        under_way |= transfer.interface == &interface && transfer.in_flight != 0;
      });
      if (under_way) poll_once();
    });
  }
}

void PhysicalInterface::forget_logical(NetworkInterface& interface) noexcept {
  const PeerTable& peers = peers_.all();
  for (uint32_t i = 0; i < peers.size(); ++i) {
    Peer& peer = peers.at(i);
    {
      std::lock_guard guard(peer.send_lock);
      queues_.drop_all_of(peer, interface);
    }
    peer.counted_puts.end_if([&](const CountedPuts::Put& put) {
      const bool ends = interface.descriptors().owns(put.descriptor.descriptor);
      if (ends) peer.count_as_ended();
      return ends;
    });
  }
  operations_.for_each([&](Operation& operation) {
    if (operation.interface != &interface) return;
    operations_.release_copy(operation);
    operations_.end(operation);
  });
  for (uint32_t i = 0; i < peers.size(); ++i) operations_.return_ended(peers.at(i));
  transfers_.drop_all_of(interface);
}

uint64_t PhysicalInterface::sent_messages(MessageKind kind) const noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < peers_.all().size(); ++i)
    sum += peers_.all().at(i).sent.messages[static_cast<unsigned>(kind)].get();
  return sum;
}

uint64_t PhysicalInterface::sent_bytes(MessageKind kind) const noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < peers_.all().size(); ++i)
    sum += peers_.all().at(i).sent.bytes[static_cast<unsigned>(kind)].get();
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
          static_cast<unsigned long long>(queues_.queued.get()),
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
