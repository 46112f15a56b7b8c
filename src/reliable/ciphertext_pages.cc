#include "reliable/ciphertext_pages.h"

#include <sys/mman.h>

#include <new>

namespace lintel {

namespace {
constexpr uint64_t page_bytes = 4096;

constexpr uint64_t rounded(uint64_t bytes, uint64_t unit) noexcept {
  return (bytes + unit - 1) & ~(unit - 1);
}
}  // namespace

bool CiphertextPages::open(uint32_t blocks, uint32_t payload_bytes) noexcept {
  free_.reset(new (std::nothrow) uint32_t[blocks]);
  if (free_ == nullptr) return false;
  block_bytes_ = rounded(payload_bytes, page_bytes);
  const uint64_t bytes = rounded(blocks * block_bytes_, huge_page_bytes);
  mapped_bytes_ = bytes + huge_page_bytes;
  void* const mapping = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return false;
  mapping_ = mapping;
  memory_ =
      reinterpret_cast<std::byte*>(rounded(reinterpret_cast<uintptr_t>(mapping), huge_page_bytes));
  static_cast<void>(madvise(memory_, bytes, MADV_HUGEPAGE));  // without them it is slower
  blocks_ = blocks;
  return true;
}

CiphertextPages::~CiphertextPages() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
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
