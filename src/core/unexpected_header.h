// Headers of messages that were delivered into the overflow list (spec 2.5, 3.12.2).
// Message path. Guarded by the lock of the portal table entry.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/list_entry.h"
#include "core/unexpected_list.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

struct UnexpectedHeader : UnexpectedNode {
  // Of whoever claimed it while its data were arriving.
  struct Claim {
    unsigned options = 0;
    bool from_search = false;
    void* user_ptr = nullptr;
    CountingEvent* counter = nullptr;
  } claim;
};
static_assert(sizeof(UnexpectedHeader) == 256);

}  // namespace lintel
