// The links to all peers, found by process. Connection path; any thread. Links last as long as this
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "verbs/verbs_link.h"

namespace lintel {

class VerbsLinks {
 public:
  explicit VerbsLinks(uint32_t max_data_bytes) noexcept : max_data_bytes_(max_data_bytes) {}

  // Made if there is none. Throws when there is no memory.
  [[nodiscard]] VerbsLink& find(ProcessId peer) {
    const std::lock_guard guard(mutex_);
    std::unique_ptr<VerbsLink>& place = links_[uint64_t{peer.nid} << 32 | peer.pid];
    if (place == nullptr) {
      place = std::make_unique<VerbsLink>();
      place->peer = peer;
      place->max_data_bytes = max_data_bytes_;
    }
    return *place;
  }

  template <typename Visit>
  void for_each(const Visit& visit) noexcept {
    const std::lock_guard guard(mutex_);
    for (const auto& [key, link] : links_) visit(*link);
  }

 private:
  const uint32_t max_data_bytes_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<VerbsLink>> links_;
};

}  // namespace lintel
