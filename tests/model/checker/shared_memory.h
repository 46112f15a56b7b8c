// The memory of a scenario: its state and what its threads allocate. It lies at the same addresses
// in each execution. Data races are found by the last accesses of each thread to each byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "checker/graph.h"

namespace lintel::model {

class SharedMemory {
 public:
  enum class Use : uint8_t { read, write, atomic_read, atomic_write };

  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // A new execution: all is zero and free.
  void reset() noexcept;
  // 0 is the set-up, then the threads. Never released.
  [[nodiscard]] void* allocate(int owner, size_t bytes) noexcept;
  [[nodiscard]] bool owns(const void* address) const noexcept {
    return address >= bytes_.get() && address < bytes_.get() + part_bytes * parts;
  }

  // `clock`: what happens before, and the number of operations of the thread itself. True: it
  // conflicts with an access of another thread that it does not follow.
  [[nodiscard]] bool use(uintptr_t address, size_t bytes, Use use, unsigned thread,
                         const Clock& clock, unsigned executed) noexcept;
  // Whether a thread stored to it plainly in this execution.
  [[nodiscard]] bool was_written(uintptr_t address) const noexcept;

 private:
  static constexpr size_t part_bytes = 256 << 10;
  static constexpr size_t parts = most_threads + 1;
  struct Shadow {
    uint32_t execution = 0;
    // Number of operations before the last access, plus one; 0: none.
    std::array<std::array<uint8_t, most_threads>, 4> last{};
  };

  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<Shadow[]> shadow_;
  std::array<size_t, parts> used_{};
  uint32_t execution_ = 1;
};

}  // namespace lintel::model
