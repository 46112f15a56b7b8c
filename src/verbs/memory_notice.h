// What the owner of exposed memory tells over a queue pair by a further port: the keys for that
// queue pair. The message that describes the memory goes by the first port, with the keys for it.
// So the peer may access parts of the memory by each port whose notice it has. A notice follows
// the bindings of its windows on the same queue pair: where it has come, they are in force.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/message.h"

namespace lintel {

struct MemoryNotice {
  static constexpr uint16_t current_version = 1;
  static constexpr unsigned most_ranges = 4;
  struct Keys {
    uint64_t first;  // RemoteMemory::key, of the first port
    uint64_t here;
  };
  uint16_t version;
  uint16_t count;  // of `keys`; the rest is zero
  uint32_t zero;
  Keys keys[most_ranges];
};
static_assert(sizeof(MemoryNotice) == 72 && offsetof(MemoryNotice, keys) == 8);

// The keys that a peer has told last over one queue pair. The poller.
class NoticedKeys {
 public:
  // `channel_number`: of the peer's end. False: this is no notice, or not about that queue pair.
  [[nodiscard]] bool take(const std::byte* data, uint32_t bytes, uint32_t channel_number) noexcept;
  // Replaces the keys of the first port. False: one of them is not known here.
  [[nodiscard]] bool translate(RemoteMemory* ranges, unsigned count) const noexcept;
  void clear() noexcept { keys_ = {}; }

 private:
  std::array<MemoryNotice::Keys, 64> keys_{};
  size_t next_ = 0;
};

}  // namespace lintel
