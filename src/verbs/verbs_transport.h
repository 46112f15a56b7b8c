// Messages and remote memory access over a port of an RDMA device. A peer is met over datagrams (UD and
// the reliability layer), which prove the job secret; a queue pair (RC) is made as soon as there is
// something to send, as long as there are not too many. Beyond the cap, and while a queue pair is out
// of order, messages go on as datagrams: no failure of a queue pair loses or reorders any.
//
// The functions are in files by step: connect (links), channel_agreement (from datagrams to a queue pair),
// connected_send, completions, stop_channel (and back), remote_access, exposure, verbs_sleep.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "registration/registration.h"
#include "reliable/reliable_transport.h"
#include "transport/transport.h"
#include "verbs/agreement.h"
#include "verbs/channel.h"
#include "verbs/channel_requests.h"
#include "verbs/device.h"
#include "verbs/device_memory.h"
#include "verbs/exposures.h"
#include "verbs/message_sender.h"
#include "verbs/receive_buffers.h"
#include "verbs/remote_accesses.h"

namespace lintel {

struct ConnectedSettings {
  uint32_t most_queue_pairs = 1024;
  uint32_t receive_buffers = 512;
  uint32_t eager_bytes = 4096;        // payload of one message
  uint64_t idle_ns = 10'000'000'000;  // then a queue pair is given up
  RegistrationCache* registrations = nullptr;
};

class VerbsTransport final : public Transport, private MessageSink {
 public:
  // Set-up path. `datagrams` uses `device` too and goes before it. nullptr: `reason` says why not.
  [[nodiscard]] static std::unique_ptr<VerbsTransport> open(
      std::shared_ptr<VerbsDevice> device, std::unique_ptr<ReliableTransport> datagrams,
      const ConnectedSettings& settings, std::string& reason);
  ~VerbsTransport() override;

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  void hold(Link& link) noexcept override;
  void let_go(Link& link) noexcept override;
  [[nodiscard]] Exposure expose(Link& link, const Piece* pieces, unsigned count, bool write,
                                uint32_t, RemoteMemory* out) noexcept override {
    return exposures_.expose(static_cast<VerbsLink&>(link), pieces, count, write, out);
  }
  void conceal(Link& link, uint32_t exposure, bool peer_may_access) noexcept override {
    exposures_.conceal(static_cast<VerbsLink&>(link), exposure, peer_may_access);
  }
  void forgo(Link& link, const RemoteMemory* remote, unsigned count) noexcept override;
  [[nodiscard]] RemoteResult remote_read(Link& link, const Piece* local, unsigned local_count,
                                         const RemoteMemory* remote, unsigned remote_count,
                                         uint32_t token) noexcept override {
    return accesses_.start(static_cast<VerbsLink&>(link), local, local_count, remote, remote_count,
                           false, token);
  }
  [[nodiscard]] RemoteResult remote_write(Link& link, const Piece* local, unsigned local_count,
                                          const RemoteMemory* remote, unsigned remote_count,
                                          uint32_t token) noexcept override {
    return accesses_.start(static_cast<VerbsLink&>(link), local, local_count, remote, remote_count,
                           true, token);
  }
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override;
  [[nodiscard]] Doorbell* doorbell() noexcept override { return nullptr; }
  void set_doorbell(Doorbell& doorbell) noexcept override {
    requests_.set_doorbell(doorbell);
    datagrams_->set_doorbell(doorbell);
  }
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override;
  void disarm() noexcept override {
    looks_in_vain_ = 0;
    datagrams_->disarm();
  }
  [[nodiscard]] int64_t sleep_limit_ns() noexcept override;
  [[nodiscard]] bool all_delivered() noexcept override;
  void check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept override;
  [[nodiscard]] NetworkCounters network_counters() const noexcept override {
    return datagrams_->network_counters();
  }
  [[nodiscard]] std::string statistics() const override;
  [[nodiscard]] std::string describe() const override;

 private:
  static constexpr unsigned completion_burst = 32;
  static constexpr uint64_t receive_tag = uint64_t{1} << 63;

  // Any thread; exact when nothing is going on.
  struct Counts {
    std::atomic<uint64_t> received{0}, queue_pairs{0}, stopped{0}, declined{0}, refused{0};
  };
  static void add(std::atomic<uint64_t>& count, uint64_t n = 1) noexcept {
    count.fetch_add(n, std::memory_order_relaxed);
  }

  VerbsTransport(std::shared_ptr<VerbsDevice> device, std::unique_ptr<ReliableTransport> datagrams,
                 const ConnectedSettings& settings);
  bool open_queues(std::string& reason);

  // --- links (connect.cc). Sink of the layer below.
  VerbsLink* link_for(ProcessId peer);
  VerbsLink& link_of(Link& datagrams) noexcept;
  void* on_new_link(Link& datagrams) noexcept override;
  void on_messages(Link& datagrams, const InboundMessage* messages,
                   unsigned count) noexcept override;
  void on_peer_failed(Link& datagrams) noexcept override;
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return false; }

  // --- channel_agreement.cc; the poller
  void grant_wishes() noexcept;
  Channel* make_channel(VerbsLink& link) noexcept;
  bool have_room_for_channel() noexcept;
  bool give_up_idle_channel() noexcept;
  void handle_agreement(VerbsLink& link, const InboundMessage& message) noexcept;
  void handle_offer(VerbsLink& link, const AgreementBody& body) noexcept;
  void begin_change(VerbsLink& link) noexcept;
  void owe(VerbsLink& link, uint8_t what) noexcept;
  bool pay(VerbsLink& link, uint8_t what, Agreement kind) noexcept;
  bool pay_all(VerbsLink& link) noexcept;
  void list(VerbsLink& link) noexcept;
  bool serve(VerbsLink& link) noexcept;  // true: nothing left to do
  void serve_listed() noexcept;

  // --- completions.cc; the poller
  unsigned poll_completions(unsigned budget) noexcept;
  struct Place;
  void take_receive(const ibv_wc& completion) noexcept;
  void take_message(Place& place, const ibv_wc& completion) noexcept;
  void keep(Channel& channel, const ibv_wc& completion) noexcept;
  void hand_up_kept(Channel& channel) noexcept;
  Place* place_of(const ibv_wc& completion) noexcept;
  void deliver() noexcept;
  void take_send(const ibv_wc& completion) noexcept;
  void retire(VerbsLink& link, bool success) noexcept;  // lock of the link held
  void report_ended() noexcept;
  bool is_plausible(const MessageHeader& header, uint32_t payload_bytes,
                    bool invalidates) const noexcept;

  // --- stop_channel.cc; the poller
  void stop_channel(VerbsLink& link, const char* why) noexcept;
  bool continue_stopping(VerbsLink& link) noexcept;
  void stop_receiving(Channel& channel) noexcept;
  void release_queue_pair(VerbsLink& link, Channel& channel, RemoteStatus status) noexcept;
  void forget_channel(VerbsLink& link) noexcept;
  void handle_resume(VerbsLink& link, const AgreementBody& body) noexcept;
  void fail_link(VerbsLink& link) noexcept;

  // --- verbs_sleep.cc
  void give_up_idle() noexcept;

  std::shared_ptr<VerbsDevice> device_;
  ConnectedSettings settings_;
  Capabilities capabilities_;
  DeviceMemory memory_;
  Counts counts_;

  ibv_cq* completions_ = nullptr;
  ReceiveBuffers receives_;
  ChannelRequests requests_;
  MessageSender sender_;
  RemoteAccesses accesses_;
  Exposures exposures_;

  std::unique_ptr<ReliableTransport> datagrams_;

  mutable std::mutex links_mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<VerbsLink>> links_;

  // --- the poller's
  MessageSink* sink_ = nullptr;  // while polling
  struct Place {
    std::unique_ptr<Channel> channel;
    VerbsLink* link = nullptr;
  };
  std::vector<Place> channels_;
  uint32_t channel_count_ = 0;
  bool no_more_channels_ = false;
  uint32_t completions_for_ = 0;  // channels that the completion queue has room for
  std::vector<VerbsLink*> listed_;
  // Messages that are kept for their turn, by receive buffer.
  struct KeptMessage {
    ibv_wc completion;
    uint32_t next;
  };
  std::vector<KeptMessage> kept_;
  struct Batch {
    VerbsLink* link = nullptr;
    unsigned count = 0;
    InboundMessage messages[completion_burst];
    uint32_t buffers[completion_burst];
  } batch_;
  // Taken from the queue when the poller was about to sleep.
  ibv_wc early_[completion_burst];
  unsigned early_count_ = 0;
  uint64_t next_idle_look_ns_ = 0;
  uint32_t looks_in_vain_ = 0;  // for datagrams
  uint32_t polls_ = 0;
};

}  // namespace lintel
