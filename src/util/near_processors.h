// Whether a device is near to the processors of this process, as sysfs shows it. Set-up path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lintel {

// `device`: a directory with a file local_cpulist. True if nothing is known.
[[nodiscard, gnu::visibility("default")]] bool is_near(const std::string& device);

// Whether one of the processors in `text` ("0-3,8") is in `own`; true if `text` is no such list.
[[nodiscard]] bool shares_processor(std::string_view text, const std::vector<unsigned>& own);

}  // namespace lintel
