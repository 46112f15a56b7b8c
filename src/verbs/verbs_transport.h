// Messages and remote memory access over a port of an RDMA device. A peer is met over datagrams (UD
// and the reliability layer), which prove the job secret; a queue pair (RC) is made as soon as
// there is something to send, as long as there are not too many. Beyond the cap, and while a queue
// pair is out of order, messages go on as datagrams: no failure of a queue pair loses or reorders
// any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "registration/registration.h"
#include "transport/transport.h"
#include "verbs/channel_change.h"
#include "verbs/verbs_link.h"
#include "verbs/verbs_module.h"

namespace lintel {

class VerbsTransport final : public Transport, private MessageSink {
 public:
  // Set-up path. `datagrams` uses `device` too and goes before it. nullptr: `reason` says why not.
  [[nodiscard]] static std::unique_ptr<VerbsTransport> open(std::shared_ptr<VerbsDevice> device,
                                                            std::unique_ptr<Transport> datagrams,
                                                            const ConnectedSettings& settings,
                                                            std::string& reason);
  ~VerbsTransport() override;

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] uint64_t incarnation(Link& link) const noexcept override;
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  void cork(Link& link) noexcept override { lintel::cork(static_cast<VerbsLink&>(link)); }
  void uncork(Link& link) noexcept override { lintel::uncork(static_cast<VerbsLink&>(link)); }
  [[nodiscard]] Exposure expose(Link& link, const Piece* pieces, unsigned count, bool write,
                                uint32_t, RemoteMemory* out) noexcept override {
    return exposures_.expose(static_cast<VerbsLink&>(link), pieces, count, write, out);
  }
  void withdraw(Link& link, uint32_t exposure, bool peer_may_access) noexcept override {
    exposures_.withdraw(static_cast<VerbsLink&>(link), exposure, peer_may_access);
  }
  void end_access(Link& link, const RemoteMemory* remote, unsigned count) noexcept override;
  [[nodiscard]] RemoteResult remote_access(Link& link, bool write, const Piece* local,
                                           unsigned local_count, const RemoteMemory* remote,
                                           unsigned remote_count,
                                           uint32_t token) noexcept override {
    return accesses_.start(static_cast<VerbsLink&>(link), local, local_count, remote, remote_count,
                           write, token);
  }
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override LINTEL_REQUIRES(polling);
  void set_doorbell(Doorbell& doorbell) noexcept override {
    requests_.set_doorbell(doorbell);
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
  VerbsTransport(std::shared_ptr<VerbsDevice> device, std::unique_ptr<Transport> datagrams,
                 const ConnectedSettings& settings);
  bool open_queues(std::string& reason);
  void follow_path(VerbsLink& link) const noexcept;

  // Sink of the layer below.
  void* on_new_link(Link& datagrams) noexcept override LINTEL_REQUIRES(polling);
  void on_messages(Link& datagrams, const InboundMessage* messages,
                   unsigned count) noexcept override LINTEL_REQUIRES(polling);
  void on_peer_failed(Link& datagrams) noexcept override LINTEL_REQUIRES(polling);
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return false; }

  // Destroyed in the opposite order.
  std::shared_ptr<VerbsDevice> device_;
  ConnectedSettings settings_;
  Capabilities capabilities_;
  std::unique_ptr<Transport> datagrams_;
  DeviceMemory memory_;
  VerbsLinks links_;
  ChannelRequests requests_;
  UnfinishedLinks unfinished_;
  MessageSender sender_;
  RemoteAccesses accesses_;
  Exposures exposures_;
  ReceiveBuffers receives_;
  CompletionQueue queue_;
  Channels channels_;
  Arrivals arrivals_;
  Completions completions_;
  ChannelChange change_;

  // --- the poller
  MessageSink* sink_ = nullptr;        // valid during a poll
  uint32_t empty_datagram_polls_ = 0;  // number of empty polls in succession
  uint32_t polls_ = 0;
};

}  // namespace lintel
