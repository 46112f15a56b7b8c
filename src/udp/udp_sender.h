// Sends bursts of frames with as few system calls as possible: several datagrams in a call, and
// several frames in a datagram that the kernel cuts up (UDP_SEGMENT). Message path, any thread.
#pragma once

#include <atomic>
#include <memory>

#include "transport/packet_link.h"
#include "udp/udp_socket.h"
#include "util/arena.h"

namespace lintel {

class UdpSender {
 public:
  UdpSender(UdpSocket& socket, AtomicLinkCounters& counters) noexcept;
  ~UdpSender();

  // Set-up path, once the socket is open. False: no memory.
  [[nodiscard]] bool open(const UdpCalls& calls) noexcept;
  // See PacketLink::send().
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept;
  // The kernel cuts up datagrams. False for good once the device of a route refused.
  [[nodiscard]] bool segments() const noexcept { return segments_.load(std::memory_order_relaxed); }

 private:
  struct Batch;

  [[nodiscard]] bool send_one(const OutboundFrame& frame) noexcept;
  [[nodiscard]] unsigned group(const OutboundFrame* frames, unsigned count,
                               unsigned most_pieces) const noexcept;
  void fill(Batch& batch, const OutboundFrame* frames, unsigned count) const noexcept;
  [[nodiscard]] unsigned transmit(Batch& batch) noexcept;

  UdpSocket& socket_;
  AtomicLinkCounters& counters_;
  bool sends_several_ = true;  // one system call may send several datagrams
  std::atomic<bool> segments_{false};
  std::atomic<unsigned> refusals_{0};      // frames that the interface dropped
  std::unique_ptr<Arena<Batch>> batches_;  // too large for the stack of a caller
};

}  // namespace lintel
