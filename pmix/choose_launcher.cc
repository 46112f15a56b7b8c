// Recognizes launchers by their variables in the environment, and loads the client for them.
// Set-up path.
#include "choose_launcher.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "hand_environment.h"
#include "hand_launcher.h"
#include "lone_launcher.h"
#include "util/module.h"

#ifdef LINTEL_CONTAINS_PMIX
extern "C" const lintel::Module lintel_module_pmix;
#endif

namespace lintel {

namespace {

const char* variable(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

bool any_variable_begins_with(const char* prefix) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

bool started_by_pmix() {
  return variable("PMIX_NAMESPACE") != nullptr || variable("PMIX_RANK") != nullptr ||
         any_variable_begins_with("PMIX_SERVER_URI");
}

bool is_above_one(const char* name) {
  const char* const text = variable(name);
  unsigned long number = 0;
  return text != nullptr &&
         std::from_chars(text, text + std::strlen(text), number).ec == std::errc{} && number > 1;
}

// One of several processes that a launcher started without PMIx: they cannot find each other.
std::string why_incomplete() {
  if (is_above_one("SLURM_STEP_NUM_TASKS"))
    return "srun started several tasks, but without PMIx: use srun --mpi=pmix (`srun --mpi=list` "
           "shows whether Slurm has the plug-in), or srun -n 1 for processes that are alone";
  if (is_above_one("OMPI_COMM_WORLD_SIZE") || is_above_one("PMI_SIZE"))
    return "a launcher started several processes, but offers no PMIx: use one that does (mpirun of "
           "Open MPI, prterun, srun --mpi=pmix)";
  return "";
}

const void* pmix_offer(std::string& why) {
#ifdef LINTEL_CONTAINS_PMIX  // defined in a static library
  why.clear();
  return lintel_module_pmix.offer;
#else
  return load_module("pmix", why);
#endif
}

Launcher* load_pmix(std::string& why) {
  const auto* const module = static_cast<const LauncherModule*>(pmix_offer(why));
  if (module != nullptr) return module->launcher();
  why = "the environment says that a PMIx launcher started this process, but " + why +
        "; the module needs libpmix, both where Lintel is built and where it runs";
  return nullptr;
}

}  // namespace

Launcher* choose_launcher(std::string& why) {
  // A list of all processes by hand overrides a launcher.
  HandEnvironment environment;
  why = read_hand_environment(environment);
  if (!why.empty()) return nullptr;
  if (environment.rank) {
    if (environment.nids.empty() || environment.pids.empty()) {
      why = std::string("PTL_MY_RID is set, but ") +
            (environment.nids.empty() ? "PTL_NIDMAP" : "PTL_PIDMAP") +
            " is not: a job by hand needs both";
      return nullptr;
    }
    return new HandLauncher(environment);
  }
  if (started_by_pmix()) return load_pmix(why);
  why = why_incomplete();
  return why.empty() ? new LoneLauncher : nullptr;
}

}  // namespace lintel
