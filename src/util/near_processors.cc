#include "util/near_processors.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "util/config_parse.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

std::vector<unsigned> own_processors() {
  cpu_set_t set;
  std::vector<unsigned> own;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return own;
  for (unsigned i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) own.push_back(i);
  return own;
}

}  // namespace

bool is_near(const std::string& device) {
  const Stream in = open_for_reading((device + "/local_cpulist").c_str());
  char line[1024] = "";
  if (in == nullptr || std::fgets(line, sizeof line, in.get()) == nullptr) return true;
  return shares_processor(trim(line), own_processors());
}

bool shares_processor(std::string_view text, const std::vector<unsigned>& own) {
  const std::optional<std::vector<unsigned>> near = parse_cpu_list(text);
  if (!near || near->empty() || own.empty()) return true;
  return std::any_of(near->begin(), near->end(), [&](unsigned processor) {
    return std::find(own.begin(), own.end(), processor) != own.end();
  });
}

}  // namespace lintel
