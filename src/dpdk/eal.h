// DPDK's environment (EAL), started once per process, when the first port is opened, and never
// again: DPDK can neither be started twice nor be used in a forked child. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "util/log.h"

namespace lintel {

// Takes over DPDK's log, whose lines become lines of this library's. Its errors appear at the level
// info (the caller of the function says what failed), the rest at debug.
void redirect_eal_log() noexcept;

// Suppresses error messages of DPDK while it exists; they are kept. Used around attempts that may
// fail.
class QuietEalLog {
 public:
  QuietEalLog() noexcept;
  QuietEalLog(const QuietEalLog&) = delete;
  ~QuietEalLog();
};

struct EalSettings {
  std::vector<std::string> ports;  // those that will be opened: DPDK uses no other PCI device
  std::string arguments;           // PTL_DPDK_EAL
};

// Starts it in a thread of its own, so that the affinity and the signal mask of the caller stay as
// they are; its threads run where the caller may run, and take no signals. True if it runs already.
// False: `reason`; it is tried again only if nothing was started. Thread-safe.
[[nodiscard]] bool start_eal(const EalSettings& settings, std::string& reason);

// Describes the memory of DPDK in words: huge pages or not, and why.
[[nodiscard]] std::string describe_eal_memory();

// Returns the last error message of DPDK, for own error messages; empty: there was none.
[[nodiscard]] std::string last_eal_complaint();

// DPDK's way of naming devices: "0000:3b:02.1", "auxiliary:mlx5_core.sf.1"; everything else is a
// virtual device, which is made when it is opened.
[[nodiscard]] bool is_bus_device(const std::string& port) noexcept;

// Asked in every poll: without the call that a module otherwise makes to find its thread's
// variables.
extern thread_local constinit bool eal_knows_thread [[gnu::tls_model("initial-exec")]];
void register_new_eal_thread() noexcept;
// The calling thread gets its own store of buffers, which makes getting and returning them cheaper;
// until it ends. Does nothing if there are too many threads. Message path after the first call.
inline void register_eal_thread() noexcept {
  if (!eal_knows_thread) [[unlikely]]
    register_new_eal_thread();
}

}  // namespace lintel
