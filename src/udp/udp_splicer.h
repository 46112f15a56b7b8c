// Sends long frames to processes of this node without a copy: the datagram in the receiver's socket
// refers to the pages of the payload (vmsplice, splice). So the kernel neither copies them nor
// allocates memory for them, which is what limits a stream over the loopback.
//
// The payload must stay unchanged until the peer has acknowledged it. A copy of the frame that is
// still queued then may change: its number was received before, or its check is wrong.
//
// A socket of its own collects the pieces of a datagram. A frame of one piece goes through the
// socket that is connected to the peer. Message path, any thread.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "transport/packet_link.h"
#include "udp/udp_peer_sockets.h"
#include "udp/udp_socket.h"
#include "util/descriptor.h"
#include "util/spin_lock.h"

namespace lintel {

class UdpSplicer {
 public:
  // To copy a shorter payload takes less time.
  static constexpr uint32_t least_bytes = 16 * 1024;
  // So many frames in a row that the kernel refuses, and no more are tried.
  static constexpr unsigned most_refusals = 8;

  UdpSplicer(const UdpSocket& socket, const UdpPeerSockets& peers) noexcept
      : socket_(socket), peers_(peers) {}
  UdpSplicer(const UdpSplicer&) = delete;
  UdpSplicer& operator=(const UdpSplicer&) = delete;

  // Set-up path. Why this kernel cannot do it; nullptr: it can.
  [[nodiscard]] static const char* why_not() noexcept;
  // Set-up path, once the socket has its port. Where the kernel cannot do it, send() returns false.
  void open() noexcept;
  [[nodiscard]] bool works() const noexcept {
    return obstacle_.load(std::memory_order_acquire) == nullptr;
  }
  // False: the frame was not sent, and has to be copied. It is not suitable, another thread is
  // sending this way, or the kernel refuses.
  [[nodiscard]] bool send(const OutboundFrame& frame) noexcept {
    if (!frame.payload_stays || !works()) return false;
    const bool is_whole = frame.count == 1;
    return frame.pieces[is_whole ? 0 : 1].length >= least_bytes &&
           (is_whole ? splice_whole(frame) : splice(frame));
  }
  // For people: whether payloads are copied, and why.
  [[nodiscard]] std::string describe() const;

 private:
  struct Parts;

  bool open_socket() noexcept;
  const char* open_pipe() noexcept;  // the obstacle, if any
  bool splice_whole(const OutboundFrame& frame) noexcept;
  bool splice(const OutboundFrame& frame) noexcept;
  bool splice_locked(const OutboundFrame& frame, const Parts& parts) noexcept;
  bool fill_pipe(const Piece& piece) noexcept;
  bool move(const Piece& piece, int to, bool more) noexcept;
  bool send_pieces(const iovec* pieces, unsigned count, int flags,
                   const LinkAddress* to) const noexcept;
  void empty_pipe() noexcept;
  void note_refusal(const char* call, int error) noexcept;
  void give_up(const char* call, int error) noexcept;

  const UdpSocket& socket_;
  const UdpPeerSockets& peers_;
  // What failed, with which error (0: none is known), which is written first. Null: nothing.
  std::atomic<const char*> obstacle_{"it is not open"};
  std::atomic<int> error_{0};
  SpinLock lock_;  // everything below
  unsigned refusals_in_a_row_ = 0;
  Descriptor collector_;
  Descriptor pipe_out_;
  Descriptor pipe_in_;
};

}  // namespace lintel
