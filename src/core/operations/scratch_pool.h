// Memory for a moment that is too much for the stack of a caller: threads of run-time systems often
// have 16 KiB. Message path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "util/loan.h"

namespace lintel {

class ScratchPool {
 public:
  static constexpr size_t bytes = 16384;

  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return blocks_.open(most_blocks); }

  struct Block {
    std::atomic<uint32_t> next_free{0};
    std::byte bytes[ScratchPool::bytes];
  };
  // While it exists, it has `bytes` bytes. A thread has one at a time.
  class Scratch {
   public:
    explicit Scratch(ScratchPool& pool) noexcept : block_(pool.blocks_) {}
    [[nodiscard]] std::byte* data() const noexcept { return block_.get().bytes; }

   private:
    Loan<Block> block_;
  };

 private:
  static constexpr uint32_t most_blocks = 256;  // threads that send or deliver at the same time

  Arena<Block> blocks_;
};

}  // namespace lintel
