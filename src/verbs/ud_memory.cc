// Registering parts of offered memory. In a thread that may wait.
#include "verbs/ud_memory.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "util/log.h"
#include "verbs/device.h"

namespace lintel {

UdMemory::~UdMemory() {
  for (size_t i = 0; i < part_count_; ++i)
    if (ibv_mr* const region = parts_[i].region.load(std::memory_order_relaxed); region != nullptr)
      ibv_dereg_mr(region);
}

bool UdMemory::offer(ibv_pd* pd, std::byte* start, size_t bytes) noexcept {
  if (parts_ != nullptr) return false;
  const size_t count = (bytes + part_bytes - 1) / part_bytes;
  parts_.reset(new (std::nothrow) Part[count]);
  if (parts_ == nullptr) return false;
  pd_ = pd;
  part_count_ = count;
  start_ = start;
  bytes_ = bytes;
  return true;
}

void UdMemory::register_wanted() noexcept {
  for (size_t i = 0; i < part_count_ && !refused(); ++i) {
    Part& part = parts_[i];
    if (!part.wanted.load(std::memory_order_acquire) ||
        part.region.load(std::memory_order_relaxed) != nullptr)
      continue;
    const size_t bytes = std::min(part_bytes, bytes_ - i * part_bytes);
    ibv_mr* const region = ibv_reg_mr(pd_, start_ + i * part_bytes, bytes, 0);
    if (region == nullptr) {
      const int error = errno;
      refused_.store(true, std::memory_order_relaxed);
      log_message(
          LogLevel::info, "verbs: %s; frames are copied instead",
          registration_failure("frames that wait for acknowledgement", bytes, error).c_str());
      return;
    }
    part.region.store(region, std::memory_order_release);
  }
}

}  // namespace lintel
