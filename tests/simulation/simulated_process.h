// A simulated process, as the scheduler sees it: something that runs over a reliable transport, and
// the end of the cable.
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
  uint32_t most_connections = 1 << 10;
  uint64_t poll_ns = 1'000;  // from one poll to the next while there is something to do
  unsigned messages_per_poll = 4;
};

struct OutgoingMessage {
  uint32_t bytes = 0;
  MessageKind kind = MessageKind::put;
  bool is_last = true;  // kind data
  bool wants_answer = false;
};

class SimulatedProcess {
 public:
  virtual ~SimulatedProcess() = default;

  virtual void add(uint32_t to, const OutgoingMessage& message) = 0;
  // Its application sends no more to a process that has ended for good.
  virtual void give_up(uint32_t peer) = 0;

  virtual void start() = 0;
  // `politely`: it closes its interface and its peers are told. Otherwise the process is killed.
  virtual void end(bool politely) = 0;
  [[nodiscard]] bool is_running() const noexcept { return transport_ != nullptr; }

  // Polls once and sends what can be sent. Returns when it has to run again at the latest.
  virtual uint64_t run() = 0;
  // A frame came. False: it was lost for lack of room.
  bool take(TravellingFrame frame) { return link_->queue(std::move(frame)); }
  void set_full(bool full) noexcept { link_->set_full(full); }
  // Of its link, from its next start on.
  void set_mtu(uint32_t mtu) noexcept { shape_.link.mtu = mtu; }
  // From one poll to the next while there is something to do.
  void set_poll_ns(uint64_t poll_ns) noexcept { shape_.poll_ns = poll_ns; }

  // Whether its application has nothing to send and waits for nothing, nor its transport.
  [[nodiscard]] virtual bool is_done() = 0;
  // Why it is not done.
  [[nodiscard]] virtual std::string describe_rest() { return {}; }
  // At the end: its application has released everything, and nothing is left below.
  virtual void check_rest() {}
  [[nodiscard]] ReliableTransport& transport() noexcept { return *transport_; }
  // Also of transports that have ended.
  [[nodiscard]] uint64_t retransmissions() const noexcept {
    return retransmissions_ + (is_running() ? uint64_t{transport_->counters().retransmissions} : 0);
  }
  [[nodiscard]] uint64_t most_frame_memory() const noexcept { return most_frame_memory_; }

 protected:
  SimulatedProcess(Network& network, Record& record, uint32_t number, const ProcessShape& shape)
      : network_(network), record_(record), number_(number), shape_(shape) {}

  // The next one, until close_transport() is called, which is before it is destroyed.
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
