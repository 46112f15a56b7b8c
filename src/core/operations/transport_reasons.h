// Why a peer is served by one transport and not by one that is tried before it. Connection path;
// the lock of the PeerDirectory held.
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
  // `answers`: what the transports said that were tried before the one with index `chosen`; all of
  // them were if that is the number of transports. Empty where one was not tried. The text stays.
  [[nodiscard]] const std::string& of(size_t chosen, const std::vector<std::string>& answers);

 private:
  static constexpr size_t most_texts = 256;

  Transports transports_;
  std::span<const OpenedTransports::Unused> unused_;
  std::set<std::string> texts_;  // most peers have one of a few
};

}  // namespace lintel
