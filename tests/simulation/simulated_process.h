// A simulated process: a reliable transport over a simulated link, and an application that sends
// messages through it, answers those that ask for it, and connects again when a peer has failed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

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

class SimulatedProcess final : public MessageSink {
 public:
  SimulatedProcess(Network& network, Record& record, uint32_t number, const ProcessShape& shape);
  ~SimulatedProcess();

  void add(uint32_t to, const OutgoingMessage& message);
  // Its application sends no more to a process that has ended for good.
  void give_up(uint32_t peer);

  void start();
  // `politely`: it closes its interface and its peers are told. Otherwise the process is killed.
  void end(bool politely);
  [[nodiscard]] bool is_running() const noexcept { return transport_ != nullptr; }

  // Polls once and sends what can be sent. Returns when it has to run again at the latest.
  uint64_t run();
  // A frame came. False: it was lost for lack of room.
  bool take(TravellingFrame frame) { return link_->queue(std::move(frame)); }
  void set_full(bool full) noexcept { link_->set_full(full); }
  // From one poll to the next while there is something to do.
  void set_poll_ns(uint64_t poll_ns) noexcept { shape_.poll_ns = poll_ns; }

  // Whether its application has nothing to send and waits for nothing, nor its transport.
  [[nodiscard]] bool is_done();
  [[nodiscard]] ReliableTransport& transport() noexcept { return *transport_; }
  // Also of transports that have ended.
  [[nodiscard]] uint64_t retransmissions() const noexcept;
  [[nodiscard]] uint64_t most_frame_memory() const noexcept { return most_frame_memory_; }

  void* on_new_link(Link& link) noexcept override;
  void on_messages(Link& link, const InboundMessage* messages, unsigned count) noexcept override;
  void on_peer_failed(Link& link) noexcept override;
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return true; }

 private:
  struct Peer {
    std::deque<OutgoingMessage> waiting;
    Link* link = nullptr;
    uint64_t stream = 0;
    uint64_t stream_from = 0;  // the newest stream of which a message came
    uint64_t retry_ns = 0;
    uint64_t answers_awaited = 0;
  };

  bool send_waiting();
  SendStatus send(uint32_t to, Peer& peer, const OutgoingMessage& message);
  void look_after_peers();

  Network& network_;
  Record& record_;
  const uint32_t number_;
  ProcessShape shape_;
  SimulatedLink* link_ = nullptr;
  std::unique_ptr<ReliableTransport> transport_;
  std::map<uint32_t, Peer> peers_;
  std::set<uint32_t> with_waiting_;  // peers
  std::set<uint32_t> with_awaited_;
  bool armed_ = false;
  uint64_t next_check_ns_ = 0;
  uint64_t retransmissions_ = 0;
  uint64_t most_frame_memory_ = 0;
};

}  // namespace lintel::simulation
