// Buffers of the host for copies from and to devices: pinned, so that the device copies while the
// processor does other things. Belongs to the holder of the poll token. Message path; the first use
// of each group of buffers makes system calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory_kind/memory_kind.h"

namespace lintel {

class StagingBuffers {
 public:
  static constexpr size_t buffer_bytes = 256 * 1024;
  static constexpr unsigned group_buffers = 8;
  static constexpr unsigned most_groups = 32;
  static constexpr unsigned capacity = group_buffers * most_groups;

  StagingBuffers() = default;
  StagingBuffers(const StagingBuffers&) = delete;
  StagingBuffers& operator=(const StagingBuffers&) = delete;
  // All buffers have been given back.
  ~StagingBuffers();

  // `holds`: buffers that the caller has. A caller with some gets none of the last half, so that
  // messages that do not go on leave buffers to the others. `kind`: pins new buffers, may be null.
  // Returns nullptr if there is none.
  [[nodiscard]] std::byte* take(unsigned holds, MemoryKind* kind) noexcept;
  void give_back(std::byte* buffer) noexcept;

  [[nodiscard]] unsigned in_use() const noexcept { return in_use_; }
  // Number of buffers ever given back: a caller that got none may try again when it has changed.
  [[nodiscard]] uint64_t given_back() const noexcept { return given_back_; }

 private:
  struct Group {
    std::byte* memory;
    MemoryKind* pinned_by;  // nullptr: not pinned
  };
  [[nodiscard]] bool make_group(MemoryKind* kind) noexcept;

  std::array<Group, most_groups> groups_{};
  unsigned group_count_ = 0;
  std::array<std::byte*, capacity> free_{};
  unsigned free_count_ = 0;
  unsigned in_use_ = 0;
  uint64_t given_back_ = 0;
};

}  // namespace lintel
