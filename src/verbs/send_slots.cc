// Memory of slots. Set-up path.
#include "verbs/send_slots.h"

namespace lintel {

bool SendSlots::open(ibv_pd* pd, uint32_t count, uint32_t bytes, std::string& reason) {
  constexpr uint32_t alignment = 64;
  bytes_ = (bytes + alignment - 1) / alignment * alignment;
  if (!states_.open(count)) {
    reason = "no address space for messages (ulimit -v?)";
    return false;
  }
  return memory_.open(pd, size_t{count} * bytes_, 0, "messages to be sent", reason);
}

}  // namespace lintel
