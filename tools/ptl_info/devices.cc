// Network interfaces and RDMA ports, as sysfs has them. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ptl_info/facts.h"
#include "util/near_processors.h"

namespace lintel::info {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::uint64_t number(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t value = 0;
  return in >> value && value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored))
    found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string address_of(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  std::string text;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET ||
        interface != entry->ifa_name)
      continue;
    char bytes[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, bytes,
              sizeof bytes);
    text += (text.empty() ? "" : " ") + std::string(bytes);
  }
  freeifaddrs(list);
  return text;
}

DeviceFacts network_interface(const fs::path& path) {
  DeviceFacts device;
  device.kind = "network";
  device.name = path.filename();
  device.link = first_line(path / "operstate");
  device.is_up = device.link == "up" || device.name == "lo";
  device.address = address_of(device.name);
  device.mtu_bytes = number(path / "mtu");
  device.speed_mbit = number(path / "speed");
  return device;
}

// The GIDs that are set, without link-local ones where there are others.
std::string gids_of(const fs::path& port) {
  std::string all;
  for (const fs::path& file : entries_of(port / "gids")) {
    const std::string gid = first_line(file);
    if (gid.empty() || gid == "0000:0000:0000:0000:0000:0000:0000:0000") continue;
    all += (all.empty() ? "" : " ") + gid;
  }
  return all;
}

DeviceFacts rdma_port(const std::string& device_name, const fs::path& port) {
  DeviceFacts device;
  device.kind = "rdma";
  device.name = device_name + ":" + port.filename().string();
  const std::string state = first_line(port / "state");  // "4: ACTIVE"
  device.link = state.substr(std::min(state.find(' ') + 1, state.size()));
  device.is_up = device.link == "ACTIVE";
  device.layer = first_line(port / "link_layer");
  device.address = gids_of(port);
  const std::string rate = first_line(port / "rate");  // "100 Gb/sec (4X EDR)"
  device.speed_mbit = static_cast<std::uint64_t>(std::atof(rate.c_str()) * 1000);
  // The interface of an Ethernet port; that of InfiniBand says nothing of the MTU of the port.
  const std::string interface = first_line(port / "gid_attrs/ndevs/0");
  if (!interface.empty()) device.mtu_bytes = number(fs::path("/sys/class/net") / interface / "mtu");
  return device;
}

}  // namespace

std::string port_distances(const std::string& pci_address) {
  static constexpr const char* words[] = {"behind the same bridge", "at the same root",
                                          "of the same NUMA node", "far"};
  const std::string accelerator = pci_directory(pci_address);
  std::string text;
  if (pci_address.empty() || !fs::exists(accelerator)) return text;
  for (const char* ports : {"/sys/class/infiniband", "/sys/class/net"})
    for (const fs::path& port : entries_of(ports))
      if (fs::exists(port / "device"))
        text += (text.empty() ? "" : ", ") + port.filename().string() + " " +
                words[static_cast<unsigned>(pci_distance(port / "device", accelerator))];
  return text;
}

std::vector<DeviceFacts> gather_devices() {
  std::vector<DeviceFacts> devices;
  for (const fs::path& path : entries_of("/sys/class/net"))
    if (fs::exists(path / "mtu")) devices.push_back(network_interface(path));
  for (const fs::path& path : entries_of("/sys/class/infiniband"))
    for (const fs::path& port : entries_of(path / "ports"))
      devices.push_back(rdma_port(path.filename(), port));
  return devices;
}

}  // namespace lintel::info
