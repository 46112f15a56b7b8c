// Action of a failed assertion. Fault path.
#include "util/assert.h"

#ifdef LINTEL_ASSERTIONS

#include <cstdlib>

#include "util/log.h"

namespace lintel {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  log_message(LogLevel::error,
              "%s:%d: the assertion '%s' failed. This is a fault of the library: please report it "
              "with the lines above",
              file, line, condition);
  std::abort();
}

}  // namespace lintel

#endif
