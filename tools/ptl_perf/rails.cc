// Counters of network interfaces and RDMA ports, as the kernel shows them, and of others, which the
// library has. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/rails.h"

#include <portals4_lintel.h>

#include <algorithm>
#include <fstream>
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

// The kernel knows none of the names of DPDK ports, such as "0000:3b:00.0" or "net_af_packet0".
std::optional<uint64_t> known_to_kernel(const std::string& name) {
  return name.find(':') == std::string::npos ? sent_bytes(name) : sent_bytes_of_port(name);
}

}  // namespace

RailShares::RailShares(const std::string& devices, ptl_handle_ni_t interface)
    : interface_(interface) {
  std::istringstream words(devices);
  std::vector<std::string> names;
  for (std::string name; std::getline(words, name, '+');) names.push_back(name);
  library_counts_ = std::none_of(names.begin(), names.end(), known_to_kernel);
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto bytes = sent_by(names[i], i)) before_.push_back({names[i], *bytes});
}

std::optional<uint64_t> RailShares::sent_by(const std::string& name, size_t place) const {
  if (!library_counts_) return known_to_kernel(name);
  ptl_sr_value_t bytes = 0;
  const auto index = static_cast<ptl_sr_index_t>(PTL_SR_LINTEL_RAIL_BYTES + place);
  if (PtlNIStatus(interface_, index, &bytes) != PTL_OK) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::vector<RailShare> RailShares::now() const {
  if (before_.size() < 2) return {};
  std::vector<RailShare> shares = before_;
  uint64_t sum = 0;
  for (size_t i = 0; i < shares.size(); ++i)
    sum += shares[i].bytes =
        sent_by(shares[i].interface, i).value_or(shares[i].bytes) - shares[i].bytes;
  for (RailShare& rail : shares)
    rail.share = sum == 0 ? 0 : static_cast<double>(rail.bytes) / static_cast<double>(sum);
  return shares;
}

}  // namespace lintel::perf
