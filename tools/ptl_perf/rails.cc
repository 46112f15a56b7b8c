// Counters of network interfaces and RDMA ports, as the kernel shows them. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/rails.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

namespace lintel::perf {
namespace {

// Bytes that an interface of this network namespace has sent; nothing: there is none of that name.
std::optional<uint64_t> sent_bytes(const std::string& interface) {
  constexpr int fields_before = 8;  // about what was received
  std::ifstream table("/proc/net/dev");
  for (std::string line; std::getline(table, line);) {
    std::replace(line.begin(), line.end(), ':', ' ');
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != interface) continue;
    for (int i = 0; i < fields_before; ++i) words >> word;
    uint64_t bytes = 0;
    if (words >> bytes) return bytes;
  }
  return std::nullopt;
}

// The same of a port of an RDMA device ("mlx5_0:1"), or of the interface of a software device.
std::optional<uint64_t> sent_bytes_of_port(const std::string& port) {
  constexpr uint64_t unit_bytes = 4;
  const std::string device = port.substr(0, port.find(':'));
  const std::string directory = "/sys/class/infiniband/" + device;
  std::ifstream count(directory + "/ports/" +
                      port.substr(std::min(port.size(), device.size() + 1)) +
                      "/counters/port_xmit_data");
  uint64_t units = 0;
  if (count >> units) return units * unit_bytes;
  std::ifstream parent(directory + "/parent");
  std::string interface;
  return parent >> interface ? sent_bytes(interface) : std::nullopt;
}

std::optional<uint64_t> sent_by(const std::string& name) {
  return name.find(':') == std::string::npos ? sent_bytes(name) : sent_bytes_of_port(name);
}

}  // namespace

RailShares::RailShares(const std::string& devices) {
  std::istringstream names(devices);
  for (std::string name; std::getline(names, name, '+');)
    if (const auto bytes = sent_by(name)) before_.push_back({name, *bytes});
}

std::vector<RailShare> RailShares::now() const {
  if (before_.size() < 2) return {};
  std::vector<RailShare> shares = before_;
  uint64_t sum = 0;
  for (RailShare& rail : shares)
    sum += rail.bytes = sent_by(rail.interface).value_or(rail.bytes) - rail.bytes;
  for (RailShare& rail : shares)
    rail.share = sum == 0 ? 0 : static_cast<double>(rail.bytes) / static_cast<double>(sum);
  return shares;
}

}  // namespace lintel::perf
