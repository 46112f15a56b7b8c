// Limit, per host, of answers to frames without a proof: hellos, frames of unknown connections,
// frames of other versions. Their source address may be forged, so that the answer goes to a host
// that sent nothing. Connection path; the poller.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "reliable/cookie.h"
#include "transport/packet_link.h"
#include "util/random.h"

namespace lintel {

class AnswerLimit {
 public:
  static constexpr uint64_t per_second = 10'000;
  static constexpr uint64_t at_once = 1'000;  // answers in a row after a pause

  explicit AnswerLimit(const LinkAddress& host_mask) noexcept : host_mask_(host_mask) {
    fill_random(key_, sizeof key_);
  }

  // False: the limit of the host of that address is reached.
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

  // Hosts share places at random, by a secret key.
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
