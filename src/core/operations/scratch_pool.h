// Memory for a moment that is too much for the stack of a caller: threads of run-time systems often
// have 16 KiB. Message path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "util/arena.h"

namespace lintel {

class ScratchPool {
 public:
  static constexpr size_t bytes = 16384;

  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return blocks_.open(most_blocks); }

  // While it exists, it has `bytes` bytes. A thread has one at a time.
  class Scratch {
   public:
    explicit Scratch(ScratchPool& pool) noexcept : pool_(pool) {
      // Holders neither wait nor take another one, so one becomes free soon.
      while ((index_ = pool.blocks_.allocate()) == Arena<Block>::no_index) {
      }
    }
    ~Scratch() { pool_.blocks_.release(index_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] std::byte* data() const noexcept { return pool_.blocks_.at(index_).bytes; }

   private:
    ScratchPool& pool_;
    uint32_t index_;
  };

 private:
  struct Block {
    std::atomic<uint32_t> next_free{0};
    std::byte bytes[ScratchPool::bytes];
  };
  static constexpr uint32_t most_blocks = 256;  // threads that send or deliver at the same time

  Arena<Block> blocks_;
};

}  // namespace lintel
