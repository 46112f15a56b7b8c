// The modules of this build, for tests that load them. Set-up path.
#pragma once

#include <cstdlib>

namespace lintel::test {

// False: the module crypto was not built.
inline bool use_built_modules() {
#ifdef LINTEL_HAS_CRYPTO
  setenv("PTL_MODULE_PATH", LINTEL_MODULE_DIRECTORY, 1);
  return true;
#else
  return false;
#endif
}
inline constexpr const char* no_crypto_module = "the module crypto was not built (libssl-dev)";

}  // namespace lintel::test
