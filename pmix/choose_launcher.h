// Finds out what started this process. Set-up path.
#pragma once

#include <string>

#include "launcher.h"

namespace lintel {

// The launcher of this process, to be started; or nullptr and why it cannot be used. Lives as long
// as the process.
[[nodiscard]] Launcher* choose_launcher(std::string& why);

}  // namespace lintel
