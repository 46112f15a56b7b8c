// Names of operations on a portal, for messages to users. Set-up path.
#pragma once

#include <string>

#include "fuzz/evidence.h"

namespace lintel::fuzz {

[[nodiscard]] std::string describe(const PortalHistory& history, const Evidence& evidence,
                                   const Element& element);

}  // namespace lintel::fuzz
