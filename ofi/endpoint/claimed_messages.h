// Messages that the program has claimed by FI_PEEK with FI_CLAIM and not received yet. Not on the
// fast path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "endpoint/arrival.h"

namespace lintel::ofi {

struct ClaimedMessage {
  void* context;
  Arrival arrival;
  std::vector<std::byte> data;  // empty if it is a long message
};

class ClaimedMessages {
 public:
  void add(ClaimedMessage message) { messages_.push_back(std::move(message)); }
  // Takes the message with a context out.
  [[nodiscard]] std::optional<ClaimedMessage> take(const void* context) {
    const auto found = std::find_if(messages_.begin(), messages_.end(), [&](const auto& message) {
      return message.context == context;
    });
    if (found == messages_.end()) return std::nullopt;
    ClaimedMessage message = std::move(*found);
    messages_.erase(found);
    return message;
  }

 private:
  std::vector<ClaimedMessage> messages_;
};

}  // namespace lintel::ofi
