// Headers of messages that were delivered into the overflow list (spec 2.5, 3.12.2).
// Message path. Guarded by the lock of the portal table entry.
#pragma once

#include "core/matching/unexpected_list.h"

namespace lintel {

struct UnexpectedHeader : UnexpectedNode {};
static_assert(sizeof(UnexpectedHeader) == sizeof(UnexpectedNode));

}  // namespace lintel
