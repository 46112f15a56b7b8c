// Dealing out devices. Set-up path.
#include "support/rdma.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "support/deadlines.h"

namespace lintel::test {

namespace {

namespace fs = std::filesystem;

bool has_active_port(const fs::path& device) {
  std::error_code ignored;
  for (const fs::directory_entry& port : fs::directory_iterator(device / "ports", ignored)) {
    std::string state;
    std::getline(std::ifstream(port.path() / "state"), state);
    if (state.find("ACTIVE") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> rdma_devices() {
  std::vector<std::string> devices;
  std::error_code ignored;
  for (const fs::directory_entry& device : fs::directory_iterator("/sys/class/infiniband", ignored))
    if (has_active_port(device.path())) devices.push_back(device.path().filename());
  std::sort(devices.begin(), devices.end());
  return devices;
}

std::string why_no_rdma() {
#ifdef LINTEL_HAS_VERBS
  if (std::getenv("LINTEL_TEST_NEEDS_VERBS") != nullptr) return "";  // whatever is missing is a failure
  if (rdma_devices().empty()) return "this machine has no RDMA device with an active port; tests/vm makes one";
  if (access("/dev/infiniband", R_OK | X_OK) != 0) return "/dev/infiniband is not accessible";
  return "";
#else
  return "built without libibverbs";
#endif
}

void take_rdma_device(int index) {
  const char* transport = std::getenv("PTL_TRANSPORT");
  if (transport == nullptr || std::string_view(transport) != "verbs") return;
  const std::vector<std::string> devices = rdma_devices();
  constexpr int keep = 0;
  if (!devices.empty())
    setenv("PTL_VERBS_DEVICE", devices[static_cast<std::size_t>(index) % devices.size()].c_str(), keep);
}

void join_rdma(int index, Rdma rdma) {
  setenv("PTL_TRANSPORT", "verbs", 1);
  setenv("PTL_NETWORK_TIMEOUT_MS", std::to_string(6000 * machine_slowdown()).c_str(), 1);
  take_rdma_device(index);
  if (rdma == Rdma::datagrams) setenv("PTL_VERBS_MAX_RC", "0", 1);
}

}  // namespace lintel::test
