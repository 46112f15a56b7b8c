// Memory of our own that the device reads from or writes to as long as it exists. Set-up path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

namespace lintel {

class RegisteredBuffer {
 public:
  RegisteredBuffer() = default;
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  // No work request refers to it any more.
  ~RegisteredBuffer();

  // Zeroed memory, aligned to pages. `what` it is for and `access` (IBV_ACCESS_...). False:
  // `reason` is a sentence that says why not, and what to do.
  [[nodiscard]] bool open(ibv_pd* pd, size_t bytes, int access, const char* what,
                          std::string& reason);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] uint32_t local_key() const noexcept { return region_->lkey; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  ibv_mr* region_ = nullptr;
};

}  // namespace lintel
