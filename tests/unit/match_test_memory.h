// Counts the requests of the matching structures to keyed_memory, and refuses them when a test
// demands it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matching/keyed_memory.h"

namespace lintel::testing {

class CountedMemory {
 public:
  CountedMemory() {
    original_ = keyed_memory;
    requests_ = 0;
    outstanding_bytes_ = 0;
    refuse_from_ = SIZE_MAX;
    keyed_memory = {acquire, release};
  }
  ~CountedMemory() { keyed_memory = original_; }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  [[nodiscard]] size_t requests() const { return requests_; }
  [[nodiscard]] size_t outstanding_bytes() const { return outstanding_bytes_; }
  // The next `count` requests succeed. All later ones fail.
  void grant_only(size_t count) { refuse_from_ = requests_ + count; }
  void grant_all() { refuse_from_ = SIZE_MAX; }

 private:
  static void* acquire(size_t bytes) noexcept {
    if (requests_ >= refuse_from_) return nullptr;
    ++requests_;
    void* const memory = original_.acquire(bytes);
    if (memory != nullptr) outstanding_bytes_ += bytes;
    return memory;
  }
  static void release(void* memory, size_t bytes) noexcept {
    outstanding_bytes_ -= bytes;
    original_.release(memory, bytes);
  }

  static inline KeyedMemory original_{};
  static inline size_t requests_ = 0;
  static inline size_t outstanding_bytes_ = 0;
  static inline size_t refuse_from_ = SIZE_MAX;
};

}  // namespace lintel::testing
