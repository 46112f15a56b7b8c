// Copying as far as memory is there. Message path.
#include "local/local_copy.h"

#include <algorithm>
#include <cstdint>

#include "util/guarded_memory.h"

namespace lintel {

namespace {

constexpr uint64_t page_bytes = 4096;

uint64_t to_page_end(const void* address) noexcept {
  return page_bytes - reinterpret_cast<uintptr_t>(address) % page_bytes;
}

// Copies once more page by page, to find out how far it goes and which side ends it.
RemoteResult copy_up_to_fault(std::byte* to, const std::byte* from, uint64_t bytes,
                              bool reading) noexcept {
  uint64_t moved = 0;
  while (moved < bytes) {
    const uint64_t step =
        std::min({bytes - moved, to_page_end(to + moved), to_page_end(from + moved)});
    if (!guarded_copy(to + moved, from + moved, step)) {
      std::byte probe;
      const bool source_is_good = guarded_copy(&probe, from + moved, 1);
      return {source_is_good == reading ? RemoteStatus::local_fault : RemoteStatus::remote_fault,
              moved};
    }
    moved += step;
  }
  return {RemoteStatus::done, moved};
}

}  // namespace

RemoteResult copy_within_process(const Piece* local, unsigned local_count,
                                 const RemoteMemory* remote, unsigned remote_count,
                                 bool reading) noexcept {
  uint64_t moved = 0;
  uint64_t local_offset = 0;
  uint64_t remote_offset = 0;
  while (local_count != 0 && remote_count != 0) {
    const uint64_t step = std::min(local->length - local_offset, remote->length - remote_offset);
    std::byte* const here = local->base + local_offset;
    std::byte* const there = reinterpret_cast<std::byte*>(remote->address + remote_offset);
    std::byte* const to = reading ? here : there;
    const std::byte* const from = reading ? there : here;
    if (step != 0 && !guarded_copy(to, from, step)) {
      const RemoteResult result = copy_up_to_fault(to, from, step, reading);
      if (result.status != RemoteStatus::done) return {result.status, moved + result.bytes};
    }
    moved += step;
    local_offset += step;
    remote_offset += step;
    if (local_offset == local->length) {
      ++local;
      --local_count;
      local_offset = 0;
    }
    if (remote_offset == remote->length) {
      ++remote;
      --remote_count;
      remote_offset = 0;
    }
  }
  return {RemoteStatus::done, moved};
}

}  // namespace lintel
