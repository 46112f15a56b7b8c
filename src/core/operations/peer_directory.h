// The peers of a physical interface and the links to them: connects on first use, accepts peers
// that connect.
// find_or_connect() of a connected peer is on the message path, everything else on the connection
// path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/operations/peer.h"
#include "transport/opened_transports.h"
#include "transport/polling.h"
#include "transport/process_key.h"
#include "transport/transport.h"
#include "util/lock.h"
#include "util/log.h"

namespace lintel {

// Finds the peer with a physical address. Lookups take no lock; peers are added, never removed.
class PeerTable {
 public:
  [[nodiscard]] bool open() noexcept;

  [[nodiscard]] Peer* find(ProcessId id) const noexcept {
    const Slots* slots = slots_.load(std::memory_order_acquire);
    for (uint64_t i = hash(id);; ++i) {
      Peer* peer = slots->at[i & slots->mask].load(std::memory_order_acquire);
      if (peer == nullptr || peer->id == id) return peer;
    }
  }
  // The caller excludes other inserts. nullptr when no more peers fit.
  [[nodiscard]] Peer* insert(ProcessId id) noexcept;

  // In the order of their insertion.
  [[nodiscard]] std::span<Peer> all() const noexcept {
    const uint32_t size = peers_.high_water();
    return size != 0 ? std::span(&peers_.at(0), size) : std::span<Peer>();
  }

 private:
  struct Slots {
    explicit Slots(uint64_t capacity)
        : mask(capacity - 1), at(new std::atomic<Peer*>[capacity]()) {}
    uint64_t mask;
    std::unique_ptr<std::atomic<Peer*>[]> at;
  };
  static uint64_t hash(ProcessId id) noexcept { return (key_of(id) * 0x9e3779b97f4a7c15u) >> 32; }
  static void place(Slots& slots, Peer& peer) noexcept;

  Arena<Peer> peers_;
  std::atomic<Slots*> slots_{nullptr};
  // Every table that a reader may still look at: all of them, a third more than the last one.
  std::vector<std::unique_ptr<Slots>> generations_;
};

// The use of a link for a peer that is connected already. A process has several links if both sides
// connected at the same time, each by another transport. Messages to it travel by one link only, so
// they stay in order; messages from it are taken from all of them.
enum class LinkRelation : uint8_t {
  sends,               // messages to the peer travel by it
  receives,            // messages of the same process come by it as well
  replaces,            // nothing was sent by the one that sends, which has found no process yet
  of_another_process,  // whose address is that of the peer
};
// `link` is one of `transport`. The lock of the PeerDirectory is held.
[[nodiscard]] LinkRelation relation_of(const Peer& peer, Transport& transport, Link& link) noexcept;

// How a process is reached.
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
  [[nodiscard]] static Peer* peer_of(Link& link) noexcept {
    return static_cast<Peer*>(std::atomic_ref<void*>(link.context).load(std::memory_order_acquire));
  }
  // The poller may see a link before the thread that connected has finished with it.
  static void set_peer(Link& link, Peer* peer) noexcept {
    std::atomic_ref<void*>(link.context).store(peer, std::memory_order_release);
  }

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

  // To the log. `in_order`: nothing was outstanding.
  static void tell_of_failure(Peer& peer, const Link::Failure& failure, bool in_order) noexcept
      LINTEL_REQUIRES(polling);
  // See MessageSink::exclude_senders().
  [[nodiscard]] bool exclude_senders(Link& link, void (*action)(Link&, void*),
                                     void* argument) noexcept;

  // Connects if that is the first use; a peer that has failed is not connected again.
  [[nodiscard]] PeerPath path_to(ProcessId id);

  // Messages of a kind sent to all peers, or the bytes of their payloads.
  [[nodiscard]] uint64_t sent(MessageKind kind, bool bytes) const noexcept;
  [[nodiscard]] std::span<Peer> all() const noexcept { return table_.all(); }
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
      for (Peer& peer : all()) {
        if (!peer.is_awaited() || peer.route.transport != transport.get()) continue;
        links[count++] = peer.route.link;
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
  // Why a peer is served by the transport with index `chosen`, or by none if that is their number,
  // and not by one that is tried before it. `answers`: what those said; empty where one was not
  // tried. The text stays.
  [[nodiscard]] const std::string& reason_for(size_t chosen,
                                              const std::vector<std::string>& answers)
      LINTEL_REQUIRES(mutex_);

  Transports transports_;
  std::span<const OpenedTransports::Unused> unused_;
  PollFlag* in_process_sends_ = nullptr;
  Doorbell* doorbell_ = nullptr;
  PeerTable table_;
  Arena<AwaitedPuts::Ring> awaited_put_rings_;
  // Recursive: what a failing peer's events set off may connect to another.
  RecursiveMutex mutex_;
  std::set<std::string> reasons_ LINTEL_GUARDED_BY(mutex_);  // most peers have one of a few
  SaidRecently said_unreached_ LINTEL_GUARDED_BY(mutex_);
  // The last process that could not be connected.
  const std::string* unreached_because_ LINTEL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace lintel
