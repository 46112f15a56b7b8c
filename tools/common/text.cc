// Numbers as people read and write them, and columns. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "common/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace lintel::tools {

std::string format_fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string format_nid(std::uint32_t nid) {
  return std::to_string(nid >> 24) + '.' + std::to_string(nid >> 16 & 0xff) + '.' +
         std::to_string(nid >> 8 & 0xff) + '.' + std::to_string(nid & 0xff);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  const bool whole = value == std::floor(value);
  return format_fixed(value, whole ? 0 : 1) + ' ' + units[unit];
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return std::nullopt;

  std::string suffix(end, text.data() + text.size());
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!suffix.empty() && suffix.front() == ' ') suffix.erase(0, 1);

  unsigned shift = 0;
  if (suffix == "k" || suffix == "kib") {
    shift = 10;
  } else if (suffix == "m" || suffix == "mib") {
    shift = 20;
  } else if (suffix == "g" || suffix == "gib") {
    shift = 30;
  } else if (!suffix.empty() && suffix != "b") {
    return std::nullopt;
  }
  if (number > (UINT64_MAX >> shift)) return std::nullopt;
  return number << shift;
}

std::string format_count(double value) {
  constexpr std::array prefixes{"", " k", " M", " G"};
  std::size_t prefix = 0;
  while (value >= 1000.0 && prefix + 1 < prefixes.size()) {
    value /= 1000.0;
    ++prefix;
  }
  const int decimals = value >= 100.0 ? 1 : (value >= 10.0 ? 2 : 3);
  return format_fixed(value, decimals) + prefixes[prefix];
}

std::string Columns::text(unsigned indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - row[column].size(), ' ');
      if (column == 0) {
        line += row[column] + padding;
      } else {
        line += "  " + padding + row[column];
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string wrap(std::string_view text, unsigned indent, unsigned width) {
  std::string out;
  std::string line(indent, ' ');
  bool line_has_words = false;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (line_has_words && line.size() + 1 + word.size() > width) {
      out += line + '\n';
      line.assign(indent, ' ');
      line_has_words = false;
    }
    if (line_has_words) line += ' ';
    line += word;
    line_has_words = true;
  }
  if (line_has_words) out += line + '\n';
  return out;
}

}  // namespace lintel::tools
