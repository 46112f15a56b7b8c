// An object of a pool for a moment: what is too large for the stack of a caller. Message path.
#pragma once

#include <cstdint>

#include "util/arena.h"
#include "util/assert.h"

namespace lintel {

// The holder waits for nothing meanwhile, and takes no second object of the pool. So another thread
// that finds none free gets one soon.
template <typename T>
class Loan {
 public:
  explicit Loan(Arena<T>& pool) noexcept : pool_(pool) {
    LINTEL_ASSERT(pool.capacity() != 0);
    while ((index_ = pool.allocate()) == Arena<T>::no_index) {
    }
  }
  ~Loan() { pool_.release(index_); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  [[nodiscard]] T& get() const noexcept { return pool_.at(index_); }

 private:
  Arena<T>& pool_;
  uint32_t index_;
};

}  // namespace lintel
