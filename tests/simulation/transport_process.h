// A simulated process without the core: its application sends messages directly through the
// transport. It answers those that request it, and connects again after a failure of a peer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "simulation/simulated_process.h"

namespace lintel::simulation {

class TransportProcess final : public SimulatedProcess, public MessageSink {
 public:
  TransportProcess(Network& network, Record& record, uint32_t number, const ProcessShape& shape);
  ~TransportProcess() override;

  void add(uint32_t to, const OutgoingMessage& message) override;
  void give_up(uint32_t peer) override;
  void start() override;
  void end(bool politely) override;
  uint64_t run() override;
  [[nodiscard]] bool is_done() override;

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
    uint64_t stream_from = 0;  // the newest stream from which a message arrived
    uint64_t retry_ns = 0;
    uint64_t answers_awaited = 0;
  };

  bool send_waiting();
  SendStatus send(uint32_t to, Peer& peer, const OutgoingMessage& message);
  void look_after_peers();

  std::unique_ptr<ReliableTransport> owned_;
  std::map<uint32_t, Peer> peers_;
  std::set<uint32_t> with_waiting_;  // peers with waiting messages
  std::set<uint32_t> with_awaited_;
  bool armed_ = false;
  uint64_t next_check_ns_ = 0;
};

}  // namespace lintel::simulation
