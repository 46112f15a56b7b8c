// PacketLink over an unreliable datagram queue pair.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "util/counter.h"
#include "verbs/device.h"
#include "verbs/resolver.h"
#include "verbs/ud_hosts.h"
#include "verbs/ud_queue_pair.h"
#include "verbs/ud_receiver.h"
#include "verbs/ud_sender.h"

namespace lintel {

// Starts a queue pair that has failed again in place: same number, same Q_Key, so that peers need
// no notice. Frames that were on the way are lost like others. Connection path, the poller.
class UdRepair {
 public:
  UdRepair(UdQueuePair& queue_pair, UdSender& sender, UdReceiver& receiver) noexcept
      : queue_pair_(queue_pair), sender_(sender), receiver_(receiver) {}

  // Goes on with the repair, as long as the queue pair is broken. Never waits.
  void step() noexcept;
  [[nodiscard]] uint64_t count() const noexcept { return count_.get(); }

 private:
  UdQueuePair& queue_pair_;
  UdSender& sender_;
  UdReceiver& receiver_;
  bool flushing_ = false;
  uint64_t flushing_since_ns_ = 0;
  uint64_t repaired_ns_ = 0;
  SharedCounter count_;
};

struct UdSettings {
  ProcessId id;  // identifier of this process; its nid is an address of this node
  uint32_t receive_buffers = 512;
  uint64_t lookup_timeout_ns = 10'000'000'000;
};

class UdLink final : public PacketLink, private ResolverClient, private AsyncEventSink {
 public:
  // Set-up path. `reason` explains what is not `opened`.
  [[nodiscard]] static OpenStatus open(std::shared_ptr<VerbsDevice> device,
                                       const UdSettings& settings, std::unique_ptr<UdLink>& result,
                                       std::string& reason);
  ~UdLink() override;

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override {
    return resolver_.resolve(peer, route, reason);
  }
  // An address does not tell which process it is: the job key does.
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override {
    return sender_.send(frames, count);
  }
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override;
  bool offer_memory(std::byte* start, size_t bytes) noexcept override {
    return offered_.offer(device_->pd, start, bytes);
  }
  [[nodiscard]] bool arm() noexcept override;
  [[nodiscard]] bool is_gone(ProcessId peer, const LinkAddress& address) noexcept override;
  [[nodiscard]] LinkCounters counters() const noexcept override { return counters_.now(); }
  [[nodiscard]] std::string describe() const override;

  [[nodiscard]] uint32_t queue_pair_number() const noexcept { return queue_pair_.get()->qp_num; }
  [[nodiscard]] uint64_t repairs() const noexcept { return repair_.count(); }

 private:
  UdLink(std::shared_ptr<VerbsDevice> device, ProcessId id);
  bool open_parts(const UdSettings& settings, std::string& reason);

  // Called by the resolver's thread.
  bool make_route(const UdDestination& destination, Route& route, std::string& reason) override;
  void work() noexcept override;
  [[nodiscard]] int event_descriptor() const noexcept override {
    return device_->async_events.descriptor();
  }
  void handle_events() noexcept override { device_->async_events.dispatch(); }
  void on_async_event(const ibv_async_event& event) noexcept override;

  // Members in the order in which they are made; the last is destroyed first.
  const std::shared_ptr<VerbsDevice> device_;
  AtomicLinkCounters counters_;
  UdHosts hosts_;
  UdMemory offered_;
  Resolver resolver_;
  UdQueuePair queue_pair_{*device_};
  UdSender sender_{queue_pair_, hosts_, offered_, resolver_, counters_};
  UdReceiver receiver_{queue_pair_, hosts_, counters_};
  UdRepair repair_{queue_pair_, sender_, receiver_};
  uint32_t empty_receives_ = 0;
};

}  // namespace lintel
