/* diagnostics.cc: the self-test of the tools. It compares results with a simple computation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>
#include <cstring>

#include "tools/headers.h"

namespace {

uint64_t next_random(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

int errors_in_numbers(uint64_t random) {
  const auto value = static_cast<int64_t>(uint64_t{1} << random % 62);
  int errors = 0;
  for (const int is_size : {0, 1}) {
    char text[50];
    gasnett_format_number(value, text, sizeof text, is_size);
    errors += gasnett_parse_int(text, static_cast<uint64_t>(is_size)) != value;
  }
  return errors;
}

int errors_in_bytes(uint64_t random) {
  unsigned char source[64];
  unsigned char copy[sizeof source];
  for (size_t i = 0; i < sizeof source; ++i)
    source[i] = random >> (i % 60) & 1 ? static_cast<unsigned char>(random >> i % 56) : 0;
  const size_t first = random % 16;
  const size_t length = random / 16 % (sizeof source - first);
  const auto zeros = static_cast<size_t>(std::count(source + first, source + first + length, 0));
  int errors = gasnett_count0s(source + first, length) != zeros;
  errors += gasnett_count0s_copy(copy, source + first, length) != zeros;
  errors += std::memcmp(copy, source + first, length) != 0;
  return errors;
}

int errors_in_atomics(uint64_t random) {
  gasnett_atomic64_t word = gasnett_atomic64_init(0);
  gasnett_atomic64_set(&word, random, 0);
  int errors = gasnett_atomic64_add(&word, 5, 0) != random + 5;
  errors += gasnett_atomic64_subtract(&word, random, 0) != 5;
  errors += !gasnett_atomic64_compare_and_swap(&word, 5, 6, 0);
  errors += gasnett_atomic64_swap(&word, 7, 0) != 6;
  errors += gasnett_atomic64_read(&word, 0) != 7;
  return errors;
}

}  // namespace

int gasnett_run_diagnostics(int iters, int /*threads*/, const char* /*sections*/, ...) {
  uint64_t state = 1;
  int errors = 0;
  for (int i = 0; i < iters; ++i) {
    const uint64_t random = next_random(state);
    errors += errors_in_numbers(random) + errors_in_bytes(random) + errors_in_atomics(random);
  }
  return errors;
}

#ifndef GASNETI_TOOLS_ALONE
void gasnett_diagnostic_gethandlers(gex_AM_Entry_t** table, int* count) {
  *table = nullptr;
  *count = 0;
}
#endif
