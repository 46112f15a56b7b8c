#include "verbs/send_slots.h"

namespace lintel {

bool SendSlots::Pool::open(ibv_pd* pd, uint32_t count, uint32_t bytes, std::string& reason) {
  constexpr uint32_t alignment = 64;
  slot_bytes = (bytes + alignment - 1) / alignment * alignment;
  if (!states.open(count)) {
    reason = "no address space for messages (ulimit -v?)";
    return false;
  }
  return memory.open(pd, size_t{count} * slot_bytes, 0, "messages to be sent", reason);
}

bool SendSlots::open(ibv_pd* pd, uint32_t small_bytes, uint32_t large_bytes, std::string& reason) {
  constexpr uint32_t small_count = 8192;
  constexpr uint32_t large_count = 512;
  return small_.open(pd, small_count, small_bytes, reason) &&
         large_.open(pd, large_count, large_bytes, reason);
}

uint32_t SendSlots::acquire(uint64_t bytes) noexcept {
  if (bytes <= small_.slot_bytes) return small_.states.allocate();
  if (bytes > large_.slot_bytes) return none;
  const uint32_t index = large_.states.allocate();
  return index == none ? none : index | large_bit;
}

}  // namespace lintel
