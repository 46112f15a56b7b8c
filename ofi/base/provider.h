// The record of the provider, and how its parts report errors. Set-up path.
#pragma once

#include <portals4.h>

#include <cerrno>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

namespace lintel::ofi {

inline constexpr char provider_name[] = "lintel";

// The record that the core of libfabric is given; FI_WARN and its siblings take it first.
[[nodiscard]] fi_provider* provider() noexcept;

// The negative error number of libfabric that says the same as a return code of Portals.
[[nodiscard]] int error_of(int portals_code) noexcept;
// The positive error number for the result of an operation.
[[nodiscard]] int error_of_failure(ptl_ni_fail_t failure) noexcept;

// Warns that a call of Portals failed, and returns error_of().
[[nodiscard]] int failed(fi_log_subsys subsystem, const char* call, int portals_code) noexcept;

}  // namespace lintel::ofi
