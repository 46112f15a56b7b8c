#include "checker/shared_memory.h"

#include <cstring>

namespace lintel::model {

SharedMemory::SharedMemory()
    : bytes_(new (std::align_val_t{4096}) std::byte[part_bytes * parts]()),
      shadow_(new Shadow[part_bytes * parts]) {}

void SharedMemory::reset() noexcept {
  for (size_t i = 0; i < parts; ++i) {
    std::memset(bytes_.get() + i * part_bytes, 0, used_[i]);
    used_[i] = 0;
  }
  ++execution_;
}

void* SharedMemory::allocate(int owner, size_t bytes) noexcept {
  size_t& used = used_[static_cast<size_t>(owner)];
  std::byte* const start = bytes_.get() + static_cast<size_t>(owner) * part_bytes + used;
  used += (bytes + 127) / 128 * 128;
  if (used > part_bytes) __builtin_trap();
  return start;
}

bool SharedMemory::use(uintptr_t address, size_t bytes, Use use, unsigned thread,
                       const Clock& clock, unsigned executed) noexcept {
  const auto index = static_cast<size_t>(use);
  const bool writes = use == Use::write || use == Use::atomic_write;
  const bool atomic = use == Use::atomic_read || use == Use::atomic_write;
  const size_t start = address - reinterpret_cast<uintptr_t>(bytes_.get());
  for (size_t i = start; i < start + bytes && i < part_bytes * parts; ++i) {
    Shadow& shadow = shadow_[i];
    if (shadow.execution != execution_) shadow = {execution_, {}};
    for (unsigned other = 0; other < most_threads; ++other) {
      if (other == thread) continue;
      const auto races = [&](Use with) {
        // Operations 0 to n-1 came before an access stored as n+1; it is known to who knows n.
        const uint8_t last = shadow.last[static_cast<size_t>(with)][other];
        return last != 0 && clock[other] < last;
      };
      if (races(Use::write) || (writes && races(Use::read))) return true;
      if (!atomic && (races(Use::atomic_write) || (writes && races(Use::atomic_read)))) return true;
    }
    shadow.last[index][thread] = static_cast<uint8_t>(executed + 1);
  }
  return false;
}

bool SharedMemory::was_written(uintptr_t address) const noexcept {
  if (!owns(reinterpret_cast<void*>(address))) return false;
  const Shadow& shadow = shadow_[address - reinterpret_cast<uintptr_t>(bytes_.get())];
  if (shadow.execution != execution_) return false;
  for (const uint8_t last : shadow.last[static_cast<size_t>(Use::write)])
    if (last != 0) return true;
  return false;
}

}  // namespace lintel::model
