// Numbers as people read and write them, and columns. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lintel::tools {

/** "8 B", "4 KiB", "1.5 MiB". */
std::string format_bytes(std::uint64_t bytes);

/** Bytes from "8", "4k", "64KiB", "1M", "2GiB"; nothing if the text is not a size. */
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/** A nid as its IPv4 address: "192.0.2.1". */
std::string format_nid(std::uint32_t nid);

/** A number with `decimals` digits after the point. */
std::string format_fixed(double value, int decimals);

/** A count with a decimal prefix and four significant digits: "15.34 M", "812.0 k". */
std::string format_count(double value);

/** Rows of text with aligned columns: the first column to the left, the others to the right. */
class Columns {
 public:
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /** All rows, each with `indent` spaces in front. */
  std::string text(unsigned indent) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/** `text` broken into lines of at most `width` characters, each with `indent` spaces in front. */
std::string wrap(std::string_view text, unsigned indent, unsigned width = 98);

}  // namespace lintel::tools
