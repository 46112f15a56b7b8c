// Reliable, ordered messages over any PacketLink: the other half of the contract in
// transport/packet_link.h. The steps are in files of their own: connect.cc, handshake.cc, accept.cc,
// send.cc, receive.cc, deliver.cc, acknowledge.cc, timers.cc, sleep.cc. docs/architecture.md says how
// they play together, docs/network.md what goes over the wire.
//
// Who may touch what: receiving, timers and everything that fails a connection belong to the poller
// (the holder of the core's poll token). send() runs in any thread that holds the core's send lock of
// the peer. Both take the lock of the connection. `mutex_` guards the table of connections; no
// callback of the sink is made while either is held.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "reliable/connection.h"
#include "reliable/cookie.h"
#include "reliable/job_proof.h"
#include "reliable/reassembly.h"
#include "transport/packet_link.h"
#include "transport/transport.h"
#include "util/arena.h"
#include "util/descriptor_watch.h"
#include "util/quick_clock.h"

namespace lintel {

struct ReliableSettings {
  uint32_t uid = 0;                           // usage id of this process
  std::string job_key;                        // empty: peers are not authenticated
  uint64_t memory_bytes = 32 << 20;           // of frames that are kept, of all peers together
  uint64_t peer_timeout_ns = 10'000'000'000;  // of silence, while an answer is due
  uint64_t shortest_timeout_ns = 1'000'000;   // of retransmission
  uint64_t ack_delay_ns = 50'000;             // an acknowledgement waits for a frame to ride on
  uint64_t quiet_after_ns = 200'000;          // without frames the link is not asked any more
  bool holds_acknowledgements = true;         // of messages, for answers: see hold_back.cc
  bool polls_always = false;                  // never quiet: there is nothing else to poll
  uint32_t most_connections = 1u << 18;
  uint32_t first_sequence = 1;
  Clock clock = quick_clock();
};

// Any thread; exact when nothing is going on.
struct ReliableCounters {
  uint64_t data_frames_sent = 0;
  uint64_t retransmissions = 0;
  uint64_t timeouts = 0;        // of retransmission
  uint64_t datagrams_sent = 0;  // PTL_MD_UNRELIABLE
  uint64_t datagrams_received = 0;
  uint64_t acks_sent = 0;         // that found no frame to ride on
  uint64_t duplicates = 0;        // frames that had come already
  uint64_t early = 0;             // frames that came before others sent earlier
  uint64_t dropped_for_room = 0;  // frames that found no buffer
  uint64_t damaged = 0;           // the check was wrong
  uint64_t malformed = 0;         // too short, of another version, contradictory
  uint64_t strangers = 0;         // frames that belong to no connection
  uint64_t resets_received = 0;
  uint64_t handshakes_refused = 0;  // by us
  uint64_t connections_opened = 0;
  uint64_t connections_failed = 0;
};

class ReliableTransport final : public Transport {
 public:
  // Messages longer than this travel as data that the target asks for.
  static constexpr uint32_t max_eager_bytes = 8192;

  // Set-up path. nullptr with `reason`: no memory, or the job key cannot be used.
  [[nodiscard]] static std::unique_ptr<ReliableTransport> open(std::unique_ptr<PacketLink> link,
                                                               const ReliableSettings& settings,
                                                               std::string& reason);
  ~ReliableTransport() override;

  [[nodiscard]] const PacketLink& link() const noexcept { return *link_; }
  [[nodiscard]] ReliableCounters counters() const noexcept;
  [[nodiscard]] uint64_t frame_memory_used() const noexcept {
    return send_pool_.used_bytes() + receive_pool_.used_bytes() + reassembly_.used_bytes();
  }
  [[nodiscard]] size_t connections() const;

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] uint32_t payload_mark(Link& link) noexcept override;
  [[nodiscard]] bool payloads_released(Link& link, uint32_t mark) noexcept override;
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  [[nodiscard]] RemoteResult remote_read(Link&, const Piece*, unsigned, const RemoteMemory*,
                                         unsigned, uint32_t) noexcept override {
    return {RemoteStatus::unsupported, 0};
  }
  [[nodiscard]] RemoteResult remote_write(Link&, const Piece*, unsigned, const RemoteMemory*,
                                          unsigned, uint32_t) noexcept override {
    return {RemoteStatus::unsupported, 0};
  }
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override;
  [[nodiscard]] Doorbell* doorbell() noexcept override { return nullptr; }
  void set_doorbell(Doorbell& doorbell) noexcept override;
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override;
  void disarm() noexcept override;
  [[nodiscard]] int64_t sleep_limit_ns() noexcept override;
  [[nodiscard]] bool all_delivered() noexcept override;
  void check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept override;
  [[nodiscard]] NetworkCounters network_counters() const noexcept override;
  [[nodiscard]] std::string statistics() const override;
  [[nodiscard]] std::string describe() const override;

 private:
  static constexpr unsigned receive_burst = 32;
  // After it a frame that is kept is tried again, which found no room for its message.
  static constexpr uint64_t room_retry_ns = 1'000'000;
  // Without a descriptor (sleep.cc): the first pause between looks, and how long it pays to poll before one. A
  // pause lasts as much longer as a timer is late and a thread takes to wake.
  static constexpr int64_t shortest_pause_ns = 50'000;
  static constexpr uint64_t spin_beside_pauses_ns = 8 * shortest_pause_ns;
  static constexpr unsigned send_burst = PacketLink::largest_burst;
  static constexpr unsigned delivery_burst = 32;

  struct Count {
    std::atomic<uint64_t> value{0};
    void add(uint64_t n = 1) noexcept { value.fetch_add(n, std::memory_order_relaxed); }
  };
  struct Counts {
    Count retransmissions, timeouts, datagrams_sent, datagrams_received, acks_sent, duplicates,
        early, dropped_for_room, damaged, malformed, strangers, resets_received, handshakes_refused,
        connections_opened, connections_failed;
  };

  ReliableTransport(std::unique_ptr<PacketLink> link, const ReliableSettings& settings);
  bool open_pools();

  // connect.cc
  static uint64_t key_of(ProcessId peer) noexcept { return uint64_t{peer.nid} << 32 | peer.pid; }
  Connection* find(ProcessId peer);          // takes mutex_
  Connection* find_or_make(ProcessId peer);  // takes mutex_; nullptr: too many
  void renumber(Connection& connection) noexcept;
  void make_idle(Connection& connection) noexcept;  // failed -> idle; its lock is held
  Connection* by_number(uint64_t number) noexcept;

  // handshake.cc: the side that opens
  void start_opening(Connection& connection, uint64_t now) noexcept;  // lock held
  void attempt_opening(Connection& connection, uint64_t now) noexcept;
  void handle_handshake(MessageSink& sink, const InboundFrame& frame, const FrameHeader& header,
                        uint64_t now) noexcept;
  Connection* opening_connection(const InboundFrame& frame, const FrameHeader& header,
                                 const HandshakeBody& body) noexcept;
  void handle_challenge(Connection& connection, const HandshakeBody& body, uint64_t now) noexcept;
  void handle_accept(MessageSink& sink, Connection& connection, const HandshakeBody& body,
                     uint64_t now) noexcept;
  void handle_refuse(MessageSink& sink, Connection& connection, const HandshakeBody& body) noexcept;
  void handle_reset(MessageSink& sink, const InboundFrame& frame) noexcept;
  HandshakeBody own_body(ProcessId to) const noexcept;
  void send_handshake(FrameType type, const LinkAddress& to, uint64_t receiver_number,
                      HandshakeBody body) noexcept;
  void establish(Connection& connection, const HandshakeBody& body, uint64_t now) noexcept;

  // accept.cc: the side that is called
  void handle_hello(const InboundFrame& frame, const HandshakeBody& body, uint64_t now) noexcept;
  void handle_connect(MessageSink& sink, const InboundFrame& frame, const HandshakeBody& body,
                      uint64_t now) noexcept;
  RefuseCause judge(const HandshakeBody& body) const noexcept;
  void refuse(const InboundFrame& frame, const HandshakeBody& body, RefuseCause cause) noexcept;
  Connection* place_for(MessageSink& sink, ProcessId peer, const HandshakeBody& body) noexcept;
  void send_accept(const Connection& connection, const HandshakeBody& body) noexcept;
  void send_reset(const InboundFrame& frame, const FrameHeader& header) noexcept;

  // send.cc
  SendStatus send_datagram(Connection& connection, const MessageHeader& header, const Piece* pieces,
                           unsigned count, uint32_t length) noexcept;
  SendStatus queue_message(Connection& connection, const MessageHeader& header, const Piece* pieces,
                           unsigned count, uint32_t length) noexcept;
  static bool check_body(const Connection& connection, FrameBuffer& frame) noexcept;
  static void check_again(const Connection& connection, FrameBuffer& frame) noexcept;
  // Lock held: sends what the windows allow.
  void transmit(Connection& connection, uint64_t now) noexcept;
  void fill_header(Connection& connection, FrameHeader& header, FrameType type,
                   uint64_t now) const noexcept;
  void note_acknowledged(Connection& connection) noexcept;  // an acknowledgement goes out

  // bundle.cc
  std::optional<SendStatus> join_last_frame(Connection& connection, const MessageHeader& header,
                                            const Piece* pieces, unsigned count,
                                            uint32_t length) noexcept;  // lock held
  unsigned unbundle(const std::byte* body, uint32_t length,
                    MessageHeader (&headers)[most_bundled]) const noexcept;

  // hold_back.cc
  bool holds_back(Connection& connection, const MessageHeader& header,
                  uint64_t now) noexcept;  // lock held
  void end_hold(uint64_t now) noexcept;
  void end_hold_if_due(uint64_t now) noexcept {
    if (now >= held_until_ns_) end_hold(now);
  }

  // receive.cc
  void handle_frame(MessageSink& sink, const InboundFrame& frame, uint64_t now) noexcept;
  void handle_connection_frame(MessageSink& sink, const InboundFrame& frame,
                               const FrameHeader& header, uint64_t now) noexcept;
  bool handle_acknowledgement(Connection& connection, const InboundFrame& frame,
                              const FrameHeader& header, uint64_t now) noexcept;
  bool acknowledge_sent(Connection& connection, uint32_t acknowledged, uint8_t delay,
                        std::span<const uint64_t> selective, uint64_t now) noexcept;  // lock held
  enum class Handled : uint8_t { yes, not_yet, malformed };
  Handled handle_next(MessageSink& sink, Connection& connection, const InboundFrame& frame,
                      const FrameHeader& header, uint64_t now) noexcept;
  void handle_data(MessageSink& sink, Connection& connection, const InboundFrame& frame,
                   const FrameHeader& header, uint64_t now) noexcept;
  bool take_kept(MessageSink& sink, Connection& connection, uint64_t now) noexcept;
  void handle_early(MessageSink& sink, Connection& connection, const InboundFrame& frame,
                    const FrameHeader& header, uint64_t now) noexcept;

  // deliver.cc
  enum class Taken : uint8_t { yes, no_room, malformed };
  // The next numbered frame. `held`: the buffer that the body lies in, if it is not the link's; taken over on yes.
  Taken take_frame(MessageSink& sink, Connection& connection, uint8_t flags, const std::byte* body,
                   uint32_t length, FrameBuffer* held, uint64_t now) noexcept;
  Taken take_early(MessageSink& sink, Connection& connection, FrameBuffer* early,
                   uint64_t now) noexcept;
  void go_on_after(MessageSink& sink, Connection& connection, Taken taken, FrameBuffer* early,
                   uint32_t length, uint64_t now) noexcept;
  Taken take_fragment(MessageSink& sink, Connection& connection, uint8_t flags,
                      const std::byte* body, uint32_t length, uint64_t now) noexcept;
  bool begin_long_message(MessageSink& sink, Connection& connection, uint32_t bytes,
                          uint64_t now) noexcept;
  Taken take_messages(MessageSink& sink, Connection& connection, const std::byte* body,
                      uint32_t length, FrameBuffer* held) noexcept;
  bool is_plausible(const MessageHeader& header) const noexcept;
  bool is_part_of_long_message(uint8_t flags, const std::byte* body, uint32_t length,
                               MessageHeader& header) const noexcept;
  void announce(MessageSink& sink, Connection& connection) noexcept;
  void add_to_batch(MessageSink& sink, Connection& connection, const MessageHeader& header,
                    const std::byte* payload, uint32_t length, FrameBuffer* held,
                    FramePool* held_from) noexcept;
  void deliver_batch(MessageSink& sink) noexcept;

  // acknowledge.cc
  void touch(Connection& connection) noexcept;
  void acknowledge_soon(Connection& connection) noexcept;  // when this burst is done
  void note_arrival(Connection& connection, uint32_t bytes, uint64_t now) noexcept;  // lock held
  void settle_acknowledgements(uint64_t now) noexcept;
  bool put_off_or_acknowledge(Connection& connection, const FrameHeader& header,
                              uint64_t now) noexcept;  // lock held
  void make_up_for(Connection& connection) noexcept;   // lock held: for what was put off
  void make_up_for_all() noexcept;
  void send_ack(Connection& connection, FrameType type, uint64_t now) noexcept;  // lock held

  // timers.cc
  void list(Connection& connection, uint64_t at_ns) noexcept;  // lock held: a timer at that time
  void adopt_listed() noexcept;
  void run_timers(MessageSink& sink, uint64_t now) noexcept;
  // The next time, UINT64_MAX when there is none; `failure`: why the connection must fail.
  uint64_t run_timers_of(Connection& connection, uint64_t now, const char*& failure) noexcept;
  uint64_t watch_unfinished(Connection& connection, uint64_t now, bool unreachable,
                            const char*& failure) noexcept;
  uint64_t longest_silence_ns() const noexcept;  // after it a peer is asked for an answer
  void fail(MessageSink& sink, Connection& connection, const char* why) noexcept;

  // sleep.cc
  void go_quiet(uint64_t now) noexcept;
  void leave_quiet(uint64_t now) noexcept;
  bool watches() const noexcept { return watch_.running(); }
  void take_unreachable_hints(uint64_t now) noexcept;

  std::unique_ptr<PacketLink> link_;
  bool sends_from_anywhere_;
  uint64_t acknowledged_at_once_bytes_;
  ReliableSettings settings_;
  Capabilities capabilities_;
  ProcessId own_id_;
  uint64_t incarnation_ = 0;
  CookieMaker cookies_;
  JobProof proof_;
  mutable Counts counts_;

  FramePool send_pool_;     // sent and not acknowledged
  FramePool receive_pool_;  // arrived early
  Reassembly reassembly_;

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Connection*> table_;
  Arena<Connection> connections_;

  Doorbell* doorbell_ = nullptr;
  DescriptorWatch watch_;
  // Set by whoever makes work for a quiet poller.
  alignas(64) std::atomic<bool> disturbed_{true};
  std::atomic<uint64_t> earliest_timer_ns_{UINT64_MAX};  // nothing is due before
  std::atomic<Connection*> newly_listed_{nullptr};

  // The poller's.
  alignas(64) Connection* active_ = nullptr;  // those with timers, through next_listed
  Connection* touched_ = nullptr;  // to be acknowledged after this burst, through next_touched
  Connection* held_ = nullptr;     // the one with an acknowledgement that is held back
  uint64_t held_until_ns_ = 0;
  Connection* put_off_ =
      nullptr;  // those with an acknowledgement that was put off, through next_put_off
  bool quiet_ = false;
  uint64_t last_frame_ns_ = 0;
  struct Batch {
    Connection* connection = nullptr;
    unsigned count = 0;
    unsigned held_count = 0;
    InboundMessage messages[delivery_burst];
    FrameBuffer* held[delivery_burst];  // what messages point into, released afterwards
    FramePool* held_from[delivery_burst];
  } batch_;
  unsigned handed_up_ = 0;  // in this poll
};

}  // namespace lintel
