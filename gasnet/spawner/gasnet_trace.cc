/* gasnet_trace.cc: summarises the files that GASNET_TRACEFILE and GASNET_STATSFILE name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tools/categories.h"
#include "tools/descriptors.h"

namespace {

using lintel::gasnet::name_of_category;

const char* const kUsage =
    "Sums up trace and statistics files of GASNet by category and by line of source.\n"
    "Usage: gasnet_trace [-c LETTERS] [-o FILE] FILE...\n"
    "  -c LETTERS  categories to show, as in GASNET_TRACEMASK; all without it\n"
    "  -o FILE     where the sums are written; standard output without it";

/** One line of a file. */
struct Line {
  unsigned long rank = 0;
  double seconds = 0;
  std::string place; /* place in the source; empty if the program has not set it */
  char category = 0;
  std::string text;
};

/** The sums of a category or of a line of source. */
struct Sum {
  unsigned long long calls = 0;
  unsigned long long bytes = 0;
  double first_s = 0;
  double last_s = 0;
  std::set<unsigned long> ranks;

  void add(const Line& line, unsigned long long calls_of_line, unsigned long long bytes_of_line) {
    first_s = calls == 0 ? line.seconds : std::min(first_s, line.seconds);
    last_s = std::max(last_s, line.seconds);
    calls += calls_of_line;
    bytes += bytes_of_line;
    ranks.insert(line.rank);
  }
};

/** Parses "3 0.000012000s> [file.c:12] (P) text". @return false if the line is something else. */
bool parse(const std::string& written, Line& line) {
  char* end = nullptr;
  line.rank = std::strtoul(written.c_str(), &end, 10);
  if (end == written.c_str() || *end != ' ') return false;
  line.seconds = std::strtod(end, &end);
  if (std::strncmp(end, "s> ", 3) != 0) return false;
  const char* rest = end + 3;
  line.place.clear();
  if (*rest == '[') {
    const char* const behind = std::strchr(rest, ']');
    if (!behind || behind[1] != ' ') return false;
    line.place.assign(rest + 1, behind);
    rest = behind + 2;
  }
  if (rest[0] != '(' || !std::isupper(static_cast<unsigned char>(rest[1])) || rest[2] != ')')
    return false;
  line.category = rest[1];
  line.text = rest[3] == ' ' ? rest + 4 : rest + 3;
  return true;
}

/** The calls that a line of statistics counts: "12 puts". */
unsigned long long calls_of(const Line& line) {
  char* end = nullptr;
  const unsigned long long count = std::strtoull(line.text.c_str(), &end, 10);
  const bool counts = *end == ' ' && std::strcmp(end + 1, name_of_category(line.category)) == 0;
  return counts ? count : 1;
}

/** The number before the word "bytes". */
unsigned long long bytes_of(const Line& line) {
  const size_t word = line.text.find(" bytes");
  if (word == std::string::npos || word == 0) return 0;
  const size_t blank = line.text.rfind(' ', word - 1);
  return std::strtoull(line.text.c_str() + (blank == std::string::npos ? 0 : blank + 1), nullptr,
                       10);
}

class Report {
 public:
  explicit Report(std::string letters) : letters_(std::move(letters)) {}

  /** @return false if the file cannot be read. */
  bool add_file(const char* path) {
    std::ifstream file(path);
    if (!file) return false;
    std::string written;
    Line line;
    while (std::getline(file, written)) {
      if (!parse(written, line))
        ++other_lines_;
      else if (letters_.empty() || letters_.find(line.category) != std::string::npos)
        add(line);
    }
    return true;
  }

  void print(std::FILE* out) const {
    std::fprintf(out, "%-28s %10s %14s %12s %12s %6s\n", "category", "calls", "bytes", "first s",
                 "last s", "ranks");
    for (const auto& [category, sum] : categories_)
      print(out, std::string("(") + category + ") " + name_of_category(category), sum);
    if (!places_.empty()) std::fprintf(out, "\nby line of source\n");
    for (const auto& [place, sum] : places_)
      print(out, std::string("(") + place.second + ") " + place.first, sum);
    if (other_lines_ != 0) std::fprintf(out, "\nlines of another form: %llu\n", other_lines_);
  }

 private:
  void add(const Line& line) {
    categories_[line.category].add(line, calls_of(line), bytes_of(line));
    if (!line.place.empty())
      places_[{line.place, line.category}].add(line, calls_of(line), bytes_of(line));
  }
  static void print(std::FILE* out, const std::string& name, const Sum& sum) {
    std::fprintf(out, "%-28s %10llu %14llu %12.6f %12.6f %6zu\n", name.c_str(), sum.calls,
                 sum.bytes, sum.first_s, sum.last_s, sum.ranks.size());
  }

  std::string letters_;
  std::map<char, Sum> categories_;
  std::map<std::pair<std::string, char>, Sum> places_;
  unsigned long long other_lines_ = 0;
};

int fail(const char* what, const char* why) {
  std::fprintf(stderr, "gasnet_trace: %s: %s\n", what, why);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string letters;
  const char* output = nullptr;
  lintel::gasnet::open_standard_descriptors();
  int next = 1;
  for (; next < argc && argv[next][0] == '-'; ++next) {
    const std::string option = argv[next];
    if (option == "-h" || option == "--help") {
      std::puts(kUsage);
      return 0;
    }
    if ((option != "-c" && option != "-o") || next + 1 == argc) return fail(argv[next], kUsage);
    const char* const value = argv[++next];
    if (option == "-c")
      letters = value;
    else
      output = value;
  }
  if (next == argc) return fail("give a file", kUsage);
  Report report(letters);
  for (; next < argc; ++next)
    if (!report.add_file(argv[next])) return fail(argv[next], std::strerror(errno));
  std::FILE* const out = output ? std::fopen(output, "w") : stdout;
  if (!out) return fail(output, std::strerror(errno));
  report.print(out);
  if (std::fclose(out) != 0) return fail(output ? output : "standard output", std::strerror(errno));
  return 0;
}
