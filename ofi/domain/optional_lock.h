// The lock of a domain. A program that promises not to call from two threads at a time saves it.
// Message path.
#pragma once

#include <mutex>

namespace lintel::ofi {

class OptionalLock {
 public:
  explicit OptionalLock(bool needed) noexcept : needed_(needed) {}

  void lock() {
    if (needed_) mutex_.lock();
  }
  void unlock() {
    if (needed_) mutex_.unlock();
  }
  // While no thread has it.
  void require() noexcept { needed_ = true; }
  [[nodiscard]] bool is_needed() const noexcept { return needed_; }

 private:
  bool needed_;
  std::mutex mutex_;
};

using Guard = std::lock_guard<OptionalLock>;

}  // namespace lintel::ofi
