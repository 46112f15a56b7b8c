// What DPDK writes to its log becomes lines of this library's log. Set-up path.
#pragma once

#include "util/log.h"

namespace lintel {

// Takes over DPDK's log. Its errors appear at the level info (the caller of the function says what
// failed), the rest at debug.
void redirect_eal_log() noexcept;

// While an object lives, DPDK's complaints are kept but not shown: something is being tried that
// may well fail.
class QuietEalLog {
 public:
  QuietEalLog() noexcept;
  QuietEalLog(const QuietEalLog&) = delete;
  ~QuietEalLog();
};

}  // namespace lintel
