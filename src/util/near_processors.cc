#include "util/near_processors.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <iterator>
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

// -1: none, or not known.
int numa_node_of(const std::filesystem::path& device) {
  const Stream in = open_for_reading((device / "numa_node").c_str());
  int node = -1;
  return in != nullptr && std::fscanf(in.get(), "%d", &node) == 1 ? node : -1;
}

}  // namespace

bool is_near(const std::string& device) {
  const Stream in = open_for_reading((device + "/local_cpulist").c_str());
  char line[1024] = "";
  if (in == nullptr || std::fgets(line, sizeof line, in.get()) == nullptr) return true;
  return shares_processor(trim(line), own_processors());
}

PciDistance pci_distance(const std::string& one, const std::string& other) {
  std::error_code error[2];
  const std::filesystem::path paths[] = {std::filesystem::canonical(one, error[0]),
                                         std::filesystem::canonical(other, error[1])};
  if (error[0] || error[1]) return PciDistance::far;
  // "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0": a root, a bridge, a device.
  const auto end =
      std::mismatch(paths[0].begin(), paths[0].end(), paths[1].begin(), paths[1].end()).first;
  const std::string common = *std::prev(end);
  if (common.starts_with("pci")) return PciDistance::root;
  if (common.find(':') != std::string::npos) return PciDistance::bridge;
  const int node = numa_node_of(paths[0]);
  return node >= 0 && node == numa_node_of(paths[1]) ? PciDistance::numa_node : PciDistance::far;
}

std::string pci_directory(std::string address) {
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return "/sys/bus/pci/devices/" + address;
}

bool shares_processor(std::string_view text, const std::vector<unsigned>& own) {
  const std::optional<std::vector<unsigned>> near = parse_cpu_list(text);
  if (!near || near->empty() || own.empty()) return true;
  return std::any_of(near->begin(), near->end(), [&](unsigned processor) {
    return std::find(own.begin(), own.end(), processor) != own.end();
  });
}

}  // namespace lintel
