// Regions that consist of a PTL_IOVEC list (spec 3.10.2), or lie in memory of devices.
// Message path, except open() and close().
#include "core/objects/memory_region.h"

#include <algorithm>
#include <new>
#include <utility>

#include "util/assert.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/spin_lock.h"

namespace lintel {
namespace {

// A range this long holds more than one allocation, such as an entry over all of memory.
constexpr uint64_t longest_allocation = uint64_t{1} << 44;

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

constinit SpinLock said_lock;
constinit SaidRecently said;

bool is_to_be_said(const std::byte* address) noexcept {
  const LockGuard guard(said_lock);
  return said.is_due(reinterpret_cast<uintptr_t>(address) | 1, now_ns());
}

// What is wrong with memory; "" if nothing is.
const char* fault_of(const KindPiece& piece) noexcept {
  if (piece.kind == nullptr)
    return is_readable(piece.base, piece.length)
               ? ""
               : "are not mapped, or belong to a device whose driver is not in use";
  DeviceAllocation allocation;
  if (!piece.kind->describe(piece.base, &allocation))
    return "are no memory of a device, or no more: freed, or the driver has failed";
  const uint64_t end = allocation.base + allocation.length;
  return piece.length > end - reinterpret_cast<uintptr_t>(piece.base)
             ? "reach beyond their allocation of a device"
             : "";
}

}  // namespace

bool MemoryRegion::open_in_general(const void* start, ptl_size_t length, bool iovec,
                                   bool accessible) noexcept {
  close();
  if (iovec) {
    if (!open_vector(start, length)) return false;
    plain_ = is_contiguous();
    if (device_memory_in_use() && !vector_is_host()) kind_ = mixed;
  } else {
    start_ = reinterpret_cast<uintptr_t>(start);
    length_ = length;
    DeviceAllocation allocation;
    if (device_memory_in_use() && length > longest_allocation) {
      kind_ = mixed;
    } else if (const MemoryKind* const kind = length != 0 ? kind_of(start, &allocation) : nullptr;
               kind != nullptr) {
      kind_ = kind->number();
      LINTEL_ASSERT(kind_ != host && kind_ != mixed);
    }
    plain_ = kind_ == host;
  }
  accessible_ = accessible && kind_ == host;
  return true;
}

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

void MemoryRegion::close_in_general() noexcept {
  delete[] ends_;
  ends_ = nullptr;
  elements_ = nullptr;
  count_ = 0;
  kind_ = host;
  plain_ = true;
}

bool MemoryRegion::vector_is_host() const noexcept {
  DeviceAllocation allocation;
  for (uint64_t i = 0; i < count_; ++i)
    if (kind_of(elements_[i].iov_base, &allocation) != nullptr) return false;
  return true;
}

// The driver of the region's only kind stays in use as long as the process.
MemoryKind* MemoryRegion::kind_at(const std::byte* address) const noexcept {
  DeviceAllocation allocation;
  if (kind_ == host) return nullptr;
  return kind_ == mixed ? kind_of(address, &allocation) : kind_numbered(kind_);
}

KindPiece MemoryRegion::first_piece(uint64_t offset, uint64_t length) const noexcept {
  LINTEL_ASSERT(length != 0 && contains(offset, length));
  Piece piece{};
  uint64_t covered = 0;
  static_cast<void>(pieces(offset, length, &piece, 1, &covered));
  return {piece.base, piece.length, kind_at(piece.base)};
}

void MemoryRegion::explain_fault(uint64_t offset, uint64_t length) const noexcept {
  if (length == 0 || !contains(offset, length) || !is_to_be_said(address(offset))) return;
  while (length != 0) {
    const KindPiece piece = first_piece(offset, length);
    if (const char* const fault = fault_of(piece); *fault != '\0')
      return log_message(
          LogLevel::error, "%llu bytes at %p %s: their operation ends as PTL_NI_SEGV",
          static_cast<unsigned long long>(piece.length), static_cast<void*>(piece.base), fault);
    offset += piece.length;
    length -= piece.length;
  }
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

bool MemoryRegion::range_is_host(uint64_t offset, uint64_t length) const noexcept {
  if (length == 0) return true;
  if (is_contiguous()) return kind_at(contiguous_address(offset)) == nullptr;
  return move_parts(offset, length,
                    [this](const std::byte* part, uint64_t) { return kind_at(part) == nullptr; });
}

// `own`: the side that belongs to the region. Its memory may have been freed, and another process'
// memory be mapped in its place, so the driver is asked, once. A cache of its answers would have to
// ask for the number of the allocation, which costs as much: one call of CUDA answers all, two of
// HIP and Level Zero.
bool MemoryRegion::copy_any(std::byte* to, const std::byte* from, uint64_t length,
                            const std::byte* own) const noexcept {
  if (kind_ == host) return copy(to, from, length);
  if (length == 0) return true;
  DeviceAllocation allocation;
  MemoryKind* const kind = kind_ == mixed ? kind_of(own, &allocation) : kind_numbered(kind_);
  if (kind == nullptr) return copy(to, from, length);
  return (kind_ == mixed || kind->describe(own, &allocation)) &&
         kind->copy(to, from, length, &allocation) == CopyStatus::done;
}

bool MemoryRegion::write_in_general(uint64_t offset, const std::byte* source,
                                    uint64_t length) const noexcept {
  const auto write = [&](std::byte* part, uint64_t bytes) {
    return copy_any(part, std::exchange(source, source + bytes), bytes, part);
  };
  return is_contiguous() ? write(contiguous_address(offset), length)
                         : move_parts(offset, length, write);
}

bool MemoryRegion::read_in_general(uint64_t offset, std::byte* destination,
                                   uint64_t length) const noexcept {
  const auto read = [&](const std::byte* part, uint64_t bytes) {
    return copy_any(std::exchange(destination, destination + bytes), part, bytes, part);
  };
  return is_contiguous() ? read(contiguous_address(offset), length)
                         : move_parts(offset, length, read);
}

}  // namespace lintel
