/* numbers.cc: numbers and sizes as people write them. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/headers.h"

namespace {

constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};

/** The factor of a unit such as "K", "kb" or "GiB"; 0 if it is none. */
uint64_t unit_factor(const char* unit) {
  constexpr const char* kLetters = "KMGTP";
  if (!*unit) return 0;
  if (std::toupper(static_cast<unsigned char>(*unit)) == 'B') return unit[1] ? 0 : 1;
  const char* found = std::strchr(kLetters, std::toupper(static_cast<unsigned char>(*unit)));
  if (!found || !*found) return 0;
  ++unit;
  if (*unit == 'i' || *unit == 'I') ++unit;
  if (*unit == 'b' || *unit == 'B') ++unit;
  return *unit ? 0 : uint64_t{1} << (10 * (found - kLetters + 1));
}

const char* skip_blanks(const char* text) {
  while (*text == ' ') ++text;
  return text;
}

}  // namespace

int64_t gasnett_parse_int(const char* s, uint64_t mem_mult) {
  const char* start = skip_blanks(s);
  char* end = nullptr;
  if (mem_mult == 0) {
    const long long value = std::strtoll(start, &end, 0);
    if (end == start || *skip_blanks(end)) gasnett_fatalerror_nopos("'%s' is not an integer", s);
    return value;
  }
  // Whole numbers are exact; a fraction is a double.
  const bool is_hexadecimal = start[0] == '0' && (start[1] == 'x' || start[1] == 'X');
  const long long whole = std::strtoll(start, &end, is_hexadecimal ? 16 : 10);
  double value = static_cast<double>(whole);
  bool is_whole = end != start;
  if (!is_hexadecimal && (!is_whole || *end == '.')) {
    value = std::strtod(start, &end);
    is_whole = false;
  }
  if (end == start) gasnett_fatalerror_nopos("'%s' is not a size in memory", s);
  if (*end == '/') {
    const char* below = end + 1;
    const double denominator = std::strtod(below, &end);
    if (end == below || denominator == 0)
      gasnett_fatalerror_nopos("'%s' is not a size in memory", s);
    value /= denominator;
    is_whole = false;
  }
  const char* unit = skip_blanks(end);
  const uint64_t factor = *unit ? unit_factor(unit) : mem_mult;
  if (factor == 0)
    gasnett_fatalerror_nopos("'%s' is not a size in memory: the units are B, KB, MB, GB and TB", s);
  return is_whole ? static_cast<int64_t>(static_cast<uint64_t>(whole) * factor)
                  : static_cast<int64_t>(value * static_cast<double>(factor));
}

char* gasnett_format_number(int64_t val, char* buf, size_t bufsz, int is_mem_size) {
  if (!is_mem_size) {
    std::snprintf(buf, bufsz, "%lld", static_cast<long long>(val));
    return buf;
  }
  // The largest unit that divides the number, so that the text is exact.
  size_t unit = 0;
  while (val != 0 && val % 1024 == 0 && unit + 2 < sizeof kUnits / sizeof *kUnits) {
    val /= 1024;
    ++unit;
  }
  std::snprintf(buf, bufsz, "%lld %s", static_cast<long long>(val), kUnits[unit]);
  return buf;
}
