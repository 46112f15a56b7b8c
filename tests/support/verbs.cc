// Finding the RDMA devices of a test. Set-up path.
#include "support/verbs.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "support/deadlines.h"

namespace lintel::test {

namespace {

bool has_active_port(const std::filesystem::path& device) {
  std::error_code error;
  for (const auto& port : std::filesystem::directory_iterator(device / "ports", error)) {
    std::string state;
    std::getline(std::ifstream(port.path() / "state"), state);
    if (state.ends_with("ACTIVE")) return true;
  }
  return false;
}

}  // namespace

std::string why_no_verbs() {
#ifdef LINTEL_HAS_VERBS
  if (std::getenv("LINTEL_TEST_NEEDS_VERBS") != nullptr) return "";
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", error))
    if (has_active_port(device.path())) return "";
  return "no RDMA device with an active port (tests/vm/run_on_device brings one)";
#else
  return "built without libibverbs";
#endif
}

std::vector<std::pair<std::string, std::string>> verbs_environment() {
  return {{"PTL_TRANSPORT", "verbs"},
          {"PTL_NETWORK_TIMEOUT_MS", std::to_string(3000 * machine_slowdown())}};
}

std::vector<std::string> verbs_devices() {
  const char* names = std::getenv("LINTEL_TEST_VERBS_DEVICES");
  std::istringstream words(names != nullptr ? names : "");
  std::vector<std::string> devices;
  for (std::string word; words >> word;) devices.push_back(word);
  return devices;
}

void take_verbs_device(int index) {
  const std::vector<std::string> devices = verbs_devices();
  const char* transport = std::getenv("PTL_TRANSPORT");
  if (devices.empty() || transport == nullptr || std::string_view(transport) != "verbs") return;
  constexpr int keep = 0;
  setenv("PTL_VERBS_DEVICE", devices[static_cast<std::size_t>(index) % devices.size()].c_str(),
         keep);
}

}  // namespace lintel::test
