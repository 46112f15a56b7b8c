// Which of several faults the log has told lately, so that one that repeats does not fill it. Fault
// path; the caller's lock held.
#pragma once

#include <array>
#include <cstdint>

namespace lintel {

class SaidRecently {
 public:
  static constexpr uint64_t again_ns = 10'000'000'000;

  // True: the fault named by `key` (not 0) is to be told. Of many at once some are not.
  [[nodiscard]] bool is_due(uint64_t key, uint64_t now_ns) noexcept {
    Entry* free = nullptr;
    for (Entry& entry : entries_) {
      const bool expired = entry.key == 0 || now_ns - entry.said_ns >= again_ns;
      if (entry.key == key && !expired) return false;
      if (expired && (free == nullptr || entry.key == key)) free = &entry;
    }
    if (free == nullptr) return false;
    *free = {key, now_ns};
    return true;
  }

 private:
  struct Entry {
    uint64_t key = 0;
    uint64_t said_ns = 0;
  };
  std::array<Entry, 64> entries_;
};

}  // namespace lintel
