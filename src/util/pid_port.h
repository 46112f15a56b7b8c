// The port of UDP and of TCP by which others find a process.
#pragma once

#include <cstdint>

namespace lintel {

// The pid + 1024, as far as that goes; the last 1023 pids have the ports 1 to 1023, which need
// privileges.
[[nodiscard]] constexpr uint16_t port_of_pid(uint32_t pid) noexcept {
  constexpr uint32_t unprivileged_port = 1024;
  constexpr uint32_t unprivileged_pids = 65536 - unprivileged_port;
  return static_cast<uint16_t>(pid < unprivileged_pids ? pid + unprivileged_port
                                                       : pid - unprivileged_pids + 1);
}

}  // namespace lintel
