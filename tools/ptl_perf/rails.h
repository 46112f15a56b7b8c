// Shares of the network interfaces, or RDMA ports, in what a process sent, where it has several.
// Set-up path. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
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
  /** `devices`: names with '+' between them; those of which the kernel counts nothing are left out.
   */
  explicit RailShares(const std::string& devices);

  /** Empty unless there are several interfaces. */
  [[nodiscard]] std::vector<RailShare> now() const;

 private:
  std::vector<RailShare> before_;
};

}  // namespace lintel::perf
