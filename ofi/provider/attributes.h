// The attributes that fi_getinfo returns for hints that can be met. Set-up path.
#pragma once

#include <cstdint>

#include <rdma/fabric.h>

namespace lintel::ofi {

// `info` is fresh from fi_allocinfo. Returns 0 or -FI_ENOMEM.
[[nodiscard]] int fill_attributes(uint32_t api_version, const fi_info* hints,
                                  fi_info& info) noexcept;

}  // namespace lintel::ofi
