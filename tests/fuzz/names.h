// Operations on a portal as messages to people name them. Set-up path.
#pragma once

#include <string>

#include "fuzz/evidence.h"

namespace lintel::fuzz {

[[nodiscard]] std::string describe(const PortalHistory& history, const Evidence& evidence,
                                   const Element& element);

}  // namespace lintel::fuzz
