/* limits.cc: parsing GASNET_MAX_SEGSIZE in all its forms. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "segment/limits.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tools/descriptors.h"
#include "tools/headers.h"

namespace lintel::gasnet {
namespace {

/** A number or a fraction. @return false if the text does not begin with one. */
bool parse_number(const char*& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text, &end);
  if (end == text || value < 0) return false;
  text = end;
  // "3/4", but not "2GB/P".
  if (*text == '/' && std::isdigit(static_cast<unsigned char>(text[1]))) {
    const double below = std::strtod(text + 1, &end);
    if (below == 0) return false;
    value /= below;
    text = end;
  }
  return true;
}

/** The factor of a unit, or 0 if there is none. Moves `text` behind the unit. */
double parse_unit(const char*& text) {
  constexpr std::string_view kLetters = "KMGT";
  const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(*text)));
  double factor = 0;
  if (letter == 'B') {
    ++text;
    return 1;
  }
  if (const size_t place = kLetters.find(letter); letter && place != std::string_view::npos) {
    factor = static_cast<double>(uint64_t{1} << (10 * (place + 1)));
    ++text;
    if (*text == 'i' || *text == 'I') ++text;
    if (*text == 'b' || *text == 'B') ++text;
  }
  return factor;
}

uint64_t read_number(const char* path) {
  unsigned long long value = 0;
  if (FILE* file = open_file(path, "r")) {
    if (std::fscanf(file, "%llu", &value) != 1) value = 0;
    std::fclose(file);
  }
  return value;
}

}  // namespace

uint64_t memory_of_host() {
  uint64_t bytes = gasnett_getPhysMemSz(1);
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const uint64_t limit = read_number(path); limit != 0) bytes = std::min(bytes, limit);
  return bytes;
}

uint64_t parse_segment_limit(const char* text, uint64_t memory_bytes, unsigned int processes) {
  double value = 0;
  while (*text == ' ') ++text;
  if (!parse_number(text, value)) return 0;
  while (*text == ' ') ++text;
  const double factor = parse_unit(text);
  while (*text == ' ') ++text;
  bool for_host = false;
  if (*text == '/') {
    const char kind = static_cast<char>(std::toupper(static_cast<unsigned char>(text[1])));
    if ((kind != 'P' && kind != 'H') || text[2]) return 0;
    for_host = kind == 'H';
  } else if (*text) {
    return 0;
  }
  // Without a unit, a value up to 1 is a fraction of the memory; a higher value is in bytes.
  double bytes = factor != 0  ? value * factor
                 : value <= 1 ? value * static_cast<double>(memory_bytes)
                              : value;
  if (for_host) bytes /= processes;
  constexpr uint64_t kPage = GASNETT_PAGESIZE;
  const auto pages = static_cast<uint64_t>(std::min(bytes, 9e18)) / kPage;
  return std::max<uint64_t>(pages, 1) * kPage;
}

}  // namespace lintel::gasnet
