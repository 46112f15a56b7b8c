// Hash of a masked (match bits, source) pair, shared by the match lists and the unexpected lists.
// Message path: two multiplications.
#pragma once

#include <cstdint>

#include "util/random.h"

namespace lintel {

// Differs between processes, so that no peer can choose match bits which all fall into one bucket.
// Set-up path; the structures keep a copy.
[[nodiscard]] inline uint64_t keyed_hash_seed() noexcept {
  static const uint64_t seed = random_u64();
  return seed;
}

inline constexpr uint64_t keyed_hash_bits_salt = 0x9e3779b97f4a7c15;
inline constexpr uint64_t keyed_hash_source_salt = 0xd6e8feb86659fd93;

// Folds both halves of the 128-bit product into one, and mixes the high bits down. Otherwise keys
// in regular steps would cluster for some seeds.
[[nodiscard]] inline uint64_t keyed_hash(uint64_t bits, uint64_t source, uint64_t seed) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product =
      Wide{bits ^ keyed_hash_bits_salt ^ seed} * Wide{source ^ keyed_hash_source_salt ^ seed};
  uint64_t hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  hash ^= hash >> 32;
  hash *= keyed_hash_source_salt;
  return hash ^ hash >> 32;
}

}  // namespace lintel
