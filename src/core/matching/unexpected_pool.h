// The unexpected headers of an interface, named by numbers below its capacity.
// Message path, except open(): allocate() and release() as those of Arena.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/keyed_memory.h"
#include "core/matching/unexpected_header.h"
#include "util/arena.h"

namespace lintel {

class UnexpectedPool {
 public:
  UnexpectedPool() = default;
  UnexpectedPool(const UnexpectedPool&) = delete;
  UnexpectedPool& operator=(const UnexpectedPool&) = delete;
  ~UnexpectedPool() {
    if (headers_ != nullptr) keyed_memory.release(headers_, header_bytes());
  }

  // Reserves address space (set-up path, once). False when the system refuses.
  [[nodiscard]] bool open(uint32_t capacity) noexcept {
    if (!links_.open(capacity)) return false;
    headers_ = static_cast<UnexpectedHeader*>(keyed_memory.acquire(header_bytes()));
    return headers_ != nullptr;
  }

  // Null when all are in use.
  [[nodiscard]] UnexpectedHeader* allocate() noexcept {
    const uint32_t number = links_.allocate();
    return number == links_.no_index ? nullptr : &headers_[number];
  }
  void release(const UnexpectedHeader& header) noexcept { links_.release(number_of(header)); }

  [[nodiscard]] uint32_t number_of(const UnexpectedHeader& header) const noexcept {
    return static_cast<uint32_t>(&header - headers_);
  }
  [[nodiscard]] UnexpectedHeader& header(uint32_t number) const noexcept {
    return headers_[number];
  }
  [[nodiscard]] UnexpectedLinks& links(uint32_t number) const noexcept { return links_.at(number); }
  [[nodiscard]] UnexpectedLinks& links_of(const UnexpectedHeader& header) const noexcept {
    return links(number_of(header));
  }
  [[nodiscard]] uint32_t capacity() const noexcept { return links_.capacity(); }

 private:
  [[nodiscard]] size_t header_bytes() const noexcept {
    return size_t{capacity()} * sizeof(UnexpectedHeader);
  }

  Arena<UnexpectedLinks> links_;
  UnexpectedHeader* headers_ = nullptr;
};

}  // namespace lintel
