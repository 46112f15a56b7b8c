// Shares of the network interfaces, or RDMA ports, in what a process sent, where it has several.
// Set-up path. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lintel::perf {

struct RailShare {
  std::string interface;
  uint64_t bytes = 0;  // that the interface has sent, those of other programs included
  double share = 0;    // of the bytes of all
};

/** Counts from its construction on. */
class RailShares {
 public:
  /** `devices`: names with '+' between them. Where the kernel counts nothing for them, the library
   * does, of `interface`: only the bytes of this process. */
  RailShares(const std::string& devices, ptl_handle_ni_t interface);

  /** Empty unless there are several interfaces. */
  [[nodiscard]] std::vector<RailShare> now() const;

 private:
  // Nothing: the kernel does not know it.
  [[nodiscard]] std::optional<uint64_t> sent_by(const std::string& name, size_t place) const;

  ptl_handle_ni_t interface_;
  bool library_counts_ = false;
  std::vector<RailShare> before_;
};

}  // namespace lintel::perf
