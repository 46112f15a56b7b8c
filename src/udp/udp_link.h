// PacketLink over a UDP socket: needs no privileges. Batches system calls, and lets the kernel cut and
// join equal frames where it can (UDP_SEGMENT, UDP_GRO). open.cc, send.cc, receive.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/open_status.h"
#include "transport/packet_link.h"
#include "udp/udp_address.h"

namespace lintel {

struct UdpSettings {
  UdpHost host;
  uint32_t pid = 0;          // below PTL_PID_MAX
  uint32_t frame_bytes = 0;  // largest payload; 0: what routes take
};

class UdpLink final : public PacketLink {
 public:
  // Set-up path. `reason` explains a failure.
  [[nodiscard]] static OpenStatus open(const UdpSettings& settings,
                                       std::unique_ptr<UdpLink>& result, std::string& reason);
  ~UdpLink() override;

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override;
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override;
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override;
  [[nodiscard]] bool arm() noexcept override;
  [[nodiscard]] unsigned take_unreachable(LinkAddress* addresses, unsigned max) noexcept override;
  [[nodiscard]] LinkCounters counters() const noexcept override { return counters_.now(); }
  [[nodiscard]] std::string describe() const override;

 private:
  static constexpr unsigned largest_receive = 8;      // datagrams of one system call
  static constexpr unsigned largest_send = 16;        // datagrams (segmented or not) of one call
  static constexpr uint32_t segmented_bytes = 65000;  // of a datagram that the kernel cuts up
  static constexpr unsigned most_segments = 64;
  static constexpr unsigned most_unreachable = 16;
  static constexpr uint32_t short_bytes = 2048;
  static constexpr unsigned short_until_apart = 256;

  struct Received {  // a datagram, or several that the kernel joined
    LinkAddress from;
    uint32_t length = 0;
    uint32_t segment = 0;  // bytes of each frame in it but the last
    uint32_t offset = 0;   // handed out so far
  };
  struct Datagram;  // send.cc

  UdpLink() = default;
  bool open_socket(std::string& reason) noexcept;
  OpenStatus bind_pid(uint32_t pid, std::string& reason) noexcept;
  void permit_fragments(bool permit) noexcept;
  void set_buffers() noexcept;
  bool can_be_a_process(ProcessId peer) const noexcept;
  uint32_t route_mtu(const LinkAddress& to) const noexcept;
  bool send_one(const OutboundFrame& frame) noexcept;
  unsigned group(const OutboundFrame* frames, unsigned count) const noexcept;
  unsigned send_datagrams(Datagram* datagrams, unsigned count) noexcept;
  unsigned receive_datagrams() noexcept;
  int receive_one() noexcept;
  int receive_burst() noexcept;
  void note_datagram(Received& datagram, uint32_t length, int segment, bool truncated) noexcept;
  void adapt_joining() noexcept;
  void drain_errors() noexcept;
  std::byte* buffer(unsigned index) noexcept { return buffers_ + size_t{index} * buffer_bytes_; }

  UdpHost host_;
  int socket_ = no_descriptor;
  bool can_join_ = false;              // the kernel knows UDP_GRO
  std::atomic<bool> segments_{false};  // UDP_SEGMENT; false for good when the device refuses
  std::atomic<bool> fragments_{
      false};  // permitted; for good from the first peer beyond this node on, or the
               // first frame that is longer than the route within it

  std::byte* buffers_ = nullptr;
  size_t buffer_bytes_ = 0;
  Received datagrams_[largest_receive];
  unsigned received_ = 0;                    // datagrams in the buffers
  unsigned next_ = 0;                        // the first that is not handed out completely
  unsigned ask_for_ = 1;                     // datagrams in the next call
  unsigned full_in_a_row_ = 0;               // calls that brought as many as they asked for
  bool joining_ = false;                     // UDP_GRO is set
  unsigned short_in_a_row_ = 0;              // calls that brought one short datagram
  std::atomic<bool> errors_pending_{false};  // a call told of one
  LinkAddress unreachable_[most_unreachable];
  unsigned unreachable_count_ = 0;

  AtomicLinkCounters counters_;
};

}  // namespace lintel
