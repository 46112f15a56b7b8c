// What the configuration says of the reliability layer. Set-up path.
#pragma once

#include <cstdint>
#include <string>

#include "reliable/faulty_link.h"
#include "reliable/reliable_transport.h"

namespace lintel {

[[nodiscard]] ReliableSettings configured_reliability(uint32_t uid, const std::string& job_key);
[[nodiscard]] Faults configured_faults();  // PTL_FAULTS

}  // namespace lintel
