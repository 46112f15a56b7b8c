// What the library lends to the module: functions that must exist once per process. Set-up path.
#pragma once

#include "verbs/verbs_module.h"

namespace lintel {

// Before anything else of the module runs; the same host each time. Thread-safe.
void set_verbs_host(const VerbsHost& host) noexcept;

}  // namespace lintel
