// Receives bursts of frames, each checked before it is used. A datagram carries one frame and, as
// its immediate data, the Q_Key of its sender, so that it can be answered before anything else is
// known of the sender. Message path, the poller.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/packet_link.h"
#include "verbs/device_memory.h"
#include "verbs/ud_hosts.h"
#include "verbs/ud_queue_pair.h"

namespace lintel {

class UdReceiver {
 public:
  UdReceiver(uint8_t rail, UdQueuePair& queue_pair, UdHosts& hosts,
             AtomicLinkCounters& counters) noexcept
      : rail_(rail), queue_pair_(queue_pair), hosts_(hosts), counters_(counters) {}

  // Set-up path, once the queue pair is open. False: `reason` says why not.
  [[nodiscard]] bool open(uint32_t slots, uint32_t mtu, std::string& reason);
  [[nodiscard]] size_t buffer_bytes() const noexcept { return buffer_.bytes(); }
  [[nodiscard]] uint32_t slots() const noexcept { return slots_; }

  // Gives the device the slots that are free; none while the queue pair is broken.
  void post() noexcept;
  // See PacketLink::receive(). Slots are posted again after the next call.
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept;
  // Path into sleep. True: the next datagram makes the descriptor of the device readable.
  [[nodiscard]] bool arm() noexcept;

  // Whether the device has given back all slots.
  [[nodiscard]] bool all_ended() const noexcept { return to_post_.size() == slots_; }
  // Continues after the queue pair has been reset. Earlier completions are ignored.
  void resume() noexcept;

 private:
  static constexpr unsigned batch = 32;

  unsigned take(const ibv_wc* completions, unsigned count, InboundFrame* frames) noexcept;
  bool source_of(const ibv_wc& completion, const std::byte* buffer, LinkAddress& from) noexcept;
  [[nodiscard]] std::byte* slot(uint32_t index) const noexcept {
    return buffer_.data() + size_t{index} * slot_bytes_;
  }

  const uint8_t rail_;
  UdQueuePair& queue_pair_;
  UdHosts& hosts_;
  AtomicLinkCounters& counters_;
  RegisteredBuffer buffer_;
  uint32_t slots_ = 0;
  uint32_t slot_bytes_ = 0;
  uint32_t mtu_ = 0;
  uint32_t epoch_ = 0;             // number of repairs, in the upper half of every wr_id
  std::vector<uint32_t> to_post_;  // slots that the device does not have
  unsigned handed_out_ = 0;        // the last of to_post_ hold frames of the last receive()
  std::array<LinkAddress, PacketLink::largest_burst> from_{};
  ibv_wc early_{};  // found while arming
  bool has_early_ = false;
  std::array<ibv_recv_wr, batch> requests_{};
  std::array<ibv_sge, batch> elements_{};
};

}  // namespace lintel
