// Opening and closing, and what one can see. Set-up path.
#include "reliable/reliable_transport.h"

#include <unistd.h>

#include <algorithm>

#include "util/crc32c.h"
#include "util/log.h"

namespace lintel {

namespace {
// In addition to the memory for frames, one part in so many of it is for messages of several frames.
constexpr uint64_t share_of_long_messages = 8;
// A sender whose window is full must hear from us in time.
constexpr uint64_t acks_per_window = 4;
}  // namespace

std::unique_ptr<ReliableTransport> ReliableTransport::open(std::unique_ptr<PacketLink> link,
                                                           const ReliableSettings& settings,
                                                           std::string& reason) {
  std::unique_ptr<ReliableTransport> transport(new ReliableTransport(std::move(link), settings));
  uint64_t random = 0;
  if (!fill_random(&random, sizeof random)) {
    reason = "the kernel gives no random numbers (getrandom), which connections need";
    return nullptr;
  }
  if (!transport->proof_.open(settings.job_key, reason)) return nullptr;
  if (!transport->open_pools()) {
    reason = "no address space for its buffers (ulimit -v?)";
    return nullptr;
  }
  return transport;
}

ReliableTransport::ReliableTransport(std::unique_ptr<PacketLink> link,
                                     const ReliableSettings& settings)
    : link_(std::move(link)),
      sends_from_anywhere_(link_->sends_from_anywhere()),
      acknowledged_at_once_bytes_(link_->receive_capacity_bytes() / acks_per_window),
      settings_(settings),
      capabilities_{link_->name(),
                    max_eager_bytes,
                    false,
                    false,
                    max_eager_bytes,
                    sends_from_anywhere_,
                    link_->receives_by_system_call(),
                    link_->descriptor() == PacketLink::no_descriptor ? spin_beside_pauses_ns : 0},
      own_id_(link_->id()),
      incarnation_(random_u64()) {}

bool ReliableTransport::open_pools() {
  const uint32_t frame = std::max(link_->mtu(), PacketLink::least_mtu);
  const uint64_t half = settings_.memory_bytes / 2;
  if (!send_pool_.open(frame, half) || !receive_pool_.open(frame, half) ||
      !reassembly_.open(sizeof(MessageHeader) + max_eager_bytes,
                        settings_.memory_bytes / share_of_long_messages) ||
      !connections_.open(settings_.most_connections))
    return false;
  link_->offer_memory(send_pool_.memory(), send_pool_.memory_bytes());
  return true;
}

// Peers learn that nobody is here any more; one that does not get the message finds out by asking.
ReliableTransport::~ReliableTransport() {
  watch_.stop();
  const uint64_t now = settings_.clock();
  for (const auto& [key, connection] : table_) {
    if (connection->state.load(std::memory_order_acquire) != ConnectionState::established) continue;
    const std::lock_guard guard(connection->lock);
    send_ack(*connection, FrameType::goodbye, now);
  }
  // Before the memory that it may still send from.
  link_.reset();
}

size_t ReliableTransport::connections() const {
  const std::lock_guard guard(mutex_);
  return table_.size();
}

ReliableCounters ReliableTransport::counters() const noexcept {
  const auto get = [](const Count& count) { return count.value.load(std::memory_order_relaxed); };
  ReliableCounters sum;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& [key, connection] : table_)
      sum.data_frames_sent += connection->data_frames_sent.load(std::memory_order_relaxed);
  }
  sum.retransmissions = get(counts_.retransmissions);
  sum.timeouts = get(counts_.timeouts);
  sum.datagrams_sent = get(counts_.datagrams_sent);
  sum.datagrams_received = get(counts_.datagrams_received);
  sum.acks_sent = get(counts_.acks_sent);
  sum.duplicates = get(counts_.duplicates);
  sum.early = get(counts_.early);
  sum.dropped_for_room = get(counts_.dropped_for_room);
  sum.damaged = get(counts_.damaged);
  sum.malformed = get(counts_.malformed);
  sum.strangers = get(counts_.strangers);
  sum.resets_received = get(counts_.resets_received);
  sum.handshakes_refused = get(counts_.handshakes_refused);
  sum.connections_opened = get(counts_.connections_opened);
  sum.connections_failed = get(counts_.connections_failed);
  return sum;
}

NetworkCounters ReliableTransport::network_counters() const noexcept {
  const ReliableCounters all = counters();
  return {all.retransmissions,
          all.damaged + all.malformed + all.strangers + link_->counters().frames_malformed,
          all.datagrams_sent, all.handshakes_refused};
}

std::string ReliableTransport::statistics() const {
  const ReliableCounters all = counters();
  const LinkCounters link = link_->counters();
  const auto item = [](const char* name, uint64_t value) {
    return std::string(", ") + name + " " + std::to_string(value);
  };
  return std::string(link_->name()) + ": frames sent " + std::to_string(link.frames_sent) +
         item("received", link.frames_received) + item("repeated", all.retransmissions) +
         item("timeouts", all.timeouts) + item("acknowledgements alone", all.acks_sent) +
         item("duplicates", all.duplicates) + item("early", all.early) +
         item("without room", all.dropped_for_room) + item("damaged", all.damaged) +
         item("malformed", all.malformed) + item("of no connection", all.strangers) +
         item("unreliable sent", all.datagrams_sent) + item("received", all.datagrams_received) +
         item("link full", link.send_full) + item("connections", all.connections_opened) +
         item("failed", all.connections_failed) + item("refused", all.handshakes_refused);
}

std::string ReliableTransport::describe() const {
  return link_->describe() + ", " + crc32c_method() + "; " + proof_.describe();
}

}  // namespace lintel
