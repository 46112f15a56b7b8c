#include "verbs/memory_notice.h"

#include <algorithm>
#include <cstring>

#include "verbs/channel.h"

namespace lintel {

bool NoticedKeys::take(const std::byte* data, uint32_t bytes, uint32_t channel_number) noexcept {
  MemoryNotice notice;
  if (bytes != sizeof notice) return false;
  std::memcpy(&notice, data, sizeof notice);
  if (notice.version != MemoryNotice::current_version || notice.zero != 0 ||
      notice.count - 1u >= MemoryNotice::most_ranges)
    return false;
  for (unsigned i = 0; i < notice.count; ++i)
    if (notice.keys[i].first == 0 || !is_key_of_channel(notice.keys[i].here, channel_number))
      return false;
  for (unsigned i = 0; i < notice.count; ++i) keys_[next_++ % keys_.size()] = notice.keys[i];
  return true;
}

// The last notice of a key is in force.
bool NoticedKeys::translate(RemoteMemory* ranges, unsigned count) const noexcept {
  for (unsigned i = 0; i < count; ++i) {
    const MemoryNotice::Keys* found = nullptr;
    for (size_t back = 1; back <= keys_.size() && found == nullptr; ++back) {
      const MemoryNotice::Keys& keys = keys_[(next_ - back) % keys_.size()];
      if (keys.first == ranges[i].key) found = &keys;
    }
    if (found == nullptr) return false;
    ranges[i].key = found->here;
  }
  return true;
}

}  // namespace lintel
