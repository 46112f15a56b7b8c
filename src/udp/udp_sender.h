// Sends bursts of frames with as few system calls as possible: several datagrams in a call, and
// several frames in a datagram that the kernel cuts up (UDP_SEGMENT). Long payloads within the node
// are not copied (UdpSplicer). Message path, any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "transport/packet_link.h"
#include "udp/udp_calls.h"
#include "udp/udp_peer_sockets.h"
#include "udp/udp_socket.h"
#include "udp/udp_splicer.h"
#include "util/arena.h"

namespace lintel {

class UdpSender {
 public:
  UdpSender(UdpSocket& socket, AtomicLinkCounters& counters) noexcept;
  ~UdpSender();

  // Set-up path, once the socket is open. False: no memory.
  [[nodiscard]] bool open(const UdpCalls& calls) noexcept;
  // Connection path: frames will go to that address.
  void connect(const LinkAddress& to) noexcept { peers_.connect(to); }
  // See PacketLink::send().
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept;
  // The kernel cuts up datagrams. False for good once the device of a route refused.
  [[nodiscard]] bool segments() const noexcept { return segments_.load(std::memory_order_relaxed); }
  // Payloads to processes of this node are sent from where they lie.
  [[nodiscard]] bool splices() const noexcept { return splicer_.works(); }
  [[nodiscard]] std::string describe_splicing() const { return splicer_.describe(); }

 private:
  struct Batch;

  [[nodiscard]] bool send_one(const OutboundFrame& frame) noexcept;
  [[nodiscard]] unsigned splice(const OutboundFrame* frames, unsigned count) noexcept;
  [[nodiscard]] unsigned group(const OutboundFrame* frames, unsigned count,
                               unsigned most_pieces) const noexcept;
  void fill(Batch& batch, const OutboundFrame* frames, unsigned count) const noexcept;
  [[nodiscard]] unsigned transmit(Batch& batch) noexcept;

  UdpSocket& socket_;
  AtomicLinkCounters& counters_;
  bool sends_several_ = true;  // with one system call
  std::atomic<bool> segments_{false};
  std::atomic<unsigned> refusals_{0};      // frames that the interface dropped
  std::unique_ptr<Arena<Batch>> batches_;  // too large for the stack of a caller
  UdpPeerSockets peers_;
  UdpSplicer splicer_;
};

}  // namespace lintel
