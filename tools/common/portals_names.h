// Names of Portals constants, for messages. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <string>

namespace lintel::tools {

/** "PTL_NO_SPACE" for 11; "return code 99" for a value that the specification does not define. */
std::string return_code_name(int code);

/** "PTL_NI_UNDELIVERABLE" for 1, and so on (spec 3.13.3). */
std::string fail_type_name(ptl_ni_fail_t type);

/** "PTL_EVENT_PUT" for 2, and so on (spec 3.13.1). */
std::string event_kind_name(ptl_event_kind_t kind);

}  // namespace lintel::tools
