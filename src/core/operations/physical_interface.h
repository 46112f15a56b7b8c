// A physical interface: one address, its transports and peers, and up to four logical interfaces
// over it (spec 3.6). Puts together the objects that send and receive its messages.
// Message path, except where a function says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/objects/network_interface.h"
#include "core/operations/initiator.h"
#include "core/operations/peer_directory.h"
#include "core/operations/refused_requests.h"
#include "core/operations/send_queues.h"
#include "core/operations/staging.h"
#include "core/operations/target.h"
#include "core/progress/passing_policy.h"
#include "core/progress/progress_thread.h"
#include "core/progress/wait.h"
#include "transport/opened_transports.h"

namespace lintel {

class PhysicalInterface final : public MessageSink, private PolledWork, private RoomListener {
 public:
  // Set-up path. `pid` may be PTL_PID_ANY. Returns a Portals return code; on PTL_OK the interface
  // is reachable by others.
  [[nodiscard]] int open(uint32_t number, uint32_t pid, OpenTransports open_transports);
  // Set-up path; no logical interface is left. Sends what is queued, for a bounded time.
  void close() noexcept;
  ~PhysicalInterface();

  [[nodiscard]] uint32_t number() const noexcept { return number_; }
  [[nodiscard]] ProcessId id() const noexcept { return id_; }
  [[nodiscard]] uint32_t uid() const noexcept { return uid_; }

  // Set-up path. Makes the logical interface visible to arriving messages; or hides it and drops
  // its operations without events. Returns when no message is being delivered to the former
  // interface.
  void set_logical(unsigned slot, NetworkInterface* interface) noexcept;
  [[nodiscard]] NetworkInterface* logical(unsigned slot) const noexcept {
    return logical_[slot].load(std::memory_order_acquire);
  }

  [[nodiscard]] PeerDirectory::Transports transports() const noexcept { return transports_; }
  [[nodiscard]] Poller& poller() noexcept { return poller_; }
  [[nodiscard]] const Poller& poller() const noexcept { return poller_; }
  [[nodiscard]] PassingPolls& passing_polls() noexcept { return passing_polls_; }
  [[nodiscard]] PeerDirectory& peers() noexcept { return peers_; }
  [[nodiscard]] const PeerDirectory& peers() const noexcept { return peers_; }
  [[nodiscard]] SendQueues& queues() noexcept { return queues_; }
  [[nodiscard]] const SendQueues& queues() const noexcept { return queues_; }
  [[nodiscard]] Initiator& initiator() noexcept { return initiator_; }
  [[nodiscard]] Target& target() noexcept { return target_; }
  [[nodiscard]] const Target& target() const noexcept { return target_; }
  [[nodiscard]] const Staging& staging() const noexcept { return staging_; }

  // See lintel::wait_until().
  template <typename Ready>
  bool wait_until(Ready&& ready, uint64_t deadline_ns) noexcept {
    return lintel::wait_until(poller_, wait_policy_, std::forward<Ready>(ready), deadline_ns);
  }

  // --- MessageSink
  void* on_new_link(Link& link) noexcept override LINTEL_REQUIRES(polling);
  void on_messages(Link& link, const InboundMessage* messages, unsigned count) noexcept override
      LINTEL_REQUIRES(polling);
  [[nodiscard]] bool on_put(Link& link, const MessageCell& cell, uint64_t first_word,
                            uint32_t length) noexcept override LINTEL_REQUIRES(polling);
  unsigned on_acknowledgement(Link& link, uint32_t cookie) noexcept override
      LINTEL_REQUIRES(polling);
  void on_acknowledgements(Link& link, const uint32_t* cookies, unsigned count) noexcept override
      LINTEL_REQUIRES(polling);
  void on_peer_failed(Link& link) noexcept override LINTEL_REQUIRES(polling);
  void on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept override
      LINTEL_REQUIRES(polling);
  bool may_access(Link& link, const RemoteMemory& memory, bool write) noexcept override
      LINTEL_REQUIRES(polling);
  bool exclude_senders(Link& link, void (*action)(Link&, void*), void* argument) noexcept override
      LINTEL_REQUIRES(polling);

  TrafficCounters received;
  SharedCounter peers_failed;
  RefusedRequests refused_requests;

 private:
  void room_appeared() noexcept override;
  [[nodiscard]] bool prepare_to_hold() noexcept override { return target_.held().open(); }
  // --- PolledWork
  unsigned advance() noexcept override LINTEL_REQUIRES(polling);
  [[nodiscard]] bool is_ready() const noexcept override LINTEL_REQUIRES(polling);
  [[nodiscard]] bool sends_wait() const noexcept override LINTEL_REQUIRES(polling) {
    return queues_.any();
  }
  [[nodiscard]] bool has_peers() const noexcept override LINTEL_REQUIRES(polling) {
    return peers_.has_others();
  }
  [[nodiscard]] bool awaits_peers() const noexcept override LINTEL_REQUIRES(polling) {
    return peers_.awaits_any();
  }
  void check_peers() noexcept override LINTEL_REQUIRES(polling);
  void wake_awaited_peers() noexcept override LINTEL_REQUIRES(polling);

  void take_message(Peer& peer, const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
  const InboundMessage* take_in_general(Peer& peer, const InboundMessage* message,
                                        const InboundMessage* end) noexcept
      LINTEL_REQUIRES(polling);
  void take_one_in_general(Peer& peer, const InboundMessage& message) noexcept
      LINTEL_REQUIRES(polling);
  [[nodiscard]] bool take_plain_put(Peer& peer, const InboundMessage& message) noexcept
      LINTEL_REQUIRES(polling);
  void take_from_other_link(Link& link, const InboundMessage* messages, unsigned count) noexcept
      LINTEL_REQUIRES(polling);
  void flush_queue(Peer& peer) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool send_queued(Peer& peer, QueuedSend& item) noexcept
      LINTEL_REQUIRES(peer.send_lock) LINTEL_REQUIRES(polling);
  void fail_peer(Peer& peer, const Link::Failure& failure) noexcept LINTEL_REQUIRES(polling);
  void fail_queued(Peer& peer, QueuedSend* queued) noexcept LINTEL_REQUIRES(polling);
  void tell_of_freed_memory() noexcept LINTEL_REQUIRES(polling);
  void forget_freed_memory(Peer& peer, const MessageHeader& header) noexcept
      LINTEL_REQUIRES(polling);
  void set_up_waiting();
  [[nodiscard]] bool all_delivered() noexcept LINTEL_REQUIRES(polling);

  uint32_t number_ = 0;
  ProcessId id_{};
  uint32_t uid_ = 0;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<OpenedTransports::Unused> unused_;
  std::atomic<NetworkInterface*> logical_[logical_interfaces] = {};
  Doorbell private_doorbell_;
  Poller poller_{*this, *this};
  PassingPolls passing_polls_{poller_};
  WaitPolicy wait_policy_{processor_load()};
  ProgressThread progress_thread_;
  PeerDirectory peers_;
  SendQueues queues_{poller_.work_due()};
  ScratchPool scratch_;
  Staging staging_{poller_.work_due()};
  Target target_{queues_, scratch_, staging_, refused_requests, poller_.work_due()};
  Initiator initiator_{peers_,   queues_,  poller_,           wait_policy_,
                       scratch_, staging_, target_.answers(), refused_requests};
};

}  // namespace lintel
