// SipHash and the cookies made by it. Connection path.
#include "reliable/cookie.h"

#include <bit>
#include <cstring>

#include "util/random.h"

namespace lintel {

namespace {

constexpr uint64_t period_ns = 10'000'000'000;

struct SipState {
  uint64_t v0, v1, v2, v3;
  void rounds(int count) noexcept {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  void absorb(uint64_t word) noexcept {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
};

}  // namespace

uint64_t siphash(const uint64_t (&key)[2], const void* data, size_t bytes) noexcept {
  SipState state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  const auto* from = static_cast<const unsigned char*>(data);
  size_t left = bytes;
  for (; left >= 8; left -= 8, from += 8) {
    uint64_t word;
    std::memcpy(&word, from, sizeof word);
    state.absorb(word);
  }
  uint64_t last = uint64_t{bytes} << 56;
  for (size_t i = 0; i < left; ++i) last |= uint64_t{from[i]} << (8 * i);
  state.absorb(last);
  state.v2 ^= 0xff;
  state.rounds(4);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

CookieMaker::CookieMaker() noexcept : key_{} { fill_random(key_, sizeof key_); }

uint64_t CookieMaker::make_for_period(const LinkAddress& from, const HandshakeBody& body,
                                      uint64_t predecessor, uint64_t period) const noexcept {
  struct {
    LinkAddress from;
    uint64_t period;
    uint64_t predecessor;
    HandshakeBody body;
  } input{};
  static_assert(sizeof input == 32 + 16 + sizeof body);
  input.from = from;
  input.period = period;
  input.predecessor = predecessor;
  input.body = body;
  // These fields are set only in the later message.
  input.body.cookie = 0;
  std::memset(input.body.proof, 0, sizeof input.body.proof);
  return siphash(key_, &input, sizeof input);
}

uint64_t CookieMaker::make(const LinkAddress& from, const HandshakeBody& body, uint64_t predecessor,
                           uint64_t now_ns) const noexcept {
  return make_for_period(from, body, predecessor, now_ns / period_ns);
}

bool CookieMaker::is_good(uint64_t cookie, const LinkAddress& from, const HandshakeBody& body,
                          uint64_t predecessor, uint64_t now_ns) const noexcept {
  const uint64_t period = now_ns / period_ns;
  return cookie == make_for_period(from, body, predecessor, period) ||
         cookie == make_for_period(from, body, predecessor, period - 1);
}

}  // namespace lintel
