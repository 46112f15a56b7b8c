// ptl_info: what this library is, what it finds on this machine, how it is configured.
// Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <iostream>

#if !__has_include(<CLI/CLI.hpp>) || !__has_include(<nlohmann/json.hpp>)
#error "ptl_info needs CLI11 and JSON for Modern C++: install libcli11-dev and nlohmann-json3-dev"
#endif
#include <CLI/CLI.hpp>

#include "ptl_info/facts.h"

namespace {

constexpr int found_problems = 1;
constexpr int usage_error = 2;

int run(int argc, char** argv) {
  CLI::App app(
      "Shows which transports this Portals library would use on this machine and why, its devices, "
      "what is wrong and what to do about it.",
      "ptl_info");
  app.footer(
      "Exit codes:\n"
      "  0  nothing is wrong, or only notes\n"
      "  1  problems were found\n"
      "  2  wrong option");
  bool as_json = false;
  bool only_configuration = false;
  std::uint32_t number = 0;
  app.add_flag("--json", as_json, "Everything, as JSON");
  app.add_flag("--config", only_configuration,
               "The configuration variables: value, where it is from, what is allowed");
  bool all = false;
  app.add_flag(
      "--all", all,
      "Also limits, features, status registers, all interfaces and the configuration; with "
      "--config also the variables that only tests and measurements need");
  auto* interface =
      app.add_option("--interface", number, "Interface to open; default: PTL_IFACE_DEFAULT")
          ->check(CLI::Range(0u, 0xffffu));
  app.set_version_flag("--version", "ptl_info " LINTEL_VERSION " (Portals 4.3)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : usage_error;
  }

  const lintel::info::Facts facts =
      lintel::info::gather_facts(interface->count() > 0 ? number : PTL_IFACE_DEFAULT);
  if (as_json) {
    lintel::info::print_json(facts);
  } else if (only_configuration) {
    lintel::info::print_configuration(facts, all);
  } else if (all) {
    lintel::info::print_text(facts);
  } else {
    lintel::info::print_screen(facts);
  }
  // The screen has them as findings.
  if (as_json || only_configuration || all) {
    for (const std::string& line : facts.log_lines)
      std::fprintf(stderr, "ptl_info: %s\n", line.c_str());
    if (facts.log_error.empty() && !facts.open_problem.empty())
      std::fprintf(stderr, "ptl_info: the interface cannot be opened: %s\n",
                   facts.open_problem.c_str());
  }
  if (only_configuration) return 0;
  const bool is_wrong = std::any_of(facts.findings.begin(), facts.findings.end(),
                                    [](const lintel::info::Finding& finding) {
                                      return finding.severity == lintel::info::Severity::problem;
                                    });
  return is_wrong ? found_problems : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptl_info: %s\n", error.what());
    return 1;
  }
}
