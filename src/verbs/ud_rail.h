// A port of a link for datagrams with what moves frames through it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/packet_link.h"
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
  // Whether it would fail again. Another port takes its place; probes of the reliability layer end
  // the sleep of the poller after that.
  [[nodiscard]] bool waits_for_port() const noexcept {
    const VerbsDevice& device = queue_pair_.device();
    return device.is_one_of_several && !device.async_events.port_is_up();
  }
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

class UdRail final : private AsyncEventSink {
 public:
  // `rail`: the place of the port among those of the link. `hosts` and `resolver`: of the link.
  UdRail(std::shared_ptr<VerbsDevice> device, uint8_t rail, UdHosts& hosts,
         Resolver& resolver) noexcept;
  UdRail(const UdRail&) = delete;
  UdRail& operator=(const UdRail&) = delete;
  // The resolver's thread has ended.
  ~UdRail();

  // Set-up path. `slots`: datagrams that wait to be received, at most. False: `reason`.
  [[nodiscard]] bool open(uint32_t slots, uint32_t mtu, std::string& reason);
  [[nodiscard]] VerbsDevice& device() const noexcept { return *device_; }
  // Where datagrams to this port go.
  [[nodiscard]] UdDestination destination() const noexcept;
  // The address of frames by this port to that one. The host is UdHosts::none if there is no
  // memory.
  [[nodiscard]] LinkAddress address_of(const UdDestination& destination) const noexcept;
  [[nodiscard]] LinkCounters counters() const noexcept { return counters_.now(); }
  [[nodiscard]] uint64_t repairs() const noexcept { return repair_.count(); }
  [[nodiscard]] UdMemory& offered() noexcept { return offered_; }

  // Message path; see PacketLink.
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept {
    return sender_.send(frames, count);
  }
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept;
  [[nodiscard]] bool arm() noexcept;
  [[nodiscard]] std::string describe() const;

 private:
  void on_async_event(const ibv_async_event& event) noexcept override;

  // Members in the order in which they are made; the last is destroyed first.
  const std::shared_ptr<VerbsDevice> device_;
  const uint8_t rail_;
  UdHosts& hosts_;
  uint32_t mtu_ = 0;
  AtomicLinkCounters counters_;
  UdMemory offered_;
  UdQueuePair queue_pair_{*device_};
  UdSender sender_;
  UdReceiver receiver_;
  UdRepair repair_{queue_pair_, sender_, receiver_};
  uint32_t empty_receives_ = 0;
};

}  // namespace lintel
