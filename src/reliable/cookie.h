// Cookies: a process that connects gets one, and must return it before the receiver keeps any state
// of it. A cookie is a keyed hash of address and time, and needs no memory. Connection path.
#pragma once

#include <cstdint>

#include "reliable/frame.h"
#include "transport/packet_link.h"

namespace lintel {

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

}  // namespace lintel
