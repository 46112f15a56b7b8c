// Sends long frames to processes of this node without a copy: the datagram in the receiver's socket
// refers to the pages of the payload (vmsplice, splice). So the kernel neither copies them nor
// allocates memory for them, which is what limits a stream over the loopback.
//
// The payload must stay unchanged until the peer has acknowledged it. A copy of the frame that is
// still queued then may change: its number was received before, or its check is wrong.
//
// A socket of its own collects the pieces of a datagram. Message path, any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/packet_link.h"
#include "udp/udp_socket.h"
#include "util/descriptor.h"
#include "util/spin_lock.h"

namespace lintel {

class UdpSplicer {
 public:
  // To copy a shorter payload takes less time.
  static constexpr uint64_t least_bytes = 16 * 1024;

  explicit UdpSplicer(const UdpSocket& socket) noexcept : socket_(socket) {}
  UdpSplicer(const UdpSplicer&) = delete;
  UdpSplicer& operator=(const UdpSplicer&) = delete;

  // Set-up path, once the socket has its port. Where the kernel cannot do it, send() returns false.
  void open() noexcept;
  [[nodiscard]] bool works() const noexcept { return works_.load(std::memory_order_relaxed); }
  // False: the frame was not sent, and has to be copied. It is not suitable, another thread is
  // sending this way, or the kernel refuses.
  [[nodiscard]] bool send(const OutboundFrame& frame) noexcept {
    return frame.payload_stays && works() && frame.pieces[1].length >= least_bytes && splice(frame);
  }

 private:
  bool open_socket() noexcept;
  bool open_pipe() noexcept;
  bool splice(const OutboundFrame& frame) noexcept;
  bool splice_locked(const OutboundFrame& frame) noexcept;
  void empty_pipe() noexcept;
  void give_up() noexcept;

  const UdpSocket& socket_;
  std::atomic<bool> works_{false};
  SpinLock lock_;  // everything below
  Descriptor collector_;
  Descriptor pipe_out_;
  Descriptor pipe_in_;
};

}  // namespace lintel
