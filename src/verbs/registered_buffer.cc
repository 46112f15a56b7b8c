// Pages and their registration. Set-up path.
#include "verbs/registered_buffer.h"

#include <sys/mman.h>

#include <cerrno>

#include "util/text.h"
#include "verbs/device.h"

namespace lintel {

RegisteredBuffer::~RegisteredBuffer() {
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (data_ != nullptr) munmap(data_, bytes_);
}

bool RegisteredBuffer::open(ibv_pd* pd, size_t bytes, int access, const char* what,
                            std::string& reason) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    reason = text_of("no memory for ", what);
    return false;
  }
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  region_ = ibv_reg_mr(pd, memory, bytes, access);
  if (region_ == nullptr) reason = registration_failure(what, bytes, errno);
  return region_ != nullptr;
}

}  // namespace lintel
