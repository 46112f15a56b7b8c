// Memory for encrypted payloads that a link may refer to after send() returned: blocks of whole
// pages. It never holds anything but ciphertext. So a process that captures frames, and reads the
// pages of one when they are in use again, sees ciphertext.
//
// The block that was released first is used first. Then copies of a frame that are still on their
// way stay intact for long, and the receiver's core no longer caches what the sender's core is
// about to write, which would double the time that encrypting takes.
//
// The system is asked for huge pages: to refer to a part of one takes the kernel less time than to
// refer to as many small pages, and both cores need fewer translations of addresses.
//
// For one thread at a time. Message path, but for open(). Memory is touched when a block is used
// for the first time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lintel {

class CiphertextPages {
 public:
  static constexpr uint32_t none = UINT32_MAX;
  // Blocks in use in turn: more than the second-level caches of two cores hold.
  static constexpr uint64_t rotated_bytes = 3 << 20;
  static constexpr uint64_t huge_page_bytes = 2 << 20;

  CiphertextPages() = default;
  CiphertextPages(const CiphertextPages&) = delete;
  CiphertextPages& operator=(const CiphertextPages&) = delete;
  ~CiphertextPages();

  // Set-up path. `payload_bytes`: the longest payload. False: no memory.
  [[nodiscard]] bool open(uint32_t blocks, uint32_t payload_bytes) noexcept;
  // `none`: all are in use, or there are none.
  [[nodiscard]] uint32_t acquire() noexcept;
  void release(uint32_t block) noexcept;
  [[nodiscard]] std::byte* memory_of(uint32_t block) const noexcept {
    return memory_ + block * block_bytes_;
  }

 private:
  void* mapping_ = nullptr;  // with `memory_` inside
  uint64_t mapped_bytes_ = 0;
  std::byte* memory_ = nullptr;
  uint64_t block_bytes_ = 0;
  uint32_t blocks_ = 0;
  uint32_t fresh_ = 0;                // from here on never used yet
  std::unique_ptr<uint32_t[]> free_;  // a ring of `blocks_` places
  uint32_t first_free_ = 0;
  uint32_t free_count_ = 0;
};

}  // namespace lintel
