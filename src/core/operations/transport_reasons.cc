#include "core/operations/transport_reasons.h"

namespace lintel {

const std::string& TransportReasons::of(size_t chosen, const std::vector<std::string>& answers) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& reason) {
    text.append(text.empty() ? "" : "; ").append(name).append(": ").append(reason);
  };
  for (size_t i = 0; i <= transports_.size() && i <= chosen; ++i) {
    for (const OpenedTransports::Unused& unused : unused_)
      if (unused.place == i) add(unused.transport, unused.reason);
    if (i == chosen || i == transports_.size()) break;
    const Capabilities& capabilities = transports_[i]->capabilities();
    if (capabilities.in_process && chosen < transports_.size()) continue;
    if (i < answers.size() && !answers[i].empty()) add(capabilities.name, answers[i]);
  }
  static const std::string none;
  if (texts_.size() >= most_texts && texts_.count(text) == 0) return none;
  return *texts_.insert(std::move(text)).first;
}

}  // namespace lintel
