// A simulated process, as the scheduler uses it: an application above a reliable transport, and the
// end of its cable.
#pragma once

#include <cstdint>
#include <memory>

#include "reliable/reliable_transport.h"
#include "simulation/record.h"
#include "simulation/simulated_link.h"

namespace lintel::simulation {

struct ProcessShape {
  LinkShape link;
  uint64_t memory_bytes = 32 << 20;
  uint64_t peer_timeout_ns = 10'000'000'000;
  uint32_t first_sequence = 1;
  NetworkSecurity security = NetworkSecurity::off;
  unsigned key_epoch_bits = 22;
  uint64_t first_counter = 1;
  uint32_t most_connections = 1 << 10;
  uint64_t poll_ns = 1'000;  // interval between polls while there is work
  unsigned messages_per_poll = 4;
};

struct OutgoingMessage {
  uint32_t bytes = 0;
  MessageKind kind = MessageKind::put;
  bool is_last = true;  // for kind data
  bool wants_answer = false;
};

class SimulatedProcess {
 public:
  virtual ~SimulatedProcess() = default;

  virtual void add(uint32_t to, const OutgoingMessage& message) = 0;
  // The application sends nothing more to this peer, which has ended for good.
  virtual void give_up(uint32_t peer) = 0;

  virtual void start() = 0;
  // `politely`: it closes its interface, and the peers are informed. Otherwise the process is
  // killed.
  virtual void end(bool politely) = 0;
  [[nodiscard]] bool is_running() const noexcept { return transport_ != nullptr; }

  // Polls once and sends what can be sent. Returns the latest time at which it must run again.
  virtual uint64_t run() = 0;
  // A frame arrives. Returns false if it was lost because there was no room.
  bool take(TravellingFrame frame) { return link_->queue(std::move(frame)); }
  void set_full(bool full) noexcept { link_->set_full(full); }
  // Sets the MTU of the link for the next start.
  void set_mtu(uint32_t mtu) noexcept { shape_.link.mtu = mtu; }
  // Sets the interval between polls while there is work.
  void set_poll_ns(uint64_t poll_ns) noexcept { shape_.poll_ns = poll_ns; }

  // Whether nothing remains to be sent and no answer is awaited, by the application and the
  // transport.
  [[nodiscard]] virtual bool is_done() = 0;
  // The reasons why is_done() is false.
  [[nodiscard]] virtual std::string describe_rest() { return {}; }
  // Called at the end: the application releases all objects, and the layers below must be empty.
  virtual void check_rest() {}
  [[nodiscard]] ReliableTransport& transport() noexcept { return *transport_; }
  // Includes transports that have been closed.
  [[nodiscard]] uint64_t retransmissions() const noexcept {
    return retransmissions_ + (is_running() ? uint64_t{transport_->counters().retransmissions} : 0);
  }
  [[nodiscard]] uint64_t most_frame_memory() const noexcept { return most_frame_memory_; }

 protected:
  SimulatedProcess(Network& network, Record& record, uint32_t number, const ProcessShape& shape)
      : network_(network), record_(record), number_(number), shape_(shape) {}

  // Makes a transport. It is used until close_transport(), which must be called before its
  // destruction.
  [[nodiscard]] std::unique_ptr<ReliableTransport> open_transport();
  void close_transport(bool politely) noexcept;
  void note_frame_memory() noexcept;

  Network& network_;
  Record& record_;
  const uint32_t number_;
  ProcessShape shape_;
  SimulatedLink* link_ = nullptr;
  ReliableTransport* transport_ = nullptr;

 private:
  uint64_t retransmissions_ = 0;
  uint64_t most_frame_memory_ = 0;
};

}  // namespace lintel::simulation
