#include "reliable/ciphertext_pages.h"

#include <sys/mman.h>

#include <new>

namespace lintel {

bool CiphertextPages::open(uint32_t blocks, uint32_t payload_bytes) noexcept {
  constexpr uint64_t page_bytes = 4096;
  free_.reset(new (std::nothrow) uint32_t[blocks]);
  if (free_ == nullptr) return false;
  const uint64_t block_bytes = (payload_bytes + page_bytes - 1) & ~(page_bytes - 1);
  void* const memory = mmap(nullptr, blocks * block_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(memory);
  block_bytes_ = block_bytes;
  blocks_ = blocks;
  return true;
}

CiphertextPages::~CiphertextPages() {
  if (memory_ != nullptr) munmap(memory_, blocks_ * block_bytes_);
}

uint32_t CiphertextPages::acquire() noexcept {
  const bool rotates = fresh_ * block_bytes_ >= rotated_bytes || fresh_ == blocks_;
  if (free_count_ == 0 || !rotates) return fresh_ < blocks_ ? fresh_++ : none;
  const uint32_t block = free_[first_free_];
  if (++first_free_ == blocks_) first_free_ = 0;
  --free_count_;
  return block;
}

void CiphertextPages::release(uint32_t block) noexcept {
  const uint32_t behind_last = first_free_ + free_count_++;
  free_[behind_last < blocks_ ? behind_last : behind_last - blocks_] = block;
}

}  // namespace lintel
