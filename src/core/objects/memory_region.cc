// Regions that consist of a PTL_IOVEC list (spec 3.10.2), and opening of all of them.
// Message path, except open() and close().
#include "core/objects/memory_region.h"

#include <algorithm>
#include <new>
#include <utility>

namespace lintel {
namespace {

[[nodiscard]] std::byte* base_of(const ptl_iovec_t& element) noexcept {
  return static_cast<std::byte*>(element.iov_base);
}

// Sums up the array in blocks, since reading it may fault. Fills `ends` unless null.
[[nodiscard]] bool sum_elements(const ptl_iovec_t* elements, uint64_t count, uint64_t* ends,
                                uint64_t* total) noexcept {
  constexpr uint64_t block = 64;
  ptl_iovec_t copy[block];
  uint64_t sum = 0;
  for (uint64_t done = 0; done < count;) {
    const uint64_t part = std::min(block, count - done);
    if (!guarded_copy(copy, elements + done, part * sizeof(ptl_iovec_t))) return false;
    for (uint64_t i = 0; i < part; ++i) {
      if (__builtin_add_overflow(sum, copy[i].iov_len, &sum)) return false;
      if (ends != nullptr) ends[done + i] = sum;
    }
    done += part;
  }
  *total = sum;
  return true;
}

}  // namespace

bool MemoryRegion::open_vector(const void* start, ptl_size_t length) noexcept {
  if (length == 0) return true;  // like a contiguous region of no length
  if (start == nullptr || length > SIZE_MAX / sizeof(ptl_iovec_t)) return false;
  const auto* elements = static_cast<const ptl_iovec_t*>(start);
  uint64_t total = 0;
  if (!sum_elements(elements, length, nullptr, &total)) return false;
  uint64_t* ends = nullptr;
  if (length > walked_elements) {
    // The array is accessible, so `length` is a plausible number.
    ends = new (std::nothrow) uint64_t[length];
    if (ends == nullptr) return false;
    if (!sum_elements(elements, length, ends, &total)) {
      delete[] ends;
      return false;
    }
  }
  elements_ = elements;
  count_ = length;
  ends_ = ends;
  length_ = total;
  return true;
}

void MemoryRegion::close_vector() noexcept {
  delete[] ends_;
  ends_ = nullptr;
  elements_ = nullptr;
  count_ = 0;
}

// The element that holds the byte at `offset`, skipping empty ones; count_ at or beyond the end.
MemoryRegion::Position MemoryRegion::locate(uint64_t offset) const noexcept {
  if (ends_ != nullptr) {
    const uint64_t* const found = std::upper_bound(ends_, ends_ + count_, offset);
    const auto element = static_cast<uint64_t>(found - ends_);
    return {element, element == 0 ? offset : offset - ends_[element - 1]};
  }
  uint64_t element = 0;
  for (; element < count_ && offset >= elements_[element].iov_len; ++element)
    offset -= elements_[element].iov_len;
  return {element, offset};
}

std::byte* MemoryRegion::vector_address(uint64_t offset) const noexcept {
  const Position position = locate(offset);
  if (position.element < count_) return base_of(elements_[position.element]) + position.within;
  const ptl_iovec_t& last = elements_[count_ - 1];
  return base_of(last) + last.iov_len;
}

unsigned MemoryRegion::vector_pieces(uint64_t offset, uint64_t length, Piece* out,
                                     unsigned max_pieces, uint64_t* covered) const noexcept {
  Position position = locate(offset);
  unsigned used = 0;
  uint64_t sum = 0;
  for (; used < max_pieces && sum < length && position.element < count_; ++position.element) {
    const ptl_iovec_t& element = elements_[position.element];
    const uint64_t bytes = std::min<uint64_t>(element.iov_len - position.within, length - sum);
    if (bytes != 0) {
      out[used++] = {base_of(element) + position.within, bytes};
      sum += bytes;
    }
    position.within = 0;
  }
  *covered = sum;
  return used;
}

// Calls move(address, bytes) for each part of the range; false as soon as one of them is.
template <typename Move>
bool MemoryRegion::move_parts(uint64_t offset, uint64_t length, const Move& move) const noexcept {
  Position position = locate(offset);
  for (; length != 0; position.within = 0) {
    const ptl_iovec_t& element = elements_[position.element++];
    const uint64_t bytes = std::min<uint64_t>(element.iov_len - position.within, length);
    if (!move(base_of(element) + position.within, bytes)) return false;
    length -= bytes;
  }
  return true;
}

bool MemoryRegion::vector_write(uint64_t offset, const std::byte* source,
                                uint64_t length) const noexcept {
  return move_parts(offset, length, [&](std::byte* part, uint64_t bytes) {
    return copy(part, std::exchange(source, source + bytes), bytes);
  });
}

bool MemoryRegion::vector_read(uint64_t offset, std::byte* destination,
                               uint64_t length) const noexcept {
  return move_parts(offset, length, [&](const std::byte* part, uint64_t bytes) {
    return copy(std::exchange(destination, destination + bytes), part, bytes);
  });
}

}  // namespace lintel
