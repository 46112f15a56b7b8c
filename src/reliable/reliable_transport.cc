#include "reliable/reliable_transport.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "util/crc32c.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/peer_order.h"
#include "util/random.h"
#include "util/text.h"

namespace lintel {

namespace {
constexpr unsigned receive_burst = 32;
// Frames are checked first and copied when their messages are delivered. After so many bytes they
// are delivered, so that the copy still finds them in the cache, and acknowledged, so that the peer
// can send during the rest of the burst.
constexpr uint64_t bytes_before_delivery = 64 * 1024;
// Memory for messages of several frames: this fraction of the memory for frames, in addition to it.
constexpr uint64_t share_of_long_messages = 8;

Capabilities capabilities_of(const PacketLink& link) noexcept {
  return {link.name(),
          longest_eager_bytes,
          false,
          false,
          longest_eager_bytes,
          link.properties().sends_from_anywhere,
          link.properties().receives_by_system_call,
          link.descriptor() == PacketLink::no_descriptor ? QuietLink::spin_beside_pauses_ns : 0};
}
}  // namespace

std::unique_ptr<ReliableTransport> ReliableTransport::open(std::unique_ptr<PacketLink> link,
                                                           const ReliableSettings& settings,
                                                           std::string& reason) {
  std::unique_ptr<ReliableTransport> transport(new ReliableTransport(std::move(link), settings));
  uint64_t random = 0;
  if (!fill_random(&random, sizeof random))
    return explained(nullptr, reason,
                     "the kernel gives no random numbers (getrandom), which connections need");
  if (!transport->handshake_.open(reason)) return nullptr;
  if (!transport->open_pools())
    return explained(nullptr, reason, "no address space for its buffers (ulimit -v?)");
  return transport;
}

ReliableTransport::ReliableTransport(std::unique_ptr<PacketLink> link,
                                     const ReliableSettings& settings)
    : link_(std::move(link)),
      settings_(settings),
      capabilities_(capabilities_of(*link_)),
      timers_(wakeup_),
      quiet_(*link_, settings_, wakeup_, timers_),
      transmitter_(context()),
      acknowledger_(context(), transmitter_),
      sender_(context(), transmitter_, acknowledger_),
      closer_(context(), transmitter_, batch_),
      assembler_(context(), batch_, closer_),
      data_(context(), sender_, acknowledger_, batch_, closer_, assembler_),
      handshake_(context(), closer_),
      watch_(context(), handshake_, closer_, transmitter_, data_) {}

bool ReliableTransport::open_pools() {
  const uint32_t frame = std::max(link_->mtu(), PacketLink::least_mtu);
  const uint64_t half = settings_.memory_bytes / 2;
  if (!sent_.open(frame, half) || !received_.open(frame, half) || !transmitter_.open() ||
      !reassembly_.open(sizeof(MessageHeader) + max_eager_bytes,
                        settings_.memory_bytes / share_of_long_messages) ||
      !table_.open(settings_.most_connections, settings_.reuses_places))
    return false;
  link_->offer_memory(sent_.memory(), sent_.memory_bytes());
  return true;
}

// Sends goodbye frames to the peers. A peer that does not get one notices by a probe.
ReliableTransport::~ReliableTransport() {
  quiet_.stop();
  const uint64_t now_ns = settings_.clock();
  table_.for_each([&](Connection& connection) {
    const LockGuard guard(connection.lock);
    if (connection.life.is_established()) transmitter_.say_goodbye(connection, now_ns);
  });
  // Before the memory that it may still send from.
  link_.reset();
}

Link* ReliableTransport::connect(ProcessId peer, std::string* reason) {
  if (peer == link_->id()) {
    if (reason != nullptr) *reason = "that is this process itself";
    return nullptr;
  }
  Route route;
  const ResolveStatus status = link_->resolve(peer, route, reason);
  if (status == ResolveStatus::unreachable || status == ResolveStatus::no_route) return nullptr;
  Connection* const connection = table_.find_or_make(peer);
  if (connection == nullptr && reason != nullptr) *reason = "too many connections";
  return connection;
}

uint64_t ReliableTransport::incarnation(Link& link) const noexcept {
  auto& connection = static_cast<Connection&>(link);
  const LockGuard guard(connection.lock);
  return connection.life.incarnation();
}

SendStatus ReliableTransport::send(Link& link, const MessageHeader& header, const Piece* pieces,
                                   unsigned count) noexcept {
  auto& connection = static_cast<Connection&>(link);
  note_sending();
  const LockGuard guard(connection.lock);
  if (connection.life.is_established()) [[likely]]
    return sender_.send(connection, header, pieces, count);
  if (connection.life.is(ConnectionState::failed)) return SendStatus::peer_failed;
  if (connection.life.is(ConnectionState::idle)) handshake_.start(connection, settings_.clock());
  return SendStatus::connecting;
}

uint32_t ReliableTransport::payload_mark(Link& link) noexcept {
  auto& connection = static_cast<Connection&>(link);
  const LockGuard guard(connection.lock);
  return connection.send.window.next_sequence();
}

bool ReliableTransport::payloads_released(Link& link, uint32_t mark) noexcept {
  auto& connection = static_cast<Connection&>(link);
  const LockGuard guard(connection.lock);
  return connection.send.window.has_arrived_before(mark);
}

unsigned ReliableTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  acknowledger_.end_hold_if_due();
  if (!quiet_.is_worth_asking()) return 0;
  InboundFrame frames[receive_burst];
  const unsigned count = link_->receive(frames, std::min(budget, receive_burst));
  const uint64_t now_ns = settings_.clock();
  batch_.begin(sink);
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    bytes += frames[i].length;
    take(frames[i], now_ns);
    if (bytes < bytes_before_delivery) continue;
    bytes = 0;
    batch_.deliver();
    acknowledger_.settle(now_ns);
  }
  batch_.deliver();
  acknowledger_.settle(now_ns);
  if (timers_.is_due(now_ns)) {
    watch_.run_timers(now_ns, count != 0);
    batch_.deliver();
  }
  quiet_.asked(count, now_ns);
  // Frames without messages may have made room for what is queued.
  return std::max(batch_.handed_up(), count != 0 ? 1u : 0u);
}

// Each frame is checked before it is used.
[[gnu::always_inline]] inline void ReliableTransport::take(InboundFrame& frame,
                                                           uint64_t now_ns) noexcept {
  FrameHeader header;
  if (frame.length < sizeof header) {
    counters_.malformed.increment();
    return;
  }
  std::memcpy(&header, frame.data, sizeof header);
  if (header.version != frame_version) [[unlikely]]
    return handshake_.take_of_other_version(frame, header, now_ns);
  if ((header.flags & ~frame_flags_known) != 0) {
    counters_.malformed.increment();
    return;
  }
  switch (header.type) {
    case FrameType::data:
      if (Connection* const connection = connection_of(frame, header, now_ns))
        data_.take(*connection, frame, header, now_ns);
      return;
    case FrameType::datagram:
    case FrameType::ack:
    case FrameType::probe:
    case FrameType::goodbye:
    case FrameType::part:
      if (Connection* const connection = connection_of(frame, header, now_ns))
        take_unnumbered(*connection, frame, header, now_ns);
      return;
    case FrameType::hello:
    case FrameType::challenge:
    case FrameType::connect:
    case FrameType::accept:
    case FrameType::refuse:
      handshake_.take(frame, header, now_ns);
      return;
    case FrameType::reset:
      handshake_.take_reset(frame);
      return;
  }
  counters_.malformed.increment();
}

// Returns the connection, if the frame is good.
[[gnu::always_inline]] inline Connection* ReliableTransport::open_frame(
    Connection& connection, InboundFrame& frame, const FrameHeader& header) noexcept {
  const FrameProtection::Opened opened = connection.protection.open_frame(frame, header);
  if (opened == FrameProtection::Opened::good) [[likely]]
    return &connection;
  count_refused(opened);
  return nullptr;
}

void ReliableTransport::count_refused(FrameProtection::Opened opened) noexcept {
  switch (opened) {
    case FrameProtection::Opened::good:
      break;
    case FrameProtection::Opened::damaged:
      counters_.damaged.increment();
      break;
    case FrameProtection::Opened::replayed:
      counters_.replayed.increment();
      break;
    case FrameProtection::Opened::malformed:
      counters_.malformed.increment();
      break;
  }
}

// Returns the established connection of a good frame; nullptr: there is none, and the frame was
// counted.
Connection* ReliableTransport::connection_of(InboundFrame& frame, const FrameHeader& header,
                                             uint64_t now_ns) noexcept {
  Connection* const connection = table_.by_number(header.connection);
  if (connection == nullptr || !connection->life.is_established() ||
      connection->life.number() != header.connection) {
    counters_.strangers.increment();
    // While it opens, data may overtake what establishes it; they are repeated.
    const bool opens = connection != nullptr && connection->life.is(ConnectionState::opening);
    const bool expects_answer = header.type == FrameType::data || header.type == FrameType::probe ||
                                header.type == FrameType::part;
    if (!opens && expects_answer) handshake_.send_reset(frame, header, now_ns);
    return nullptr;
  }
  if (!(*frame.from == connection->life.route().address)) [[unlikely]]
    return connection_by_other_path(*connection, frame, header);
  return open_frame(*connection, frame, header);
}

// A peer with several paths changes between them, and answers follow it.
Connection* ReliableTransport::connection_by_other_path(Connection& connection, InboundFrame& frame,
                                                        const FrameHeader& header) noexcept {
  const LinkAddress from = *frame.from;
  if (!connection.has_path_to(from)) {
    counters_.strangers.increment();
    return nullptr;
  }
  if (open_frame(connection, frame, header) == nullptr) return nullptr;
  const LockGuard guard(connection.lock);
  connection.life.note_source(from);
  SendWindow& window = connection.send.window;
  if (window.has_several_paths() && !window.note_heard(from))
    window.further().answers_to = link_->with_rail(connection.peer, from);
  return &connection;
}

void ReliableTransport::take_unnumbered(Connection& connection, const InboundFrame& frame,
                                        const FrameHeader& header, uint64_t now_ns) noexcept {
  {
    const LockGuard guard(connection.lock);
    if (!sender_.take_acknowledgement(connection, frame, header, now_ns)) {
      counters_.malformed.increment();
      return;
    }
  }
  switch (header.type) {
    case FrameType::datagram:
      if (assembler_.take_whole(connection, frame.data + sizeof header,
                                frame.length - sizeof header))
        counters_.datagrams_received.increment();
      else
        counters_.malformed.increment();
      break;
    case FrameType::probe:
      acknowledger_.acknowledge_soon(connection);
      break;
    case FrameType::goodbye:
      closer_.fail(connection, "it has closed its interface");
      break;
    case FrameType::part:
      data_.take_part(connection, frame, header, now_ns);
      break;
    default:
      break;
  }
}

// True: everything that was sent has been acknowledged, too.
bool ReliableTransport::acknowledge_everything() noexcept {
  acknowledger_.end_hold();
  const uint64_t now_ns = settings_.clock();
  bool delivered = true;
  timers_.for_each([&](Connection& connection) {
    const LockGuard guard(connection.lock);
    if (!connection.life.is_established()) return;
    transmitter_.acknowledge_if_pending(connection, now_ns);
    delivered &= connection.send.window.empty();
  });
  return delivered;
}

bool ReliableTransport::arm(bool) noexcept {
  acknowledge_everything();
  return quiet_.arm();
}

bool ReliableTransport::all_delivered() noexcept { return acknowledge_everything(); }

void ReliableTransport::check_peers(MessageSink& sink, Link* const* watch,
                                    unsigned count) noexcept {
  batch_.begin(sink);
  watch_.check(watch, count, settings_.clock());
}

void ReliableTransport::write_state(StateWriter& out) const noexcept {
  static constexpr const char* states[] = {"idle", "opening", "established", "failed"};
  table_.for_each_unlocked([&](const Connection& connection) LINTEL_UNCHECKED_LOCKS {
    const SendWindow& send = connection.send.window;
    const ReceiveWindow& receive = connection.receive.window;
    out.line(
        "    %08x/%u %s: %u frames queued, %u not sent yet, %" PRIu64 " of %" PRIu64
        " bytes of the window in flight; next frame to send %u, expected %u%s; frames of %u bytes",
        connection.peer.nid, connection.peer.pid,
        states[static_cast<unsigned>(connection.life.state())], send.queue().frames(),
        send.queue().unsent_frames(), send.in_flight_bytes(), send.window_bytes(),
        send.next_sequence(), receive.expected(), receive.has_kept() ? ", later ones kept" : "",
        send.mtu().frame_bytes());
    for (unsigned i = 0; send.has_several_paths() && i < send.paths(); ++i)
      out.line(
          "      path %u %s: %" PRIu64 " of %" PRIu64 " bytes in flight, round trip %" PRIu64 " us",
          i, send.works(send.path(i)) ? "works" : "does not answer", send.path(i).in_flight_bytes(),
          send.path(i).window_bytes(), send.path(i).round_trip().smoothed_ns() / 1000);
  });
}

NetworkCounters ReliableTransport::network_counters() const noexcept {
  const LinkCounters link = link_->counters();
  NetworkCounters all{counters_.retransmissions,
                      counters_.damaged + counters_.replayed + counters_.malformed +
                          counters_.strangers + link.frames_malformed,
                      counters_.datagrams_sent, counters_.handshakes_refused,
                      counters_.paths_narrowed};
  static_assert(NetworkCounters::most_ports == most_rails);
  all.rail_bytes[0] = link.bytes_sent;
  for (unsigned i = 1; i < most_rails; ++i) {
    all.rail_bytes[i] = link.rail_bytes[i - 1];
    all.rail_bytes[0] -= std::min(all.rail_bytes[0], link.rail_bytes[i - 1]);
  }
  return all;
}

std::vector<Statistic> ReliableTransport::statistics() const {
  const LinkCounters link = link_->counters();
  std::vector<Statistic> all{{"frames sent", link.frames_sent},
                             {"frames received", link.frames_received},
                             {"repeated", counters_.retransmissions},
                             {"timeouts", counters_.timeouts},
                             {"acknowledgements alone", counters_.acks_sent},
                             {"duplicates", counters_.duplicates},
                             {"out of order", counters_.out_of_order},
                             {"without room", counters_.dropped_for_room},
                             {"damaged", counters_.damaged},
                             {"replayed", counters_.replayed},
                             {"malformed", counters_.malformed},
                             {"of no connection", counters_.strangers},
                             {"not answered", counters_.unanswered},
                             {"unreliable sent", counters_.datagrams_sent},
                             {"unreliable received", counters_.datagrams_received},
                             {"link full", link.send_full},
                             {"paths narrowed", counters_.paths_narrowed},
                             {"paths widened", counters_.paths_widened},
                             {"path probes", counters_.path_probes},
                             {"paths lost", counters_.paths_lost},
                             {"paths back", counters_.paths_back},
                             {"frames in parts", counters_.frames_in_parts},
                             {"connections", counters_.connections_opened},
                             {"connections failed", counters_.connections_failed},
                             {"connections refused", counters_.handshakes_refused}};
  static constexpr const char* by_rail[] = {"bytes by rail 1", "bytes by rail 2",
                                            "bytes by rail 3"};
  static_assert(std::size(by_rail) == most_rails - 1);
  for (unsigned i = 0; i + 1u < link_->properties().rail_count; ++i)
    all.push_back({by_rail[i], link.rail_bytes[i]});
  return all;
}

std::string ReliableTransport::describe() const {
  const bool checks = settings_.security == NetworkSecurity::off;
  return link_->describe() + (checks ? std::string(", ") + crc32c_method() : "") + "; " +
         handshake_.describe();
}

std::unique_ptr<Transport> reliable_over_link(std::unique_ptr<PacketLink> link,
                                              const ReliableSettings& settings,
                                              const Faults& faults, std::string& reason) {
  if (settings.job_key.empty() && settings.node_secret == nullptr)
    log_message(LogLevel::info,
                "%s: peers are not authenticated; set PTL_JOB_KEY to the same secret in all "
                "processes of a job",
                link->name());
  if (faults.any()) {
    log_message(LogLevel::info, "%s: PTL_FAULTS damages what is sent on purpose", link->name());
    link = std::make_unique<FaultyLink>(std::move(link), faults);
  }
  return ReliableTransport::open(std::move(link), settings, reason);
}

}  // namespace lintel
