// An object that is made at the first use and never destroyed: threads and exit handlers may use it
// until the process has ended. It needs no heap, so a function that refers to one cannot fail for
// want of memory. Set-up path.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace lintel {

// Holder for a static variable in a function.
template <typename T>
class NeverDestroyed {
 public:
  template <typename... Arguments>
  explicit NeverDestroyed(Arguments&&... arguments) {
    new (memory_) T(std::forward<Arguments>(arguments)...);
  }
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  [[nodiscard]] T& get() noexcept { return *std::launder(reinterpret_cast<T*>(memory_)); }

 private:
  alignas(T) std::byte memory_[sizeof(T)];
};

}  // namespace lintel
