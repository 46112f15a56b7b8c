// The contract between the Portals core and whatever moves its messages: reliable messages between
// processes, in order per pair, and direct access to peers' memory where there is any.
// A transport knows nothing of match bits, lists or events; the core knows no transport by name.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "transport/message.h"
#include "transport/polling.h"
#include "util/doorbell.h"
#include "util/state_writer.h"

namespace lintel {

// One direction-independent connection to a peer, owned by its transport; the core keeps a pointer
// until the transport is destroyed. Transports derive their own connection state from it.
struct Link {
  ProcessId peer{};
  uint32_t uid = 0;  // usage id of the peer, established when it connected (spec 3.8)
  // Payload of one message of kind data to this peer that its network carries best. Set before the
  // first message of the peer is handed up, and then when the path to it changes: a longer message,
  // up to the first value, is accepted all the same. Any thread reads it.
  std::atomic<uint32_t> max_data_bytes{8192};
  // Where the next message to the peer may be written in place (Transport::publish()); nullptr: it
  // is to be sent. Under the peer's send lock.
  MessageCell* next_cell = nullptr;
  void* context =
      nullptr;  // the core's own: set through MessageSink::on_new_link or by connect()'s caller
  // Reason of a failure. Set before MessageSink::on_peer_failed().
  struct Failure {
    enum class Kind : uint8_t {
      gone,        // the peer was connected
      unanswered,  // no message of the peer ever came
      refused,     // the peer answered that it does not connect
    };
    Kind kind = Kind::gone;
    const char* reason = "";  // a clause; constant text
  };
  Failure failure;
};

// A number of PTL_STATS.
struct Statistic {
  const char* name;
  uint64_t value;
};

struct Capabilities {
  const char* name;                 // name in PTL_TRANSPORT
  uint32_t max_eager_bytes;         // largest payload of one message
  bool remote_access;               // remote_access() exists (may still fail per peer)
  bool remote_asynchronous;         // an access ends with MessageSink::on_remote_done()
  uint32_t remote_threshold_bytes;  // beyond this size remote access beats eager messages
  bool refers_to_payloads =
      false;  // send() does not copy all payloads that stay: see payload_mark()
  bool polls_by_system_call = false;  // an idle poll costs as much as many calls of Portals
  // Minimum time for which a thread that waits polls before it sleeps. Not 0 if arrivals ring no
  // doorbell (sleep_limit_ns() ends every sleep), so that a sleeping peer answers late. Otherwise
  // both sides could sleep in each round trip.
  uint64_t least_spin_ns = 0;
  // All peers are in this process: the transport is polled only after a send, and delivers all
  // messages.
  bool in_process = false;
  // A link that connect() returns leads to a process that runs.
  bool finds_at_once = false;
  bool wakes_progress = false;  // wake_progress() wakes a thread of the peer
  // remote_access() and expose() take memory of accelerators, where it can be registered.
  bool accesses_accelerators = false;
};

enum class SendStatus : uint8_t {
  sent,          // header and payload were taken over; the buffers may be reused, unless the
                 // payload stays anyway: see payload_stays()
  queue_full,    // no room now: try again after the peer made progress
  connecting,    // no room before the peer answered: try again later
  peer_failed,   // the peer is gone or refused us: nothing sent to it arrives any more
  inaccessible,  // a payload piece is not readable memory: nothing was sent (PTL_NI_SEGV)
};

enum class RemoteStatus : uint8_t {
  done,
  started,  // ends with on_remote_done() in bounded time; the local memory belongs to the transport
  busy,     // no room now: try again later
  unsupported,  // memory of this peer cannot be reached directly: send data messages instead
  peer_failed,
  local_fault,   // memory of this process is not accessible
  remote_fault,  // memory of the peer is not accessible
};

struct RemoteResult {
  RemoteStatus status;
  uint64_t bytes;  // moved before the status arose
};

// Result of expose(): messages may name the memory until withdraw().
struct Exposure {
  static constexpr uint32_t none = 0;
  SendStatus status;  // sent: as said by `count`; or why to try again later, or never
  unsigned count =
      0;  // descriptions made; 0: this memory cannot be reached, data travel in messages
  uint32_t number = none;  // argument of withdraw(); none: nothing to withdraw
};

// A message as handed up. `payload` stays valid until the callback returns and may be changed by a
// misbehaving peer meanwhile: read every byte of it at most once. The header is a private copy.
struct InboundMessage {
  MessageHeader header;
  const std::byte* payload;
  uint32_t payload_length;
};

// The message in a cell that the peer may change meanwhile. `first_word`: of its header.
[[nodiscard]] inline InboundMessage copy_of(const MessageCell& cell, uint64_t first_word,
                                            uint32_t length) noexcept {
  InboundMessage message{cell.header, cell.payload, length};
  std::memcpy(&message.header, &first_word, sizeof first_word);
  return message;
}

// Functions that a transport calls, from within poll() only and therefore never from two threads at
// once.
class MessageSink {
 public:
  // A peer made contact: the link is usable for answers. Return value becomes link.context.
  virtual void* on_new_link(Link& link) noexcept LINTEL_REQUIRES(polling) = 0;
  // Messages of one peer in the order sent. Those of kind data without flag_last may come before
  // earlier ones.
  virtual void on_messages(Link& link, const InboundMessage* messages, unsigned count) noexcept
      LINTEL_REQUIRES(polling) = 0;
  // The same for a put without flags in a cell, which the peer may change meanwhile. `length`: of
  // its payload. True: it succeeded, and the transport acknowledges it if it asks for that.
  [[nodiscard, gnu::noinline]] virtual bool on_put(Link& link, const MessageCell& cell,
                                                   uint64_t first_word, uint32_t length) noexcept
      LINTEL_REQUIRES(polling) {
    const InboundMessage message = copy_of(cell, first_word, length);
    on_messages(link, &message, 1);
    return false;
  }
  // Cookies of the peer's Transport::acknowledge(), a private copy. The same as messages of kind
  // ack_batch.
  [[gnu::noinline]] virtual void on_acknowledgements(Link& link, const uint32_t* cookies,
                                                     unsigned count) noexcept
      LINTEL_REQUIRES(polling) {
    InboundMessage message{};
    message.header.kind = MessageKind::ack_batch;
    for (unsigned i = 0; i < count; ++i) {
      message.header.cookie = cookies[i];
      on_messages(link, &message, 1);
    }
  }
  // The same for a single one. Returns 1.
  [[gnu::noinline]] virtual unsigned on_acknowledgement(Link& link, uint32_t cookie) noexcept
      LINTEL_REQUIRES(polling) {
    on_acknowledgements(link, &cookie, 1);
    return 1;
  }
  // The peer is gone; remote accesses under way have been ended before. A later incarnation is
  // announced by on_new_link(), or found by connect(), and may get this Link again.
  virtual void on_peer_failed(Link& link) noexcept LINTEL_REQUIRES(polling) = 0;
  // A remote_access() that was answered with started has ended: `result` has any of the other
  // statuses but busy. The peer's memory is not accessed for it any more, nor is ours.
  virtual void on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept
      LINTEL_REQUIRES(polling) = 0;
  // Whether this process has exposed `memory` (with its key) to that peer, to read or to write, for
  // an operation in flight.
  virtual bool may_access(Link& link, const RemoteMemory& memory, bool write) noexcept
      LINTEL_REQUIRES(polling) = 0;
  // Calls action(link, argument) while no other thread sends to the peer: under its send lock. A
  // link without a peer has no senders; the lock of the peer directory, under which it would get
  // one, is held then. A sink that one thread uses has neither. False: the link has just got a
  // peer; ask later.
  virtual bool exclude_senders(Link& link, void (*action)(Link&, void*), void* argument) noexcept
      LINTEL_REQUIRES(polling) {
    action(link, argument);
    return true;
  }

 protected:
  ~MessageSink() = default;
};

// Counters for the status registers about networks.
struct NetworkCounters {
  static constexpr unsigned most_ports = 4;
  uint64_t retransmissions = 0;
  uint64_t frames_dropped = 0;       // frames that were damaged, malformed, or of no connection
  uint64_t unreliable_sent = 0;      // messages of PTL_MD_UNRELIABLE that were sent once
  uint64_t connections_refused = 0;  // connections that this process refused
  uint64_t paths_narrowed = 0;       // paths that were found to lose long frames
  std::array<uint64_t, most_ports> rail_bytes{};  // bytes sent in frames by each port
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;

  // Connection path; any thread; no two at once for one peer. Finds or makes the link to `peer`
  // without waiting for it. nullptr: this transport does not reach that process; `reason` (if not
  // null) receives one clause that says why, for the log.
  [[nodiscard]] virtual Link* connect(ProcessId peer, std::string* reason) = 0;

  // Connection path; the poller. Names the process behind the link (incarnation.h). 0: the
  // link is not connected yet, and nothing was taken over by send(). A failed link keeps its own
  // until it is connected again.
  [[nodiscard]] virtual uint64_t incarnation(Link& link) const noexcept = 0;

  // The process number of a peer on this node, 0 for others. Message path; the caller holds the
  // peer's send lock or the poll token.
  [[nodiscard]] virtual uint32_t process_of(Link&) const noexcept { return 0; }

  // Message path; the caller holds the peer's send lock. Sends the header and the payload made of
  // `count` pieces (total at most max_eager_bytes, or max_data_bytes of the link for kind data).
  // All or nothing; never waits. After a message of kind data without flag_last or
  // data_pauses the caller sends the next one at once, unless the result is other than `sent`: a
  // transport may collect them.
  [[nodiscard]] virtual SendStatus send(Link& link, const MessageHeader& header,
                                        const Piece* pieces, unsigned count) noexcept = 0;

  // Message path; the caller holds the peer's send lock. Sends the message that the caller has
  // written into link.next_cell: payload, and header but for its first word, which is
  // `first_word`, with a link word of 0.
  [[gnu::noinline]] virtual void publish(Link&, uint64_t /*first_word*/,
                                         uint32_t /*payload_length*/) noexcept {}
  // Message path; the caller holds the peer's send lock. Acknowledges operations of the peer that
  // succeeded, which the cookies name, without a message; the peer gets on_acknowledgements().
  // Returns the number of cookies taken over, from the first on. The caller sends the others in a
  // message of kind ack_batch. Acknowledgements may overtake messages and be overtaken.
  [[nodiscard, gnu::noinline]] virtual unsigned acknowledge(Link&, const uint32_t* /*cookies*/,
                                                            unsigned /*count*/) noexcept {
    return 0;
  }

  // Returns a mark that names all payloads sent to this peer so far, for payloads_released(), until
  // MessageSink::on_peer_failed() returns. Used if capabilities().refers_to_payloads. Message path;
  // the caller holds the peer's send lock.
  [[nodiscard]] virtual uint32_t payload_mark(Link&) noexcept { return 0; }
  // Message path. True: none of those payloads will be read again. poll() or arm()
  // update it.
  [[nodiscard]] virtual bool payloads_released(Link&, uint32_t /*mark*/) noexcept
      LINTEL_REQUIRES(polling) {
    return true;
  }

  // Message path; the caller holds the peer's send lock until uncork(). Several messages follow.
  // They may be handed to the network together, in uncork() at the latest.
  virtual void cork(Link&) noexcept {}
  virtual void uncork(Link&) noexcept {}

  // Message path; the caller holds the peer's send lock. Describes `count` pieces of this process's
  // memory in `out`, for the peer to read or (`write`) to write for the operation that `cookie`
  // names. The descriptions go out with the next message to the peer, or are withdrawn.
  [[nodiscard]] virtual Exposure expose(Link&, const Piece* pieces, unsigned count, bool /*write*/,
                                        uint32_t cookie, RemoteMemory* out) noexcept {
    for (unsigned i = 0; i < count; ++i)
      out[i] = {reinterpret_cast<uint64_t>(pieces[i].base), pieces[i].length, cookie};
    return {SendStatus::sent, count, Exposure::none};
  }
  // Message path; any thread. Ends the peer's access to that memory. `peer_may_access`: the peer
  // got the description and has not answered, so it may be accessing the memory; expensive where
  // access takes place.
  virtual void withdraw(Link&, uint32_t /*exposure*/, bool /*peer_may_access*/) noexcept {}

  // Message path. Copies from the peer's memory to local pieces, or the other way
  // (`write`); the totals of both sides agree. Synchronous ones are cut into slices by the core.
  // `token` is for on_remote_done(), which is called from within poll() only.
  [[nodiscard]] virtual RemoteResult remote_access(Link&, bool /*write*/, const Piece* /*local*/,
                                                   unsigned /*local_count*/,
                                                   const RemoteMemory* /*remote*/,
                                                   unsigned /*remote_count*/,
                                                   uint32_t /*token*/) noexcept
      LINTEL_REQUIRES(polling) {
    return {RemoteStatus::unsupported, 0};
  }

  // Message path. This process ends its access to that memory of the peer, which
  // was exposed for one operation. Called before the answer to that operation is sent.
  virtual void end_access(Link&, const RemoteMemory* /*remote*/, unsigned /*count*/) noexcept
      LINTEL_REQUIRES(polling) {}

  // Message path. Delivers at most about `budget` messages; returns their number.
  virtual unsigned poll(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling) = 0;

  // The doorbell in memory that this transport's peers can reach; nullptr if its peers never ring
  // (then the sender wakes the poller through the doorbell of the interface).
  [[nodiscard]] virtual Doorbell* doorbell() noexcept { return nullptr; }
  // Set-up path, before anything else: the doorbell that the poller sleeps on. A transport without
  // one that peers can reach rings it itself when something arrives for a poller that sleeps.
  virtual void set_doorbell(Doorbell&) noexcept {}

  // Before the poller sleeps; it has already announced so in the doorbell (announce_sleep() and
  // heavy_fence()). True: anything that arrives from now on (and, if `blocked_senders`, room that
  // appears for sends refused as queue_full) rings the doorbell. False: there is something to do
  // already; poll instead. disarm() undoes it.
  [[nodiscard]] virtual bool arm(bool blocked_senders) noexcept LINTEL_REQUIRES(polling) = 0;
  virtual void disarm() noexcept LINTEL_REQUIRES(polling) {}
  // After arm(): how long the poller may sleep before the transport must be polled for its timers,
  // in nanoseconds. Negative: until the doorbell rings.
  [[nodiscard]] virtual int64_t sleep_limit_ns() noexcept { return -1; }
  // Path into sleep; the peer has not answered all requests. Wakes the progress
  // thread of the peer, which polls unless another thread of the peer does. Without
  // capabilities().wakes_progress it does nothing.
  virtual void wake_progress(Link&) noexcept LINTEL_REQUIRES(polling) {}
  // Before closing: everything taken over by send() has reached its peer, as far as one can know.
  [[nodiscard]] virtual bool all_delivered() noexcept LINTEL_REQUIRES(polling) { return true; }

  // Every so often, and when woken without messages (may make system calls): finds peers that died
  // without closing their interface. `watch` lists links with operations outstanding.
  virtual void check_peers(MessageSink&, Link* const* /*watch*/, unsigned /*count*/) noexcept
      LINTEL_REQUIRES(polling) {}

  [[nodiscard]] virtual NetworkCounters network_counters() const noexcept { return {}; }
  // Writes a line for each link, for debuggers (docs/debugging.md). Takes no lock.
  virtual void write_state(StateWriter&) const noexcept {}
  // Returns the numbers for PTL_STATS.
  [[nodiscard]] virtual std::vector<Statistic> statistics() const { return {}; }
  // Returns the device of the messages, by its name on this node: "eth0", "mlx5_0:1", "/dev/shm".
  [[nodiscard]] virtual std::string device() const { return {}; }
  // Returns one line for ptl_info: the device or path in use, and why.
  [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace lintel
