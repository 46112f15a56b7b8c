// The heuristics that the configuration leaves in use. Set-up path.
#include "core/progress/wait_heuristics.h"

#include <string>

#include "util/config.h"

namespace lintel {

WaitHeuristics configured_wait_heuristics() {
  WaitHeuristics heuristics;
  for (const std::string& name : config_list(ConfigKey::wait_without)) {
    const std::optional<WaitHeuristics> fewer = heuristics.without(name);
    if (!fewer) {
      std::string allowed;
      for (const std::string_view known : wait_heuristic_names)
        allowed += (allowed.empty() ? "" : ", ") + std::string(known);
      config_refuse(ConfigKey::wait_without, allowed);
      return {};
    }
    heuristics = *fewer;
  }
  return heuristics;
}

}  // namespace lintel
