#include "core/operations/device_import.h"

#include <unistd.h>

#include <algorithm>

#include "util/assert.h"

namespace lintel {

namespace {

bool is_well_formed(const DeviceDescription& description, uint64_t length) noexcept {
  const ExportedAllocation& allocation = description.allocation;
  return allocation.handle_bytes <= allocation.handle.size() &&
         std::all_of(std::begin(allocation.reserved), std::end(allocation.reserved),
                     [](uint8_t byte) { return byte == 0; }) &&
         description.offset <= allocation.length &&
         length <= allocation.length - description.offset;
}

// The part of an allocation behind an address.
uint64_t left_behind(const DeviceAllocation& allocation, const std::byte* address) noexcept {
  return allocation.base + allocation.length - reinterpret_cast<uintptr_t>(address);
}

}  // namespace

bool describe_device(DeviceExports& exports, const MemoryRegion& region, uint64_t offset,
                     uint64_t length, DeviceDescription* out) noexcept {
  const KindPiece piece = region.first_piece(offset, length);
  DeviceAllocation allocation;
  if (piece.kind == nullptr || piece.length != length ||
      !piece.kind->describe(piece.base, &allocation) ||
      length > left_behind(allocation, piece.base))
    return false;
  out->offset = reinterpret_cast<uintptr_t>(piece.base) - allocation.base;
  return exports.find_or_export(*piece.kind, allocation, &out->allocation);
}

DeviceImport DeviceImport::open(const DeviceDescription& description, uint32_t process,
                                uint64_t length) noexcept {
  const ExportedAllocation& named = description.allocation;
  DeviceImport import;
  MemoryKind* const kind = kind_numbered(named.kind);
  if (kind == nullptr || process == 0 || named.process != process ||
      !is_well_formed(description, length))
    return import;
  if (process == static_cast<uint32_t>(getpid())) {
    DeviceAllocation own;
    import.start_ = reinterpret_cast<std::byte*>(named.base + description.offset);
    if (kind->describe(import.start_, &own) && own.id == named.id &&
        length <= left_behind(own, import.start_))
      import.kind_ = kind;
    return import;
  }
  import.mapping_ = kind->open_exported(named);
  if (import.mapping_ == nullptr) return import;
  import.kind_ = kind;
  import.start_ = static_cast<std::byte*>(import.mapping_) + description.offset;
  return import;
}

void DeviceImport::close() noexcept {
  if (mapping_ != nullptr) kind_->close_exported(mapping_);
  *this = {};
}

}  // namespace lintel
