/* options.cc: reading the command line of gasnetrun_portals4.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/options.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace lintel::gasnet {

const char* const kUsage =
    "Starts the processes of a GASNet program.\n"
    "Usage: gasnetrun_portals4 -n PROCESSES [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
    "  -n N             processes\n"
    "  -N N             nodes\n"
    "  -c N             processors of each process (spawners pmix and mpi)\n"
    "  -E VAR[,VAR...]  variables of the environment that the launcher shall hand on\n"
    "  -limit=SECONDS   end the job, with status 124, when all processes have only waited for each\n"
    "                   other for so long (spawner fork; give more than the longest transfer takes)\n"
    "  -v               print the command that starts the processes\n"
    "  -t               print it only\n"
    "  -k               keep temporary files (there are none), and -v\n"
    "  -spawner=NAME    pmix (srun), mpi (mpirun) or fork (this host); default: the variable\n"
    "                   GASNET_PORTALS4_SPAWNER, else pmix within a Slurm allocation, else fork\n"
    "  -h               this text\n";

namespace {

bool parse_count(const std::string& text, unsigned int& count) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 10);
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0])) || *end || value == 0 ||
      value > 100'000'000)
    return false;
  count = static_cast<unsigned int>(value);
  return true;
}

void split(const std::string& text, std::vector<std::string>& parts) {
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
}

std::string default_spawner() {
  if (const char* name = std::getenv("GASNET_PORTALS4_SPAWNER"); name && *name) return name;
  return std::getenv("SLURM_JOB_ID") ? "pmix" : "fork";
}

}  // namespace

bool parse_options(int argc, const char* const* argv, Options& options, std::string& error) {
  int next = 1;
  while (next < argc && argv[next][0] == '-') {
    const std::string option = argv[next++];
    if (option == "--") break;
    if (option == "-h" || option == "-help" || option == "--help") return false;
    if (option == "-v") {
      ++options.verbosity;
    } else if (option == "-t") {
      options.only_print = true;
      ++options.verbosity;
    } else if (option == "-k") {
      ++options.verbosity;
    } else if (option.starts_with("-spawner=") || option.starts_with("--spawner=")) {
      options.spawner = option.substr(option.find('=') + 1);
    } else if (option.starts_with("-limit=") || option.starts_with("--limit=")) {
      if (!parse_count(option.substr(option.find('=') + 1), options.limit_s)) {
        error = option + ": give seconds from 1 on";
        return false;
      }
    } else if (option == "-n" || option == "-np" || option == "-N" || option == "-c" ||
               option == "-E") {
      if (next == argc) {
        error = option + " needs a value";
        return false;
      }
      const std::string value = argv[next++];
      if (option == "-E") {
        split(value, options.variables);
        continue;
      }
      unsigned int& count = option == "-N"   ? options.nodes
                            : option == "-c" ? options.cpus
                                             : options.processes;
      if (!parse_count(value, count)) {
        error = option + " " + value + ": give a number from 1 on";
        return false;
      }
    } else {
      error = option + ": unknown option";
      return false;
    }
  }
  options.command.assign(argv + next, argv + argc);
  if (options.spawner.empty()) options.spawner = default_spawner();
  std::transform(options.spawner.begin(), options.spawner.end(), options.spawner.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (options.processes == 0) {
    error = "give the number of processes: -n N";
  } else if (options.command.empty()) {
    error = "give a program";
  } else if (options.spawner != "fork" && options.spawner != "mpi" && options.spawner != "pmix" &&
             options.spawner != "pmi") {
    error = "spawner " + options.spawner + ": there are fork, mpi and pmix";
  } else if (options.limit_s != 0 && options.spawner != "fork") {
    error = "-limit: the spawner " + options.spawner +
            " cannot look at the processes; use mpirun --timeout or srun --time";
  } else if (options.nodes > options.processes) {
    error = "-N is larger than -n";
  } else if (options.spawner == "fork" && options.nodes > 1) {
    error = "-N " + std::to_string(options.nodes) +
            ": the spawner fork starts processes on this host only; use -spawner=mpi or pmix";
  }
  return error.empty();
}

}  // namespace lintel::gasnet
