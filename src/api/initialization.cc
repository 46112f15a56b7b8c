// PtlInit, PtlFini, PtlAbort (spec 3.5). Set-up path.
#include "core/library/library.h"
#include "portals4.h"

extern "C" {

int PtlInit(void) noexcept { return lintel::initialize_library(); }

void PtlFini(void) noexcept { lintel::finalize_library(); }

void PtlAbort(void) noexcept { lintel::abort_waiting(); }

}  // extern "C"
