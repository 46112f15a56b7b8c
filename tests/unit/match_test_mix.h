// Mixes of wildcard shapes and keys for random tests of the matching structures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "core/matching/keyed_hash.h"
#include "core/matching/match_criteria.h"

namespace lintel::testing {

struct Mix {
  const char* name;
  std::vector<std::pair<uint64_t, uint64_t>> shapes;  // ignore_bits, source_mask
  std::vector<uint64_t> match_bits;
  std::vector<uint64_t> sources;
  // Used in place of match_bits: this many values with colliding hashes, which the test searches
  // for.
  size_t colliding = 0;

  friend void PrintTo(const Mix& mix, std::ostream* out) { *out << mix.name; }
};

inline MatchCriteria exact(uint64_t match_bits, uint64_t source = 1) {
  return {.match_bits = match_bits, .source = source, .source_mask = source_mask_exact};
}

inline std::vector<uint64_t> range(uint64_t count, uint64_t step = 1) {
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(i * step);
  return values;
}

// Match bits whose hashes (from source 1) have the same low 20 bits. They collide in every table of
// less than a million slots or buckets.
inline std::vector<uint64_t> colliding_bits(size_t count) {
  const auto low_hash = [](uint64_t bits) {
    return keyed_hash(bits, 1, keyed_hash_seed()) & 0xfffff;
  };
  std::vector<uint64_t> values{0};
  for (uint64_t bits = 1; values.size() < count; ++bits) {
    if (low_hash(bits) == low_hash(0)) values.push_back(bits);
  }
  return values;
}

// Match bits whose hash is zero for every source.
inline uint64_t degenerate_bits() { return keyed_hash_bits_salt ^ keyed_hash_seed(); }

}  // namespace lintel::testing
