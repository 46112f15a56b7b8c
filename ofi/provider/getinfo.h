// fi_getinfo: what the provider offers to a program that asks for `hints`. Set-up path. It opens
// nothing.
#pragma once

#include <cstdint>

#include <rdma/fabric.h>

namespace lintel::ofi {

inline constexpr uint32_t provider_version = FI_VERSION(0, 1);

// As fi_getinfo (man fi_getinfo); -FI_ENODATA if the hints cannot be met.
int get_info(uint32_t api_version, const char* node, const char* service, uint64_t flags,
             const fi_info* hints, fi_info** result) noexcept;

}  // namespace lintel::ofi
