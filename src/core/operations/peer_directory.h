// The peers of a physical interface and the links to them: connects on first use, accepts peers
// that connect.
// find_or_connect() of a connected peer is on the message path, everything else on the connection
// path.
#pragma once

#include <span>

#include "core/operations/peer_table.h"
#include "core/operations/transport_reasons.h"
#include "transport/polling.h"
#include "util/lock.h"
#include "util/log.h"

namespace lintel {

// Path to a process.
struct PeerPath {
  const char* transport;  // nullptr if no transport reaches the process
  std::string device;
  std::string reason;  // why no preceding transport is used, or why none reaches the process
};

class PeerDirectory {
 public:
  using Transports = std::span<const std::unique_ptr<Transport>>;  // ordered by preference

  // Set-up path. False: no address space. The transports and the list of unused ones must outlive
  // the directory.
  [[nodiscard]] bool open(Transports transports, std::span<const OpenedTransports::Unused> unused,
                          PollFlag& in_process_sends) noexcept;
  // Set-up path. `doorbell` is that of the own poller, which does not check peers before there are
  // any.
  void set_doorbell(Doorbell& doorbell) noexcept { doorbell_ = &doorbell; }

  // The peer with that address, connecting to it if this is the first use or it failed earlier.
  // nullptr: no transport reaches it.
  [[nodiscard]] Peer* find_or_connect(ProcessId id) noexcept {
    Peer* peer = table_.find(id);
    if (peer != nullptr && !peer->failed.load(std::memory_order_acquire)) [[likely]]
      return peer;
    return connect(id);
  }
  [[nodiscard]] Peer* find(ProcessId id) const noexcept { return table_.find(id); }
  // The peer behind a link; nullptr: the link is new.
  [[nodiscard]] static Peer* peer_of(Link& link) noexcept;
  static void set_peer(Link& link, Peer* peer) noexcept;

  // Held while peers connect or fail.
  [[nodiscard]] RecursiveMutex& mutex() noexcept LINTEL_RETURN_CAPABILITY(mutex_) { return mutex_; }
  // A process that is not connected has connected by itself. nullptr: too many peers.
  [[nodiscard]] Peer* accept(Link& link, Transport& transport) noexcept LINTEL_REQUIRES(mutex_);
  // The peer may have been connected before its process ran, when only a worse transport would do.
  // Before the first message goes to it, the better ones are tried once more. The poller.
  void reconsider(Peer& peer) noexcept {
    if (peer.awaits_process.load(std::memory_order_relaxed)) [[unlikely]]
      try_better(peer);
  }

  // Connects if that is the first use; a peer that has failed is not connected again.
  [[nodiscard]] PeerPath path_to(ProcessId id);

  // Messages of a kind sent to all peers, or the bytes of their payloads.
  [[nodiscard]] uint64_t sent(MessageKind kind, bool bytes) const noexcept;
  [[nodiscard]] const PeerTable& all() const noexcept { return table_; }
  // A peer in another process is connected.
  [[nodiscard]] bool has_others() const noexcept LINTEL_REQUIRES(polling);
  // An operation waits for a peer.
  [[nodiscard]] bool awaits_any() const noexcept LINTEL_REQUIRES(polling);
  // Has each transport check those of its peers that an operation waits for. Calls
  // check(Transport&, Link* const*, count).
  template <typename Check>
  void check_awaited(Check&& check) noexcept LINTEL_REQUIRES(polling) {
    constexpr unsigned checked_at_once = 64;
    Link* links[checked_at_once];
    for (const std::unique_ptr<Transport>& transport : transports_) {
      unsigned count = 0;
      for (uint32_t i = 0; i < table_.size(); ++i) {
        Peer& peer = table_.at(i);
        if (!peer.is_awaited() || peer.transport != transport.get()) continue;
        links[count++] = peer.link;
        if (count < checked_at_once) continue;
        check(*transport, links, count);
        count = 0;
      }
      check(*transport, links, count);
    }
  }

 private:
  [[nodiscard]] Peer* connect(ProcessId id) noexcept;
  void try_better(Peer& peer) noexcept;
  [[nodiscard]] bool attach_by_better(Peer& peer, const Transport& than,
                                      uint64_t incarnation) noexcept LINTEL_REQUIRES(mutex_);
  void attach(Peer& peer, Transport& transport, Link& link, const std::string& not_others) noexcept
      LINTEL_REQUIRES(mutex_);

  Transports transports_;
  PollFlag* in_process_sends_ = nullptr;
  Doorbell* doorbell_ = nullptr;
  PeerTable table_;
  Arena<CountedPuts::Ring> counted_put_rings_;
  // Recursive: what a failing peer's events set off may connect to another.
  RecursiveMutex mutex_;
  TransportReasons reasons_ LINTEL_GUARDED_BY(mutex_);
  SaidRecently said_unreached_ LINTEL_GUARDED_BY(mutex_);
  // The last process that could not be connected.
  const std::string* unreached_because_ LINTEL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace lintel
