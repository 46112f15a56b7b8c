// The handle that the application has for an object of a pool, kept in the object: one comparison
// shows whether a handle names it. Message path.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

// The part of a handle that changes with each life of an object (handle.h has the others).
inline constexpr unsigned handle_index_bits = 24;
inline constexpr uint32_t handle_generation_mask = 0xffffff;

class LiveHandle {
 public:
  // The object is in use from now on. `family`: its handle with generation 0. Returns its handle.
  uint64_t begin(uint64_t family) noexcept {
    const uint64_t handle = family | uint64_t{(generation() + 1) & handle_generation_mask}
                                         << handle_index_bits;
    word_.store(handle, std::memory_order_release);
    return handle;
  }
  // Ends the life of the object. If several threads call this for one handle, one gets true.
  [[nodiscard]] bool end(uint64_t handle) noexcept {
    return word_.compare_exchange_strong(handle, (handle + one_generation) | no_index,
                                         std::memory_order_acquire, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is(uint64_t handle) const noexcept {
    return word_.load(std::memory_order_acquire) == handle;
  }
  // Differs between lives, and between a life and its end.
  [[nodiscard]] uint32_t generation() const noexcept {
    return static_cast<uint32_t>(word_.load(std::memory_order_relaxed) >> handle_index_bits);
  }

 private:
  static constexpr uint64_t one_generation = uint64_t{1} << handle_index_bits;
  // Index of a free object. A handle with this index names no object of a pool.
  static constexpr uint64_t no_index = one_generation - 1;

  std::atomic<uint64_t> word_{no_index};
};

}  // namespace lintel
