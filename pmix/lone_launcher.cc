// The services of a job for a process alone. Set-up path.
#include "lone_launcher.h"

#include <unistd.h>

namespace lintel {

std::string LoneLauncher::start(JobPlace& place) {
  place = JobPlace();
  place.name = "alone." + std::to_string(getpid());
  return "";
}

std::string LoneLauncher::put(const std::string& key, std::span<const std::byte> value) {
  stored_[key].assign(value.begin(), value.end());
  return "";
}

std::string LoneLauncher::get(uint32_t, const std::string& key, std::vector<std::byte>& value) {
  const auto found = stored_.find(key);
  if (found == stored_.end()) return "this process, the only one of the job, has not stored " + key;
  value = found->second;
  return "";
}

std::string LoneLauncher::nodes(std::vector<uint64_t>& node_of_rank) {
  node_of_rank.assign(node_of_rank.size(), 0);
  return "";
}

}  // namespace lintel
