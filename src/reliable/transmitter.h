// Passes frames of a connection to the link, each with the current acknowledgement. Message path,
// any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "reliable/connection_timers.h"
#include "reliable/reliable_settings.h"
#include "transport/packet_link.h"
#include "util/arena.h"

namespace lintel {

class Transmitter {
 public:
  explicit Transmitter(const ReliableContext& context) noexcept : context_(context) {}

  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return long_bursts_.open(most_long_bursts); }
  // Sends what the windows allow.
  void transmit(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  // Sends one frame that may be lost. It contains a whole message.
  void send_datagram(Connection& connection, FrameBuffer& frame, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  // An acknowledgement by itself; later, if the link is full.
  void acknowledge(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  void acknowledge_if_pending(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock) {
    if (connection.pending.bytes() != 0 && !connection.pending.is_backing_off(now_ns))
      acknowledge(connection, now_ns);
  }
  // A probe by that path, with the number of the one sent for a timeout.
  void probe(Connection& connection, SendPath& path, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock) {
    probe(connection, path, path.losses().probe_number(), now_ns);
  }
  // One by each path.
  void probe_all(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock) {
    SendWindow& window = connection.send.window;
    for (unsigned i = 0; i < window.paths(); ++i) probe(connection, window.path(i), now_ns);
  }
  // One by a suspended path, as long as frames may be.
  void probe_suspended(Connection& connection, SendPath& path, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  // A short probe and one of that length, to measure the path.
  void probe_path(Connection& connection, uint32_t bytes, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  void say_goodbye(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock) {
    static_cast<void>(send_control(connection, answer_address_of(connection), FrameType::goodbye,
                                   connection.receive.window.probe(), {}, now_ns));
  }

 private:
  // Where frames by that path go.
  static const LinkAddress& address_of(Connection& connection, const SendPath& path) noexcept
      LINTEL_REQUIRES(connection.lock) {
    SendWindow& window = connection.send.window;
    return window.has_several_paths() ? window.further().rails.to[path.index()]
                                      : connection.life.route().address;
  }
  // Where answers go.
  static const LinkAddress& answer_address_of(Connection& connection) noexcept
      LINTEL_REQUIRES(connection.lock) {
    SendWindow& window = connection.send.window;
    return window.has_several_paths() ? window.further().answers_to
                                      : connection.life.route().address;
  }
  static FrameHeader header_of(const Connection& connection, FrameType type,
                               uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  void fail_soon(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  void probe(Connection& connection, const SendPath& path, uint32_t number,
             uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  void probe_long(Connection& connection, const SendPath& path, uint32_t number, uint32_t bytes,
                  uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  bool send_frame(Connection& connection, const LinkAddress& to, FrameBuffer& frame,
                  FrameHeader& header, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  bool send_control(Connection& connection, const LinkAddress& to, FrameType type, uint32_t number,
                    std::span<const uint64_t> body, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  // Maximum number of frames of a burst on the stack of a caller. Longer ones are too large for it.
  static constexpr unsigned burst_on_stack = 8;
  template <unsigned most>
  struct Burst {
    FrameBuffer* frames[most];
    Piece pieces[most][FrameProtection::most_pieces];
    OutboundFrame outbound[most];
  };
  struct LongBurst : Burst<PacketLink::largest_burst> {
    std::atomic<uint32_t> next_free{0};
  };
  static constexpr uint32_t most_long_bursts = 64;  // threads that send one at a time; others wait
  // Sends the only frame that waits. There is one path, which has room for it.
  void transmit_one(Connection& connection, FrameBuffer& frame, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  template <unsigned most, bool several = false>
  bool transmit_frames(Connection& connection, SendPath& path, Burst<most>& burst,
                       uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  [[gnu::noinline]] void transmit_many(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  [[gnu::noinline]] void transmit_unusual(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  // Called when no further frame can be sent now. `pause_ns`: the time until the next attempt, if
  // it is not too short.
  void wait_to_send(Connection& connection, uint64_t now_ns, uint64_t pause_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  bool send_in_parts(Connection& connection, SendPath& path, FrameBuffer& frame,
                     uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);

  const ReliableContext context_;
  Arena<LongBurst> long_bursts_;
};

}  // namespace lintel
