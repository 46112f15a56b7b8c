// Cookies: a process that connects gets one, and must return it before the receiver keeps any state
// of it. And how many frames that prove nothing are answered. Connection path; the poller.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "reliable/frame.h"
#include "transport/packet_link.h"
#include "util/random.h"

namespace lintel {

// A cookie is a keyed hash of address and time, and needs no memory.
class CookieMaker {
 public:
  // Makes a random key.
  CookieMaker() noexcept;

  // Makes the cookie for the handshake of `body` from that address. It is valid for 10 to 20
  // seconds and for one connection: `predecessor` is the caller's number of its last one, or 0.
  [[nodiscard]] uint64_t make(const LinkAddress& from, const HandshakeBody& body,
                              uint64_t predecessor, uint64_t now_ns) const noexcept;
  [[nodiscard]] bool is_good(uint64_t cookie, const LinkAddress& from, const HandshakeBody& body,
                             uint64_t predecessor, uint64_t now_ns) const noexcept;

 private:
  [[nodiscard]] uint64_t make_for_period(const LinkAddress& from, const HandshakeBody& body,
                                         uint64_t predecessor, uint64_t period) const noexcept;
  uint64_t key_[2];
};

// SipHash-2-4 (Aumasson, Bernstein): a short keyed hash that cannot be forged without the key.
[[nodiscard]] uint64_t siphash(const uint64_t (&key)[2], const void* data, size_t bytes) noexcept;

// Limits the answers to frames of each host that prove nothing: hellos, frames of unknown
// connections, frames of other versions. Their sources may be invented, so that the answer goes to
// a host that did not ask.
class AnswerLimit {
 public:
  static constexpr uint64_t per_second = 10'000;
  static constexpr uint64_t at_once = 1'000;  // after a pause

  explicit AnswerLimit(const LinkAddress& host_mask) noexcept : host_mask_(host_mask) {
    fill_random(key_, sizeof key_);
  }

  // False: the host of that address has had its share.
  [[nodiscard]] bool admit(const LinkAddress& to, uint64_t now_ns) noexcept {
    uint64_t& busy_until_ns = busy_until_ns_[place_of(to)];
    const uint64_t from_ns = std::max(busy_until_ns, now_ns);
    if (from_ns - now_ns > (at_once - 1) * gap_ns) return false;
    busy_until_ns = from_ns + gap_ns;
    return true;
  }

 private:
  static constexpr uint64_t gap_ns = 1'000'000'000 / per_second;
  static constexpr size_t places = 1024;

  // Hosts share a place by chance, and nobody can choose whose.
  [[nodiscard]] size_t place_of(const LinkAddress& address) const noexcept {
    LinkAddress host;
    for (size_t i = 0; i < host.bytes.size(); ++i)
      host.bytes[i] = address.bytes[i] & host_mask_.bytes[i];
    return siphash(key_, host.bytes.data(), host.bytes.size()) % places;
  }

  const LinkAddress host_mask_;
  uint64_t key_[2] = {};
  std::array<uint64_t, places> busy_until_ns_{};
};

}  // namespace lintel
