#include "base/assert.h"

#ifdef LINTEL_ASSERTIONS

#include <cstdio>
#include <cstdlib>

namespace lintel::ofi {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "lintel: libfabric provider: %s:%d: must hold: %s\n", file, line, condition);
  std::abort();
}

}  // namespace lintel::ofi

#endif
