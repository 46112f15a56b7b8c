// The command line of ptl_perf. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <variant>

#include "ptl_perf/settings.h"

namespace lintel::perf {

/** Exit code of a process that ends at once: after --help, or after a wrong option. */
struct ExitNow {
  int code;
};

/** Reads the command line. Help goes to standard output; complaints, which say what is allowed, to
 *  standard error. */
std::variant<Settings, ExitNow> parse_command_line(int argc, char** argv);

}  // namespace lintel::perf
