// The memory of an MD, LE or ME: one contiguous range or a PTL_IOVEC list of ranges (spec 3.10.1,
// 3.10.2, 3.11.1, 3.12.1), addressed by offset as if it were contiguous.
// Message path, except open() and close(). Copies run under a recovery point (PTL_NI_SEGV) unless
// the owner vouched for the memory (PTL_ME_IS_ACCESSIBLE). Memory of a device is copied by its
// MemoryKind: only where is_host() is true may the processor touch the addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory_kind/memory_kind.h"
#include "portals4.h"
#include "transport/message.h"
#include "util/assert.h"
#include "util/guarded_memory.h"

namespace lintel {

// A range of memory of one kind. nullptr: of the host.
struct KindPiece {
  std::byte* base;
  uint64_t length;
  MemoryKind* kind;
};

// Thread-safe as long as nobody opens or closes it meanwhile. Does not own the memory it names.
class MemoryRegion {
 public:
  MemoryRegion() = default;
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  ~MemoryRegion() { close(); }

  // Set-up path. `start`, `length`: as in ptl_md_t; with `iovec` the array must stay as it is until
  // close() (spec 3.10.1). `accessible`: every byte may be touched without protection.
  // False, with the region closed: an array that cannot be read, elements that sum up to more than
  // PTL_SIZE_MAX bytes, or no memory for the index of a long array.
  [[nodiscard]] bool open(const void* start, ptl_size_t length, bool iovec,
                          bool accessible) noexcept {
    if (iovec || !plain_ || device_memory_in_use()) [[unlikely]]
      return open_in_general(start, length, iovec, accessible);
    open_plain(start, length, accessible);
    return true;
  }
  // The same of a closed region, for contiguous memory of the host.
  void open_plain(const void* start, ptl_size_t length, bool accessible) noexcept {
    LINTEL_ASSERT(plain_ && is_contiguous());
    accessible_ = accessible;
    start_ = reinterpret_cast<uintptr_t>(start);
    length_ = length;
  }
  // Idempotent; the region is empty afterwards.
  void close() noexcept {
    if (!plain_) [[unlikely]]
      close_in_general();
    start_ = 0;
    length_ = 0;
  }

  // Bytes in total. A contiguous region may be as long as PTL_SIZE_MAX from any start; its
  // addresses then continue at zero, where the guarded copy finds nothing.
  [[nodiscard]] uint64_t length() const noexcept { return length_; }
  [[nodiscard]] bool is_contiguous() const noexcept { return elements_ == nullptr; }
  // Contiguous memory of the host.
  [[nodiscard]] bool is_plain() const noexcept { return plain_; }
  // Whether the range, which must lie inside, is memory of the host. Asks the drivers where that
  // depends on the range.
  [[nodiscard]] bool is_host(uint64_t offset, uint64_t length) const noexcept {
    return kind_ == host || range_is_host(offset, length);
  }
  [[nodiscard]] bool is_accessible() const noexcept { return accessible_; }
  [[nodiscard]] bool contains(uint64_t offset, uint64_t length) const noexcept {
    return offset <= length_ && length <= length_ - offset;
  }

  // The byte at `offset` (event.start). At or beyond the end: just past the last byte of an iovec
  // region, start + offset of a contiguous one.
  [[nodiscard]] std::byte* address(uint64_t offset) const noexcept {
    if (is_contiguous()) [[likely]]
      return contiguous_address(offset);
    return vector_address(offset);
  }

  // The same of a contiguous region. Integers, since it may lie anywhere and wrap around.
  [[nodiscard]] std::byte* contiguous_address(uint64_t offset) const noexcept {
    return reinterpret_cast<std::byte*>(start_ + static_cast<uintptr_t>(offset));
  }

  // Describes [offset, offset + length), clipped to the region, by at most `max_pieces` ranges in
  // order, none of them empty. Returns their number; `covered`: bytes that they hold. Of any kind.
  unsigned pieces(uint64_t offset, uint64_t length, Piece* out, unsigned max_pieces,
                  uint64_t* covered) const noexcept {
    if (!is_contiguous()) return vector_pieces(offset, length, out, max_pieces, covered);
    const uint64_t available = offset < length_ ? length_ - offset : 0;
    const uint64_t bytes = length < available ? length : available;
    *covered = max_pieces != 0 ? bytes : 0;
    if (*covered == 0) return 0;
    out[0] = {contiguous_address(offset), bytes};
    return 1;
  }

  // The first part of [offset, offset + length), which is not empty and lies inside, that is one
  // range of one kind.
  [[nodiscard]] KindPiece first_piece(uint64_t offset, uint64_t length) const noexcept;

  // Fault path. Writes why the range, which was not accessible, is not.
  [[gnu::cold]] void explain_fault(uint64_t offset, uint64_t length) const noexcept;

  // Copies into and out of the region. False: the memory is not accessible (part of the destination
  // may have been written), or the range is not inside the region (nothing was written). A length
  // of zero within the region never fails. Source and region must not overlap.
  [[nodiscard]] bool write(uint64_t offset, const std::byte* source,
                           uint64_t length) const noexcept {
    if (!contains(offset, length)) [[unlikely]]
      return false;
    if (!plain_) [[unlikely]]
      return write_in_general(offset, source, length);
    return write_plain(offset, source, length);
  }
  // The same where is_plain() is true and the range lies inside.
  [[nodiscard]] bool write_plain(uint64_t offset, const std::byte* source,
                                 uint64_t length) const noexcept {
    return copy(contiguous_address(offset), source, length);
  }
  [[nodiscard]] bool read(uint64_t offset, std::byte* destination, uint64_t length) const noexcept {
    if (!contains(offset, length)) [[unlikely]]
      return false;
    if (!plain_) [[unlikely]]
      return read_in_general(offset, destination, length);
    return copy(destination, contiguous_address(offset), length);
  }

 private:
  // Arrays up to this length are walked; longer ones get an index of end offsets.
  static constexpr uint64_t walked_elements = 8;

  // Values of kind_ that are no MemoryKind::number().
  static constexpr uint8_t host = 0;
  static constexpr uint8_t mixed = UINT8_MAX;  // depends on the address, and is asked each time

  [[nodiscard]] bool copy(std::byte* to, const std::byte* from, uint64_t length) const noexcept {
    if (!accessible_) return guarded_copy_straight(to, from, length);
    if (length == 8) {  // a constant size becomes one load and one store
      std::memcpy(to, from, 8);
    } else if (length != 0) {
      std::memcpy(to, from, length);
    }
    return true;
  }

  [[nodiscard]] bool open_in_general(const void* start, ptl_size_t length, bool iovec,
                                     bool accessible) noexcept;
  [[nodiscard]] bool open_vector(const void* start, ptl_size_t length) noexcept;
  void close_in_general() noexcept;
  [[nodiscard]] bool vector_is_host() const noexcept;
  [[nodiscard]] bool range_is_host(uint64_t offset, uint64_t length) const noexcept;
  [[nodiscard]] MemoryKind* kind_at(const std::byte* address) const noexcept;

  struct Position {
    uint64_t element;
    uint64_t within;  // bytes into that element
  };
  [[nodiscard]] Position locate(uint64_t offset) const noexcept;
  [[nodiscard]] std::byte* vector_address(uint64_t offset) const noexcept;
  unsigned vector_pieces(uint64_t offset, uint64_t length, Piece* out, unsigned max_pieces,
                         uint64_t* covered) const noexcept;
  template <typename Move>
  [[nodiscard]] bool move_parts(uint64_t offset, uint64_t length, const Move& move) const noexcept;
  [[nodiscard]] bool copy_any(std::byte* to, const std::byte* from, uint64_t length,
                              const std::byte* own) const noexcept;
  [[nodiscard]] bool write_in_general(uint64_t offset, const std::byte* source,
                                      uint64_t length) const noexcept;
  [[nodiscard]] bool read_in_general(uint64_t offset, std::byte* destination,
                                     uint64_t length) const noexcept;

  uintptr_t start_ = 0;
  uint64_t length_ = 0;
  const ptl_iovec_t* elements_ = nullptr;
  uint64_t count_ = 0;
  uint64_t* ends_ = nullptr;  // ends_[i]: offset just past element i; null for short arrays
  bool accessible_ = false;
  bool plain_ = true;  // contiguous memory of the host
  uint8_t kind_ = host;
};

}  // namespace lintel
