// The command line of the programs that perf/instructions counts: --row NAME --messages N.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace lintel::instructions {

struct Row {
  std::string_view name;
  void (*exchange)(uint64_t messages);
};

inline int run(int argc, char** argv, std::span<const Row> rows) {
  std::string_view name;
  uint64_t messages = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--row") name = argv[i + 1];
    if (option == "--messages") messages = std::strtoull(argv[i + 1], nullptr, 10);
  }
  for (const Row& row : rows) {
    if (row.name != name || messages == 0) continue;
    row.exchange(messages);
    return EXIT_SUCCESS;
  }
  std::fprintf(stderr, "usage: %s --row NAME --messages N, with one of the names", argv[0]);
  for (const Row& row : rows)
    std::fprintf(stderr, " %.*s", static_cast<int>(row.name.size()), row.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}

}  // namespace lintel::instructions
