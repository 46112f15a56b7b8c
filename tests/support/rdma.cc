// Assigning devices to ranks. Set-up path.
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
    if (has_active_port(device.path()) && device.path().filename().string().rfind("rail", 0) != 0)
      devices.push_back(device.path().filename());
  std::sort(devices.begin(), devices.end());
  return devices;
}

std::string why_no_rdma() {
#ifdef LINTEL_HAS_VERBS
  if (std::getenv("LINTEL_TEST_NEEDS_RDMA") != nullptr) return "";
  if (rdma_devices().empty())
    return "this machine has no RDMA device with an active port; tests/vm/run_on_device brings one";
  if (access("/dev/infiniband", R_OK | X_OK) != 0) return "/dev/infiniband is not accessible";
  return "";
#else
  return "built without libibverbs";
#endif
}

std::string rdma_timeout_ms() { return std::to_string(6000 * std::max(machine_slowdown() / 2, 1)); }

void join_rdma(int index, Rdma rdma) {
  setenv("PTL_TRANSPORT", "verbs", 1);
  take_rdma_device(index);
  if (rdma == Rdma::datagrams) setenv("PTL_VERBS_MAX_RC", "0", 1);
}

void take_rdma_device(int index) {
  const char* transport = std::getenv("PTL_TRANSPORT");
  if (transport == nullptr || std::string_view(transport) != "verbs") return;
  const std::vector<std::string> devices = rdma_devices();
  if (!devices.empty())
    setenv("PTL_VERBS_DEVICE", devices[static_cast<std::size_t>(index) % devices.size()].c_str(),
           1);
}

}  // namespace lintel::test
