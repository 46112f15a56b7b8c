// Memory of slots. Set-up path.
#include "verbs/send_slots.h"

#include <sys/mman.h>

#include <cerrno>

#include "verbs/device.h"

namespace lintel {

bool SendSlots::open(ibv_pd* pd, uint32_t count, uint32_t bytes, std::string& reason) {
  constexpr uint32_t alignment = 64;
  bytes_ = (bytes + alignment - 1) / alignment * alignment;
  memory_bytes_ = size_t{count} * bytes_;
  void* const memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || !states_.open(count)) {
    reason = "no memory for messages";
    if (memory != MAP_FAILED) munmap(memory, memory_bytes_);
    return false;
  }
  memory_ = static_cast<std::byte*>(memory);
  // A forked child has no business with it, and must not make the pages copies of what the device uses.
  madvise(memory_, memory_bytes_, MADV_DONTFORK);
  region_ = ibv_reg_mr(pd, memory_, memory_bytes_, 0);
  if (region_ == nullptr) {
    reason = registration_failure("messages to be sent", memory_bytes_, errno);
    return false;
  }
  return true;
}

SendSlots::~SendSlots() {
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

}  // namespace lintel
