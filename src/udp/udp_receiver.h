// Receives datagrams, several per system call, and cuts up those that the kernel joined (UDP_GRO).
// Message path, the poller.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/packet_link.h"
#include "udp/udp_socket.h"

namespace lintel {

class UdpReceiver {
 public:
  UdpReceiver(UdpSocket& socket, AtomicLinkCounters& counters) noexcept
      : socket_(socket), counters_(counters) {}
  UdpReceiver(const UdpReceiver&) = delete;
  UdpReceiver& operator=(const UdpReceiver&) = delete;
  ~UdpReceiver();

  // Set-up path, once the socket is open. False: no memory.
  [[nodiscard]] bool open(uint32_t mtu, const UdpCalls& calls) noexcept;
  // See PacketLink::receive().
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept;
  // All frames that were read are handed out.
  [[nodiscard]] bool empty() const noexcept { return next_ == received_; }
  [[nodiscard]] bool can_join() const noexcept { return can_join_; }

 private:
  static constexpr unsigned largest_read = 8;  // datagrams of one system call

  struct Datagram {  // one datagram, or several that the kernel joined
    LinkAddress from;
    uint32_t length = 0;
    uint32_t segment = 0;  // bytes of each frame in it but the last
    uint32_t offset = 0;   // handed out so far
  };

  void read() noexcept;
  [[nodiscard]] int read_one() noexcept;
  [[nodiscard]] int read_several() noexcept;
  void note(Datagram& datagram, uint32_t length, int segment, bool truncated) noexcept;
  void adapt_joining() noexcept;
  [[nodiscard]] std::byte* buffer(unsigned index) const noexcept {
    return buffers_ + size_t{index} * buffer_bytes_;
  }

  UdpSocket& socket_;
  AtomicLinkCounters& counters_;
  UdpCalls calls_;
  bool can_join_ = false;  // the kernel has UDP_GRO
  std::byte* buffers_ = nullptr;
  size_t buffer_bytes_ = 0;
  std::array<Datagram, largest_read> datagrams_;
  unsigned received_ = 0;        // datagrams in the buffers
  unsigned next_ = 0;            // the first that is not handed out completely
  unsigned ask_for_ = 1;         // datagrams in the next call
  unsigned full_in_a_row_ = 0;   // calls that returned as many as requested
  bool joining_ = false;         // UDP_GRO is set
  unsigned short_in_a_row_ = 0;  // calls that brought one short datagram
};

}  // namespace lintel
