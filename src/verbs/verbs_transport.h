// Messages and remote memory access over a port of an RDMA device. A peer is met over datagrams (UD
// and the reliability layer), which prove the job secret; a queue pair (RC) is made as soon as
// there is something to send, as long as there are not too many. Beyond the cap, and while a queue
// pair is out of order, messages go on as datagrams: no failure of a queue pair loses or reorders
// any. With several ports, long accesses to memory go by all of them (StripedAccesses).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "registration/registration.h"
#include "transport/transport.h"
#include "verbs/connected_port.h"
#include "verbs/striped_accesses.h"
#include "verbs/verbs_link.h"
#include "verbs/verbs_module.h"

namespace lintel {

class VerbsTransport final : public Transport, private MessageSink {
 public:
  // Set-up path. `datagrams` uses `devices` too and goes before them. Messages go by the first one.
  // nullptr: `reason` says why not.
  [[nodiscard]] static std::unique_ptr<VerbsTransport> open(const VerbsDevices& devices,
                                                            std::unique_ptr<Transport> datagrams,
                                                            const VerbsSettings& settings,
                                                            std::string& reason);

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] uint64_t incarnation(Link& link) const noexcept override;
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  void cork(Link& link) noexcept override { lintel::cork(static_cast<VerbsLink&>(link)); }
  void uncork(Link& link) noexcept override { lintel::uncork(static_cast<VerbsLink&>(link)); }
  [[nodiscard]] Exposure expose(Link& link, const Piece* pieces, unsigned count, bool write,
                                uint32_t, RemoteMemory* out) noexcept override {
    auto& to = static_cast<VerbsLink&>(link);
    const Exposure made = first_.exposures.expose(to, pieces, count, write, out);
    if (striped_ != nullptr && made.count != 0)
      striped_->expose(to, pieces, count, write, out, made.number);
    return made;
  }
  void withdraw(Link& link, uint32_t exposure, bool peer_may_access) noexcept override {
    auto& to = static_cast<VerbsLink&>(link);
    if (striped_ != nullptr) striped_->withdraw(to, exposure, peer_may_access);
    first_.exposures.withdraw(to, exposure, peer_may_access);
  }
  void end_access(Link& link, const RemoteMemory* remote, unsigned count) noexcept override;
  [[nodiscard]] RemoteResult remote_access(Link& link, bool write, const Piece* local,
                                           unsigned local_count, const RemoteMemory* remote,
                                           unsigned remote_count,
                                           uint32_t token) noexcept override {
    auto& to = static_cast<VerbsLink&>(link);
    return striped_ != nullptr && striped_->suits(to, local, local_count)
               ? striped_->start(to, local, local_count, remote, remote_count, write, token)
               : first_.accesses.start(to, local, local_count, remote, remote_count, write, token);
  }
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override LINTEL_REQUIRES(polling);
  void set_doorbell(Doorbell& doorbell) noexcept override {
    first_.requests.set_doorbell(doorbell);
    if (striped_ != nullptr) striped_->rails().set_doorbell(doorbell);
    datagrams_->set_doorbell(doorbell);
  }
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override LINTEL_REQUIRES(polling);
  void disarm() noexcept override LINTEL_REQUIRES(polling) {
    empty_datagram_polls_ = 0;
    datagrams_->disarm();
  }
  [[nodiscard]] int64_t sleep_limit_ns() noexcept override;
  [[nodiscard]] bool all_delivered() noexcept override LINTEL_REQUIRES(polling);
  void check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept override
      LINTEL_REQUIRES(polling);
  [[nodiscard]] NetworkCounters network_counters() const noexcept override {
    return datagrams_->network_counters();
  }
  [[nodiscard]] std::vector<Statistic> statistics() const override;
  void write_state(StateWriter& out) const noexcept override { datagrams_->write_state(out); }
  [[nodiscard]] std::string device() const override { return datagrams_->device(); }
  [[nodiscard]] std::string describe() const override;

 private:
  VerbsTransport(const VerbsDevices& devices, std::unique_ptr<Transport> datagrams,
                 const VerbsSettings& settings);
  bool open_queues(std::string& reason);
  void follow_path(VerbsLink& link) const noexcept;
  unsigned poll_further(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling);
  void stop_idle() noexcept;

  // Sink of the layer below.
  void* on_new_link(Link& datagrams) noexcept override LINTEL_REQUIRES(polling);
  void on_messages(Link& datagrams, const InboundMessage* messages,
                   unsigned count) noexcept override LINTEL_REQUIRES(polling);
  void on_peer_failed(Link& datagrams) noexcept override LINTEL_REQUIRES(polling);
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return false; }

  // Destroyed in the opposite order.
  Capabilities capabilities_;
  std::unique_ptr<Transport> datagrams_;
  VerbsLinks links_;
  ConnectedPort first_;
  std::unique_ptr<StripedAccesses> striped_;  // nullptr: there is one port, or nothing to do

  // --- the poller
  MessageSink* sink_ = nullptr;        // valid during a poll
  uint32_t empty_datagram_polls_ = 0;  // number of empty polls in succession
  uint32_t polls_ = 0;
};

}  // namespace lintel
