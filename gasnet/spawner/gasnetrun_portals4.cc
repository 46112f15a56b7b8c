/* gasnetrun_portals4.cc: starts the processes of a job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "spawner/fork_spawner.h"
#include "spawner/options.h"
#include "tools/descriptors.h"

extern "C" char** environ;

namespace lintel::gasnet {
namespace {

/** Variables that mpirun must pass to other nodes: those of the libraries, and -E. */
std::vector<std::string> handed_on(const Options& options) {
  std::vector<std::string> names = options.variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (name.starts_with("GASNET_") || name.starts_with("GASNETT_") || name.starts_with("PTL_") ||
        name == "LD_LIBRARY_PATH")
      names.push_back(name);
  }
  return names;
}

std::vector<std::string> mpirun_command(const Options& options) {
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(options.processes),
                                    "--oversubscribe"};
  if (geteuid() == 0) words.push_back("--allow-run-as-root");
  if (options.nodes != 0) {
    const unsigned int per_node = (options.processes + options.nodes - 1) / options.nodes;
    std::string mapping = "ppr:" + std::to_string(per_node) + ":node";
    if (options.cpus != 0) mapping += ":pe=" + std::to_string(options.cpus);
    words.insert(words.end(), {"--map-by", mapping});
  } else if (options.cpus != 0) {
    words.insert(words.end(), {"--map-by", "slot:pe=" + std::to_string(options.cpus)});
  }
  for (const std::string& name : handed_on(options)) words.insert(words.end(), {"-x", name});
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

std::vector<std::string> srun_command(const Options& options) {
  std::vector<std::string> words = {"srun", "--mpi=pmix", "-n", std::to_string(options.processes)};
  if (options.nodes != 0) words.insert(words.end(), {"-N", std::to_string(options.nodes)});
  if (options.cpus != 0) words.insert(words.end(), {"-c", std::to_string(options.cpus)});
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

/** Replaces this process by the launcher. */
int run_by_launcher(const Options& options, const std::vector<std::string>& words) {
  if (options.verbosity > 0) {
    std::fprintf(stderr, "gasnetrun_portals4:");
    for (const std::string& word : words) std::fprintf(stderr, " %s", word.c_str());
    std::fprintf(stderr, "\n");
  }
  if (options.only_print) return 0;
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr,
               "gasnetrun_portals4: %s cannot be started: %s; install it, or use another "
               "-spawner=NAME\n",
               arguments[0], std::strerror(errno));
  return 127;
}

}  // namespace
}  // namespace lintel::gasnet

using namespace lintel::gasnet;

int main(int argc, char** argv) {
  open_standard_descriptors();
  Options options;
  std::string error;
  if (!parse_options(argc, argv, options, error)) {
    if (error.empty()) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    std::fprintf(stderr, "gasnetrun_portals4: %s\n%s", error.c_str(), kUsage);
    return 2;
  }
  if (options.spawner == "fork") return run_supervised(run_by_fork, options);
  return run_by_launcher(
      options, options.spawner == "mpi" ? mpirun_command(options) : srun_command(options));
}
