// Message path, except attach().
#include "lane/byte_ring.h"

#include <new>

#include "lane/prefetch.h"

namespace lintel {

bool ByteRing::attach(std::byte* data, const LaneGeometry& geometry,
                      uint32_t usable_bytes) noexcept {
  ends_.reset(new (std::nothrow) End[geometry.cells]);
  if (ends_ == nullptr) return false;
  data_ = data;
  bytes_ = usable_bytes;
  all_bytes_ = geometry.data_bytes;
  tail_ = released_ = 0;
  most_ends_ = geometry.cells;
  first_end_ = next_end_ = 0;
  return true;
}

void ByteRing::prefetch_behind(const Room& room) const noexcept {
  if (tail_ + room.bytes - released_ > bytes_) return;
  const std::byte* line = data_ + tail_ % bytes_;
  const std::byte* const end = data_ + bytes_;
  for (uint32_t done = 0; done < room.bytes && line < end; done += 64, line += 64)
    prefetch_for_write(line);
}

}  // namespace lintel
