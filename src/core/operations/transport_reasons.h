// Reasons why a peer is served by one transport and not by one that precedes it. Connection path;
// the lock of the PeerDirectory is held.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "transport/opened_transports.h"

namespace lintel {

class TransportReasons {
 public:
  using Transports = std::span<const std::unique_ptr<Transport>>;
  void open(Transports transports, std::span<const OpenedTransports::Unused> unused) noexcept {
    transports_ = transports;
    unused_ = unused;
  }
  // `answers`: the reasons of the transports that precede the one with index `chosen`. If `chosen`
  // is the number of transports, no transport was chosen. A reason is empty if its transport was
  // not tried. The returned text is never released.
  [[nodiscard]] const std::string& of(size_t chosen, const std::vector<std::string>& answers);

 private:
  static constexpr size_t most_texts = 256;

  Transports transports_;
  std::span<const OpenedTransports::Unused> unused_;
  std::set<std::string> texts_;  // most peers share a few texts
};

}  // namespace lintel
