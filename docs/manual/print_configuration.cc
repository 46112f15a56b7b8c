// Prints the configuration table, one variable a line, for lintel.conf(5): name, unit, default, allowed
// values, "tests" or "users", help; separated by tabs. Set-up path.
#include <cstdio>

#include "util/config.h"

int main() {
  for (const lintel::ConfigVariable& variable : lintel::config_table()) {
    const bool for_tests = variable.audience == lintel::ConfigAudience::tests;
    std::printf("%s\t%s\t%s\t%s\t%s\t%s\n", variable.name, variable.unit, variable.default_value,
                lintel::config_allowed(variable).c_str(), for_tests ? "tests" : "users",
                variable.help);
  }
}
