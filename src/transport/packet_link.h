// The contract between the reliability layer (src/reliable) and whatever moves its frames: UDP
// sockets, Ethernet ports, unreliable datagrams of an RDMA device. A link may lose, duplicate,
// reorder and damage frames; the layer above makes reliable, ordered messages of them. A link knows
// nothing of connections, sequence numbers or messages.
//
// To add a link: derive from PacketLink, say in open() of your own what went wrong, and make a
// transport of it with ReliableTransport::open(), see src/udp and the registry.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "transport/message.h"

namespace lintel {

// Source or destination of frames, in the link's own form: a socket address, a MAC address, the
// number of an address handle. The same sender always has the same bytes (unused ones are zero), so
// that addresses are compared as memory. Valid only for the link that made it. The last byte tells
// a link with several ports (rails) by which one to send. In addresses of arrived frames it is the
// one by which they came, or zero if the link does not know it.
struct LinkAddress {
  alignas(8) std::array<std::byte, 32> bytes{};

  [[nodiscard]] static LinkAddress filled_with(std::byte byte) noexcept {
    LinkAddress address;
    address.bytes.fill(byte);
    return address;
  }
  [[nodiscard]] uint8_t rail() const noexcept { return static_cast<uint8_t>(bytes.back()); }
  void set_rail(uint8_t rail) noexcept { bytes.back() = std::byte{rail}; }
  [[nodiscard]] LinkAddress without_rail() const noexcept {
    LinkAddress place = *this;
    place.set_rail(0);
    return place;
  }
  // Once per frame: as words, where the comparison of arrays goes byte by byte.
  friend bool operator==(const LinkAddress& a, const LinkAddress& b) noexcept {
    std::array<uint64_t, 4> x;
    std::array<uint64_t, 4> y;
    std::memcpy(x.data(), a.bytes.data(), sizeof x);
    std::memcpy(y.data(), b.bytes.data(), sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
  }
};
static_assert(sizeof(LinkAddress) == 32);

// Maximum number of ports that a process uses for one peer, the first one included.
inline constexpr unsigned most_rails = 4;
// Maximum number of addresses by which a peer is called: see PacketLink::ways_to().
inline constexpr unsigned most_ways = 2 * most_rails - 1;

// A port of a process, as it tells its peers in a handshake.
struct RailAddress {
  std::array<uint8_t, 28> bytes{};  // in the link's own form
  uint32_t mtu = 0;                 // bytes of the largest frame
};
static_assert(sizeof(RailAddress) == 32);

// Whether frames by a port of this process reach one of a peer, as far as addresses show it.
enum class RailReach : uint8_t { never, perhaps, same_network };

struct Route {
  LinkAddress address;
  uint32_t mtu = 0;  // bytes of the largest frame to that address, at most PacketLink::mtu()
};

enum class ResolveStatus : uint8_t {
  resolved,
  pending,      // asked on the network: resolve() again later, the answer comes through receive()
  no_route,     // the node has no route there now, as while its own link is down
  unreachable,  // no such process can be reached through this link
};

// A frame to send: the bytes of its pieces in order. The first piece is memory of the caller.
struct OutboundFrame {
  const LinkAddress* to;
  const Piece* pieces;
  unsigned count;  // number of pieces: at least 1, at most PacketLink::most_pieces
};

// A frame that arrived. The link may have damaged it; the layer above checks everything, and may
// decrypt it in its place.
struct InboundFrame {
  const LinkAddress* from;
  std::byte* data;  // aligned to 8 bytes where the link can do so
  uint32_t length;
};

// Read by any thread while they count; exact when nothing is going on.
struct LinkCounters {
  uint64_t frames_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t frames_received = 0;
  uint64_t bytes_received = 0;
  uint64_t send_full = 0;         // frames that the link did not take because its queue was full
  uint64_t send_errors = 0;       // frames that it could not send at all
  uint64_t frames_malformed = 0;  // arrived, but never handed up: truncated, not of our protocol
  std::array<uint64_t, most_rails - 1> rail_bytes{};  // bytes sent by each further rail
};

// Counters of links; read by any thread.
struct AtomicLinkCounters {
  std::atomic<uint64_t> frames_sent{0}, bytes_sent{0}, frames_received{0}, bytes_received{0};
  std::atomic<uint64_t> send_full{0}, send_errors{0}, frames_malformed{0};
  std::array<std::atomic<uint64_t>, most_rails - 1> rail_bytes{};

  // Adds without a locked instruction. Requires a single counting thread, such as the poller, or a
  // lock.
  static void add_alone(std::atomic<uint64_t>& count, uint64_t n) noexcept {
    count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  [[nodiscard]] LinkCounters now() const noexcept {
    const auto get = [](const std::atomic<uint64_t>& count) {
      return count.load(std::memory_order_relaxed);
    };
    return {get(frames_sent),      get(bytes_sent),
            get(frames_received),  get(bytes_received),
            get(send_full),        get(send_errors),
            get(frames_malformed), {get(rail_bytes[0]), get(rail_bytes[1]), get(rail_bytes[2])}};
  }
};

// Properties that do not change once a link is open.
struct LinkProperties {
  static constexpr int no_descriptor = -1;

  const char* name = "";                        // name in PTL_TRANSPORT, counters and log lines
  std::string device{};                         // see Transport::device()
  ProcessId id{};                               // this process by its physical address
  LinkAddress own_address{};                    // address of this process in `from` of its frames
  std::array<RailAddress, most_rails> rails{};  // its ports, if there are several
  uint8_t rail_count = 0;
  uint8_t first_place = 0;          // of the first port in the order in which frames fill them
  uint8_t rails_used = most_rails;  // maximum number of rails by which frames go to one peer
  // The port at a place of that order.
  [[nodiscard]] unsigned rail_at(unsigned place) const noexcept {
    return place == first_place ? 0 : place < first_place ? place + 1 : place;
  }
  // The bits of addresses that name the host, and not one of its processes.
  LinkAddress host_mask = LinkAddress::filled_with(std::byte{0xff});
  uint32_t mtu = 0;  // bytes of the largest frame that can be sent or received
  // Bytes of frames that can wait here to be received before more are lost. A peer never has more
  // in flight to this process.
  uint64_t receive_capacity_bytes = 0;
  // Bytes of that capacity that each frame takes, whatever its length. 0: its own bytes, and a
  // share for the records of its buffer.
  uint32_t receive_slot_bytes = 0;
  // The delay by a queue that a sender may cause. A longer one is permitted where frames wait in no
  // other queue than the receiver's own.
  uint64_t queue_delay_ns = 50'000;
  // send() accepts pieces, other than the first of a frame, that are not readable memory when it is
  // called: it does not crash, and such frames are lost. Only then are payloads sent from the
  // application's memory.
  bool sends_from_anywhere = false;
  // Frames between processes of one node are copied by processors and nothing else, as in shared
  // memory: those that arrive are as they were sent. Their payloads need no check.
  bool keeps_frames_of_node = false;
  bool receives_by_system_call = false;  // receive() is one even if no frame has arrived
  // A descriptor that becomes readable when frames arrive; poll() can wait for it. None: receive()
  // is called from time to time, and the processor never sleeps for long.
  int descriptor = no_descriptor;
  // Maximum time between two calls of receive() while nothing comes; for links without a
  // descriptor. A longer time costs less in an idle process, and delays the first message after a
  // pause by as much.
  int64_t longest_pause_ns = 1'000'000;
};

class PacketLink {
 public:
  static constexpr unsigned most_pieces = 8;     // maximum number of pieces of one frame
  static constexpr unsigned largest_burst = 64;  // frames of one call of send() or receive()
  // The reliability layer needs room for its header, a message header and some data.
  static constexpr uint32_t least_mtu = 512;
  static constexpr uint32_t largest_mtu = 65536;
  static constexpr int no_descriptor = LinkProperties::no_descriptor;
  // Bytes in front of each frame in memory of offer_memory() that the link may write at any time:
  // room for its own header.
  static constexpr uint32_t headroom = 16;

  PacketLink() = default;
  PacketLink(const PacketLink&) = delete;
  PacketLink& operator=(const PacketLink&) = delete;
  // Set-up path. No thread sends or receives now. Frames that were taken are sent, as far as that
  // needs no waiting.
  virtual ~PacketLink() = default;

  // Constant properties.
  [[nodiscard]] const LinkProperties& properties() const noexcept { return properties_; }
  [[nodiscard]] const char* name() const noexcept { return properties_.name; }
  [[nodiscard]] ProcessId id() const noexcept { return properties_.id; }
  [[nodiscard]] const LinkAddress& own_address() const noexcept { return properties_.own_address; }
  [[nodiscard]] uint32_t mtu() const noexcept { return properties_.mtu; }
  [[nodiscard]] uint64_t receive_capacity_bytes() const noexcept {
    return properties_.receive_capacity_bytes;
  }
  [[nodiscard]] int descriptor() const noexcept { return properties_.descriptor; }

  // Connection path; any thread, several at once. Finds out how frames reach `peer`. May ask on the
  // network, but never waits. `reason` (if not null) receives a clause for the log when
  // unreachable, or there is no route.
  [[nodiscard]] virtual ResolveStatus resolve(ProcessId peer, Route& route,
                                              std::string* reason) noexcept = 0;
  // Connection path; within poll. The process at `from` claims to be `peer`. False: a frame of that
  // process would not come from there. True: `route` leads back to it. A link that keeps addresses
  // from the wire may keep this one.
  [[nodiscard]] virtual bool adopt(ProcessId peer, const LinkAddress& from,
                                   Route& route) noexcept = 0;

  // Connection path; any thread. Where `peer` may be reached though none of its further ports is
  // known: its first address, then guesses by the further rails of this process. `route`: the
  // present one. Returns how many; 0: by its first address alone.
  [[nodiscard]] virtual unsigned ways_to(ProcessId /*peer*/, const LinkAddress& /*route*/,
                                         LinkAddress (&/*to*/)[most_ways]) const noexcept {
    return 0;
  }
  // Connection path; any thread. Returns the address, of resolve() or of a frame from `peer`, with
  // the rail by which to send there before the rails are paired.
  [[nodiscard]] virtual LinkAddress with_rail(ProcessId /*peer*/,
                                              const LinkAddress& to) const noexcept {
    return to;
  }
  // Connection path; any thread. See RailReach. `rail`: a port of this process, from 0.
  [[nodiscard]] virtual RailReach reach(unsigned /*rail*/, const RailAddress&) const noexcept {
    return RailReach::perhaps;
  }
  // Connection path; any thread. Returns the address of frames by that port of this process to one
  // that `peer` has told. By another port it differs in the rail alone.
  [[nodiscard]] virtual LinkAddress rail_address(ProcessId /*peer*/, unsigned /*rail*/,
                                                 const RailAddress&) const noexcept {
    return {};
  }

  // Message path; any thread, several at once (a link that needs a lock for its queue takes it
  // inside). Sends frames in order and returns how many it took, from the first one on; the rest
  // can be tried again later. Frames that can never be sent count as taken: they are lost.
  // Neighbouring frames to one address of one length, the last one possibly shorter, are one burst
  // for links with segmentation. All buffers may be reused on return, except as said at
  // offer_memory(). Never waits.
  [[nodiscard]] virtual unsigned send(const OutboundFrame* frames, unsigned count) noexcept = 0;

  // Message path; one thread at a time. Hands out up to `max` frames that have arrived. They stay
  // valid and unchanged until the next call of receive(); the link recycles them then.
  [[nodiscard]] virtual unsigned receive(InboundFrame* frames, unsigned max) noexcept = 0;

  // Set-up path. Memory that frames will be sent from again and again, and that stays mapped until
  // the link is destroyed. A link that registers it may send pieces inside it without a copy, and
  // read them after send() returned. The owner reuses such a buffer when the peer acknowledged its
  // frame; should a retransmission still be in the link's queue then, the mixture goes out and is
  // refused by its check like any damaged frame. False: not registered, everything is copied.
  // Frames there are single pieces with `headroom` bytes in front of them.
  virtual bool offer_memory(std::byte*, size_t) noexcept { return false; }

  // The same thread as receive(). True: the descriptor becomes readable when a frame arrives, and
  // nothing is waiting now. False: frames are there already. disarm() undoes it; it may be called
  // without arm().
  [[nodiscard]] virtual bool arm() noexcept = 0;
  virtual void disarm() noexcept {}

  // The same thread as receive(). At most `max` addresses that were reported, since the last call,
  // to have no process (ICMP port unreachable). The report may be forged. That a host or network is
  // unreachable is not reported here: a link that is down for a while causes the same.
  [[nodiscard]] virtual unsigned take_unreachable(LinkAddress*, unsigned) noexcept { return 0; }

  // Connection path; the same thread as receive(). Called repeatedly while a peer is silent that
  // answered before. True: its node reports that the process whose first port is at that address is
  // gone. Asks, but never waits for the answer.
  [[nodiscard]] virtual bool is_gone(ProcessId /*peer*/, const LinkAddress& /*address*/) noexcept {
    return false;
  }

  [[nodiscard]] virtual LinkCounters counters() const noexcept = 0;  // any thread
  // One line for ptl_info and the log: what it uses and why.
  [[nodiscard]] virtual std::string describe() const = 0;

 protected:
  LinkProperties properties_;  // filled in before the link is open
};

// The length of a frame to send. Message path.
[[nodiscard]] inline uint64_t frame_bytes(const OutboundFrame& frame) noexcept {
  uint64_t sum = 0;
  for (unsigned i = 0; i < frame.count; ++i) sum += frame.pieces[i].length;
  return sum;
}

}  // namespace lintel
