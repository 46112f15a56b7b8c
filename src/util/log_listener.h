// Gives the lines of the log to a tool such as ptl_info. Set-up path.
#pragma once

#include "util/log.h"

#pragma GCC visibility push(default)
namespace lintel {

// Called with the text of each line that is to be written, by the thread that writes it. False: the
// listener shows the line, and it is not written to standard error.
using LogListener = bool (*)(LogLevel level, const char* text) noexcept;
void set_log_listener(LogListener listener) noexcept;

}  // namespace lintel
#pragma GCC visibility pop
