// Long accesses to memory of peers, by chunks over several ports. A chunk goes by the port that
// will end it first, by what it has to do and how fast it has been; from and to memory of a device,
// by the nearest ports alone. A chunk that a further port did
// not do goes by the first port. If that fails too, the access has failed, and its data travel in
// messages. Message path of large payloads.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "util/arena.h"
#include "util/counter.h"
#include "verbs/rail_links.h"

namespace lintel {

// How fast a port ends chunks.
class PortRate {
 public:
  void begin(uint64_t bytes, uint64_t now) noexcept;
  void end(uint64_t bytes, bool success, uint64_t now) noexcept;
  [[nodiscard]] uint64_t outstanding() const noexcept { return outstanding_; }
  // Bytes in 1024 ns; 0: not known, or not lately.
  [[nodiscard]] uint64_t rate(uint64_t now) const noexcept;

 private:
  uint64_t outstanding_ = 0;  // bytes
  uint64_t since_ns_ = 0;     // start of the measurement
  uint64_t ended_ = 0;        // bytes, since then
  uint64_t measured_ns_ = 0;
  uint64_t rate_ = 0;
};

struct StripedAccess {
  static constexpr unsigned most_ports = most_rails;
  static constexpr unsigned most_chunks = 4;  // by one port at a time
  struct Span {
    uint64_t offset;
    uint64_t bytes;
  };
  std::atomic<uint32_t> next_free{0};
  VerbsLink* link = nullptr;
  uint32_t token = 0;
  bool writes = false;
  bool waits = false;  // for room, for a notice, or for the end of a queue pair
  RemoteStatus outcome = RemoteStatus::done;
  uint8_t excluded = 0;  // ports, as bits
  uint8_t distant = 0;   // ports that are farther than others from the device with the memory
  uint8_t fenced = 0;    // ports by which writes failed that may still arrive
  uint8_t acquired = 0;  // ports with which the local memory is registered
  uint8_t chunks[most_ports] = {};
  unsigned outstanding = 0;  // chunks by all ports
  unsigned local_count = 0;
  unsigned remote_count = 0;
  unsigned repeat_count = 0;
  uint64_t length = 0;
  uint64_t posted = 0;  // bytes; repeated ones count once
  Span repeats[most_ports * most_chunks];
  Piece local[RemoteAccess::most_pieces];
  RemoteMemory remote[RemoteAccess::most_pieces];
  const RegisteredRegion* regions[most_ports][RemoteAccess::most_pieces];

  [[nodiscard]] bool has_more() const noexcept { return repeat_count != 0 || posted < length; }
};

class StripedAccesses final : public RailsOfPeers, private MessageSink {
 public:
  static constexpr uint64_t least_bytes = uint64_t{512} << 10;
  static constexpr uint64_t chunk_bytes = uint64_t{256} << 10;

  // `further`: the devices but the first. `first`: the port of messages.
  StripedAccesses(const VerbsDevices& further, Transport& datagrams, ConnectedPort& first,
                  const VerbsSettings& settings);
  ~StripedAccesses();

  // Set-up path. False: no address space.
  [[nodiscard]] bool open();
  [[nodiscard]] RailLinks& rails() noexcept { return rails_; }
  [[nodiscard]] const RailLinks& rails() const noexcept { return rails_; }

  // Any thread; the caller holds the peer's send lock. Tells the peer the keys of memory that was
  // exposed by the first port, for its queue pairs by further ports.
  void expose(VerbsLink& link, const Piece* pieces, unsigned count, bool write,
              const RemoteMemory* told, uint32_t number) noexcept;
  void withdraw(VerbsLink& link, uint32_t number, bool peer_may_access) noexcept;

  // The poller. Implements Transport::remote_access() for long accesses.
  [[nodiscard]] bool suits(const VerbsLink& link, const Piece* local,
                           unsigned count) const noexcept;
  [[nodiscard]] RemoteResult start(VerbsLink& link, const Piece* local, unsigned local_count,
                                   const RemoteMemory* remote, unsigned remote_count, bool writes,
                                   uint32_t token) noexcept;
  // Results go to `sink`, valid until the next call.
  void set_sink(MessageSink* sink) noexcept { results_ = sink; }
  // Goes on with accesses that wait.
  void serve() noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool has_waiting() const noexcept;
  void fail(VerbsLink& link) noexcept override LINTEL_REQUIRES(polling);

  [[nodiscard]] uint64_t repeated() const noexcept { return repeated_.get(); }

 private:
  struct Chunk {
    std::atomic<uint32_t> next_free{0};
    uint32_t access = 0;
    uint8_t port = 0;
    StripedAccess::Span span{};
  };

  void post_chunks(StripedAccess& access) noexcept;
  [[nodiscard]] RemoteStatus post_chunk(StripedAccess& access, unsigned port,
                                        const StripedAccess::Span& span) noexcept;
  [[nodiscard]] unsigned choose_port(StripedAccess& access) noexcept;
  // `without`: ports, as bits. `all_known` becomes false if a port has not got its keys.
  [[nodiscard]] unsigned first_to_end(const StripedAccess& access, uint8_t without,
                                      bool& all_known) const noexcept;
  [[nodiscard]] uint8_t distant_ports(const Piece& memory) noexcept;
  [[nodiscard]] bool acquire(StripedAccess& access, unsigned port) noexcept;
  [[nodiscard]] bool is_fenced(StripedAccess& access) const noexcept;
  [[nodiscard]] RailLink* rail_by(const VerbsLink& link, unsigned port) const noexcept;
  void proceed(StripedAccess& access) noexcept LINTEL_REQUIRES(polling);
  void release(StripedAccess& access) noexcept;
  [[nodiscard]] ConnectedPort& port(unsigned number) noexcept {
    return number == 0 ? first_ : rails_.port(number - 1);
  }

  // Sink of the ports.
  void* on_new_link(Link&) noexcept override { return nullptr; }
  void on_messages(Link&, const InboundMessage*, unsigned) noexcept override {}
  void on_peer_failed(Link&) noexcept override {}
  void on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept override
      LINTEL_REQUIRES(polling);
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return false; }

  ConnectedPort& first_;
  RailLinks rails_;
  MessageSink* results_ = nullptr;
  Arena<StripedAccess> accesses_;
  Arena<Chunk> chunks_;
  std::vector<StripedAccess*> active_;  // has room for all
  PortRate rates_[StripedAccess::most_ports];
  SharedCounter repeated_;
};

}  // namespace lintel
