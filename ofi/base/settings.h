// The variables FI_LINTEL_*. Set-up path.
#pragma once

#include <cstddef>

#include <rdma/providers/fi_prov.h>

namespace lintel::ofi {

struct Settings {
  // Bytes; longer messages that no receive was posted for stay at the sender until there is one.
  size_t eager_bytes = 64 << 10;
  // Bytes for unexpected messages of a channel; beyond these, senders wait.
  size_t reserve_bytes = 0;
  // Events that a domain can hold.
  size_t events = 16384;
};

// Defines the variables and reads them.
void read_settings(fi_provider& provider) noexcept;
[[nodiscard]] const Settings& settings() noexcept;

}  // namespace lintel::ofi
