// PtlInit, PtlFini, PtlAbort (spec 3.5). Set-up path.
#include "core/library/library.h"
#include "portals4.h"
#include "util/without_cancellation.h"

extern "C" {

int PtlInit(void) noexcept {
  const lintel::WithoutCancellation scope;
  return lintel::initialize_library();
}

void PtlFini(void) noexcept {
  const lintel::WithoutCancellation scope;
  lintel::finalize_library();
}

void PtlAbort(void) noexcept { lintel::abort_waiting(); }

}  // extern "C"
