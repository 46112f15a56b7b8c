// PacketLink over an unreliable datagram queue pair. ud_open.cc, ud_send.cc, ud_receive.cc, ud_repair.cc;
// who is where is the business of Resolver and UdHosts, memory that of UdMemory.
//
// A datagram carries one frame and, as its immediate data, the Q_Key of its sender, so that it can be
// answered before anything else is known of the sender.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "transport/packet_link.h"
#include "util/spin_lock.h"
#include "verbs/async_events.h"
#include "verbs/device.h"
#include "verbs/registered_buffer.h"
#include "verbs/resolver.h"
#include "verbs/ud_hosts.h"
#include "verbs/ud_memory.h"

namespace lintel {

struct UdSettings {
  ProcessId id;  // of this process; its nid is an address of this node
  uint32_t receive_buffers = 512;
  uint64_t lookup_timeout_ns = 10'000'000'000;
};

class UdLink final : public PacketLink, private Resolver::Client, private AsyncEventSink {
 public:
  // Set-up path. `reason` explains what is not `opened`.
  [[nodiscard]] static OpenStatus open(std::shared_ptr<VerbsDevice> device,
                                       const UdSettings& settings, std::unique_ptr<UdLink>& result,
                                       std::string& reason);
  ~UdLink() override;

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override;
  // Which process somebody is, nobody can tell from an address: the job key does.
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override;
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override;
  bool offer_memory(std::byte* start, size_t bytes) noexcept override;
  [[nodiscard]] bool arm() noexcept override;
  [[nodiscard]] bool is_gone(ProcessId peer, const LinkAddress& address) noexcept override;
  [[nodiscard]] LinkCounters counters() const noexcept override { return counters_.now(); }
  [[nodiscard]] std::string describe() const override;

  [[nodiscard]] uint32_t queue_pair_number() const noexcept { return queue_pair_->qp_num; }
  [[nodiscard]] uint64_t repairs() const noexcept {
    return repairs_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t global_route_bytes = 40;  // in front of every datagram that arrives
  static constexpr unsigned send_depth = 256;         // work requests that wait to be sent
  static constexpr unsigned signal_every = 64;        // of them
  static constexpr unsigned most_elements = 2;        // scatter/gather elements of one
  static constexpr unsigned repost_batch = 32;
  static constexpr unsigned completion_batch = 16;
  static constexpr unsigned idle_receives_between_looks = 64;
  static constexpr uint32_t wanted_inline_bytes =
      188;  // four units of 64 bytes in the queue of mlx5
  static constexpr uint64_t longest_flush_ns = 100'000'000;
  static constexpr uint64_t between_repairs_ns = 10'000'000;

  // LinkAddress in our form.
  struct Address {
    uint32_t queue_pair;
    uint32_t q_key;
    uint32_t host;  // its number in hosts_
    uint32_t unused[5];
  };
  static_assert(sizeof(Address) == sizeof(LinkAddress));
  static LinkAddress pack(const Address& address) noexcept;
  static Address unpack(const LinkAddress& address) noexcept;

  UdLink(std::shared_ptr<VerbsDevice> device, const UdSettings& settings);

  // ud_open.cc
  bool open_queues(std::string& reason);
  bool open_buffers(std::string& reason);
  bool start_queue_pair(std::string& reason) noexcept;
  bool make_route(const UdDestination& destination, Route& route, std::string& reason) override;
  void work() noexcept override;
  [[nodiscard]] int event_descriptor() const noexcept override;
  void handle_events() noexcept override;
  void on_async_event(const ibv_async_event& event) noexcept override;

  // ud_send.cc; send_lock_ held
  unsigned send_burst(const OutboundFrame* frames, unsigned count) noexcept;
  bool prepare(const OutboundFrame& frame, ibv_send_wr& request, ibv_sge* elements,
               bool& ask) noexcept;
  bool refer(const Piece& piece, ibv_send_wr& request, ibv_sge* elements, bool& ask) noexcept;
  unsigned post(unsigned count) noexcept;
  void reap_sends() noexcept;
  [[nodiscard]] unsigned free_slots() const noexcept {
    return send_depth - static_cast<unsigned>(posted_ - completed_);
  }
  [[nodiscard]] std::byte* send_slot(uint64_t number) const noexcept {
    return send_buffer_.data() + number % send_depth * properties_.mtu;
  }

  // ud_receive.cc; the poller
  unsigned take(const ibv_wc* completions, unsigned count, InboundFrame* frames) noexcept;
  bool source_of(const ibv_wc& completion, const std::byte* buffer, LinkAddress& from) noexcept;
  void repost() noexcept;
  void look_at_sends() noexcept;
  [[nodiscard]] std::byte* receive_slot(uint32_t index) const noexcept {
    return receive_buffer_.data() + size_t{index} * receive_slot_bytes_;
  }

  // ud_repair.cc; the poller
  void repair() noexcept;

  const std::shared_ptr<VerbsDevice> device_;
  const UdSettings settings_;
  uint32_t q_key_ = 0;

  // In the order in which they are made; the last is destroyed first.
  UdHosts hosts_;
  UdMemory offered_;
  RegisteredBuffer send_buffer_;
  RegisteredBuffer receive_buffer_;
  ibv_cq* send_queue_ = nullptr;
  ibv_cq* receive_queue_ = nullptr;
  ibv_qp* queue_pair_ = nullptr;
  Resolver resolver_;

  // Set when a completion tells that the queue pair does not work any more.
  std::atomic<bool> broken_{false};
  std::atomic<uint64_t> repairs_{0};

  alignas(64) SpinLock send_lock_;  // everything up to the poller's
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t last_signalled_ = 0;
  uint32_t inline_bytes_ = 0;
  bool sending_stopped_ = false;  // while the queue pair is repaired
  std::array<ibv_send_wr, largest_burst> requests_{};
  std::array<std::array<ibv_sge, most_elements>, largest_burst> elements_{};

  // The poller's.
  alignas(64) uint32_t receive_slots_ = 0;
  uint32_t receive_slot_bytes_ = 0;
  uint32_t epoch_ = 0;             // of the queue pair: completions of an earlier one mean nothing
  std::vector<uint32_t> to_post_;  // slots that the device does not have
  unsigned idle_receives_ = 0;
  unsigned handed_out_ = 0;  // the last of to_post_ belong to frames of the last receive()
  std::array<LinkAddress, largest_burst> from_{};
  ibv_wc early_{};  // found while arming
  bool has_early_ = false;
  bool flushing_ = false;
  uint64_t flushing_since_ns_ = 0;
  uint64_t repaired_ns_ = 0;
  std::vector<ibv_recv_wr> receive_requests_;
  std::vector<ibv_sge> receive_elements_;

  AtomicLinkCounters counters_;
};

}  // namespace lintel
