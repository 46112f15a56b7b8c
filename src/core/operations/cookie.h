// Cookies name operations that wait for an answer of a peer: an index with a generation, so that an
// old cookie names nothing. Message path.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/arena.h"

namespace lintel {

inline constexpr uint32_t cookie_index_bits = 24;

[[nodiscard]] constexpr uint32_t make_cookie(uint32_t index, uint8_t generation) noexcept {
  return index | uint32_t{generation} << cookie_index_bits;
}
[[nodiscard]] constexpr uint32_t cookie_index(uint32_t cookie) noexcept {
  return cookie & ((1u << cookie_index_bits) - 1);
}
[[nodiscard]] constexpr uint8_t cookie_generation(uint32_t cookie) noexcept {
  return static_cast<uint8_t>(cookie >> cookie_index_bits);
}

// Objects of a pool that cookies name: with a `generation`, and with a `peer` unless they are free.
template <typename Object>
[[nodiscard]] uint32_t cookie_in(const Arena<Object>& pool, const Object& object) noexcept {
  return make_cookie(pool.index_of(object), object.generation.load(std::memory_order_relaxed));
}
// Returns nullptr if the cookie names no object in use.
template <typename Object>
[[nodiscard, gnu::always_inline]] inline Object* find_by_cookie(const Arena<Object>& pool,
                                                                uint32_t cookie) noexcept {
  const uint32_t index = cookie_index(cookie);
  if (!pool.contains(index)) return nullptr;
  Object& object = pool.at(index);
  return object.peer.load(std::memory_order_acquire) != nullptr &&
                 object.generation.load(std::memory_order_relaxed) == cookie_generation(cookie)
             ? &object
             : nullptr;
}
// Calls action(Object&) for all objects in use.
template <typename Object, typename Action>
void for_each_live(const Arena<Object>& pool, Action&& action) noexcept {
  for (uint32_t i = 0; i < pool.high_water(); ++i) {
    Object& object = pool.at(i);
    if (object.peer.load(std::memory_order_acquire) != nullptr) action(object);
  }
}

}  // namespace lintel
