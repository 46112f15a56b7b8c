/* options.h: the command line of gasnetrun_portals4.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SPAWNER_OPTIONS_H
#define LINTEL_GASNET_SPAWNER_OPTIONS_H

#include <string>
#include <vector>

namespace lintel::gasnet {

struct Options {
  unsigned int processes = 0;
  unsigned int nodes = 0;     /* 0: the launcher decides */
  unsigned int cpus = 0;      /* processors of a process; 0: the launcher decides */
  unsigned int limit_s = 0;   /* -limit; 0: none */
  unsigned int verbosity = 0; /* -v, repeated */
  bool only_print = false;
  std::string spawner; /* "fork", "mpi" or "pmix" */
  std::vector<std::string> variables;
  std::vector<std::string> command;
};

/** @param error  gets one line if the command line is not valid.
 * @return false then. Also false for -h, with an empty error. */
bool parse_options(int argc, const char* const* argv, Options& options, std::string& error);

extern const char* const kUsage;

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SPAWNER_OPTIONS_H
