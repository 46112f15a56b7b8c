// The life of a connection: its state, the names that both sides have for it, and the attempt to
// open it. Only the poller establishes and fails it, with the connection's lock held, so the poller
// may read what belongs to those states without the lock. Connection path, but for what only reads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "reliable/frame.h"
#include "reliable/job_proof.h"
#include "reliable/peer_silence.h"
#include "transport/packet_link.h"
#include "util/assert.h"
#include "util/random.h"

namespace lintel {

enum class ConnectionState : uint8_t { idle, opening, established, failed };

// An attempt to connect: exists only while a connection is opening.
class Opening {
 public:
  // With a key pair if there is a module that makes them. False: that failed.
  [[nodiscard]] bool start(const CryptoModule* crypto, uint64_t now_ns) noexcept {
    started_ns_ = now_ns;
    fill_random(nonce_, nonce_bytes);
    return crypto == nullptr || keys_.make_share(*crypto);
  }
  // Returns when the next one is due.
  [[nodiscard]] uint64_t count_attempt(uint64_t now_ns) noexcept {
    return next_attempt_ns_ = now_ns + (first_gap_ns << std::min(attempts_++, most_doublings));
  }
  [[nodiscard]] uint64_t next_attempt_ns() const noexcept { return next_attempt_ns_; }
  // Number of attempts since it was started or challenged.
  [[nodiscard]] unsigned attempts() const noexcept { return attempts_; }
  // Whether the peer may be called, or challenge, by another path than that of the route.
  [[nodiscard]] bool seeks_path() const noexcept {
    return !challenged_ || attempts_ > most_connects;
  }
  void note_route(ResolveStatus status) noexcept { route_ = status; }
  [[nodiscard]] bool is_routed() const noexcept { return route_ == ResolveStatus::resolved; }
  [[nodiscard]] bool is_unreachable() const noexcept {
    return route_ == ResolveStatus::unreachable;
  }
  // False: a duplicate.
  [[nodiscard]] bool take_challenge(uint64_t cookie) noexcept {
    LINTEL_ASSERT(is_routed());
    if (challenged_ && cookie_ == cookie) return false;
    challenged_ = true;
    cookie_ = cookie;
    attempts_ = 0;
    return true;
  }
  [[nodiscard]] bool is_challenged() const noexcept { return challenged_; }
  // Writes the fields that every frame of the attempt carries.
  void write_to(HandshakeBody& body) const noexcept {
    LINTEL_ASSERT(challenged_ || cookie_ == 0);
    body.cookie = cookie_;
    std::memcpy(body.nonce, nonce_, nonce_bytes);
    std::memcpy(body.share, keys_.share(), share_bytes);
  }
  [[nodiscard]] const uint8_t (&nonce() const noexcept)[nonce_bytes] { return nonce_; }
  [[nodiscard]] SessionKeys& keys() noexcept { return keys_; }
  // A refusal without a proof: another process may have sent it. An acceptance that comes soon
  // overrides it.
  void note_refusal(RefuseCause cause, uint64_t now_ns) noexcept {
    if (refusal_ != RefuseCause::none) return;
    refusal_ = cause;
    refused_ns_ = now_ns;
  }
  [[nodiscard]] RefuseCause refusal() const noexcept { return refusal_; }
  [[nodiscard]] uint64_t refused_for_ns(uint64_t now_ns) const noexcept {
    return refusal_ == RefuseCause::none ? 0 : elapsed_ns(refused_ns_, now_ns);
  }
  [[nodiscard]] uint64_t lasts_ns(uint64_t now_ns) const noexcept {
    return elapsed_ns(started_ns_, now_ns);
  }
  void extend(const OwnPauses::Extension& extension, uint64_t now_ns) noexcept {
    started_ns_ = extension.moved(started_ns_, now_ns);
    refused_ns_ = extension.moved(refused_ns_, now_ns);
  }

 private:
  static constexpr uint64_t first_gap_ns = 2'000'000;
  static constexpr unsigned most_doublings = 6;
  // Maximum number of attempts by the path of a challenge alone: for about 60 ms.
  static constexpr unsigned most_connects = 4;

  uint8_t nonce_[nonce_bytes];
  uint64_t cookie_ = 0;  // of the target's challenge
  bool challenged_ = false;
  ResolveStatus route_ = ResolveStatus::pending;
  RefuseCause refusal_ = RefuseCause::none;
  uint64_t refused_ns_ = 0;
  SessionKeys keys_;
  unsigned attempts_ = 0;
  uint64_t started_ns_ = 0;
  uint64_t next_attempt_ns_ = 0;
};

class ConnectionLife {
 public:
  [[nodiscard]] ConnectionState state(
      std::memory_order order = std::memory_order_acquire) const noexcept {
    return state_.load(order);
  }
  [[nodiscard]] bool is(ConnectionState expected) const noexcept { return state() == expected; }
  [[nodiscard]] bool is_established() const noexcept { return is(ConnectionState::established); }

  // Makes the connection idle, under another number.
  void renew(uint64_t number) noexcept {
    LINTEL_ASSERT(number != 0);
    move_to(ConnectionState::idle);
    number_ = number;
    incarnation_ = 0;
    announced_ = reported_ = false;
  }
  // Prepares the connection for another peer.
  void forget_peer() noexcept { peer_number_ = cookie_ = 0; }
  void open(std::unique_ptr<Opening> opening) noexcept {
    LINTEL_ASSERT(opening != nullptr);
    opening_ = std::move(opening);
    move_to(ConnectionState::opening);
  }
  void set_route(const Route& route) noexcept { route_ = route; }
  // The peer has called, with that cookie.
  void note_call(const Route& route, uint64_t cookie) noexcept {
    route_ = route;
    cookie_ = cookie;
  }
  // `by_first_port`: the route leads to the first port of the peer.
  void establish(uint64_t peer_number, uint64_t incarnation, bool by_first_port) noexcept {
    LINTEL_ASSERT(peer_number != 0 && incarnation != 0);
    opening_.reset();
    peer_number_ = peer_number;
    incarnation_ = incarnation;
    by_first_port_ = by_first_port;
    move_to(ConnectionState::established);
  }
  void fail() noexcept {
    opening_.reset();
    move_to(ConnectionState::failed);
  }
  // Its failure was reported: no reference is left, and its place may be taken.
  void note_reported() noexcept {
    LINTEL_ASSERT(is(ConnectionState::failed));
    reported_ = true;
  }
  [[nodiscard]] bool is_reported() const noexcept { return reported_; }
  // The poller. True once: the sink is to be given this incarnation.
  [[nodiscard]] bool announce() noexcept {
    if (announced_) return false;
    return announced_ = true;
  }

  // Number of this side, in frames from the peer.
  [[nodiscard]] uint64_t number() const noexcept { return number_; }
  // Number of the peer, or of its last connection, in frames to it.
  [[nodiscard]] uint64_t peer_number() const noexcept { return peer_number_; }
  // Incarnation of the peer; 0 until it has connected.
  [[nodiscard]] uint64_t incarnation() const noexcept { return incarnation_; }
  // Cookie of the last call of the peer.
  [[nodiscard]] uint64_t cookie() const noexcept { return cookie_; }
  // The route by which the peer was heard last.
  [[nodiscard]] const Route& route() const noexcept { return route_; }
  // Whether it led to the first port of the peer when the connection was established.
  [[nodiscard]] bool is_by_first_port() const noexcept { return by_first_port_; }
  // The peer was heard by another path.
  void note_source(const LinkAddress& from) noexcept { route_.address = from; }
  // nullptr unless the connection is opening.
  [[nodiscard]] Opening* opening() const noexcept { return opening_.get(); }

 private:
  // idle -> opening -> established -> failed -> idle; a peer that calls establishes an idle one;
  // one that is opening may fail.
  void move_to(ConnectionState next) noexcept {
    LINTEL_ASSERT(may_follow(state(std::memory_order_relaxed), next));
    state_.store(next, std::memory_order_release);
  }
  [[nodiscard]] static bool may_follow(ConnectionState state, ConnectionState next) noexcept {
    switch (next) {
      case ConnectionState::idle:
        return state == ConnectionState::idle || state == ConnectionState::failed;
      case ConnectionState::opening:
        return state == ConnectionState::idle;
      case ConnectionState::established:
        return state == ConnectionState::idle || state == ConnectionState::opening;
      case ConnectionState::failed:
        return state == ConnectionState::opening || state == ConnectionState::established;
    }
    return false;
  }

  std::atomic<ConnectionState> state_{ConnectionState::idle};
  bool announced_ = false;
  bool reported_ = false;
  bool by_first_port_ = true;
  uint64_t number_ = 0;
  uint64_t peer_number_ = 0;
  uint64_t incarnation_ = 0;
  uint64_t cookie_ = 0;
  Route route_;
  std::unique_ptr<Opening> opening_;
};

}  // namespace lintel
