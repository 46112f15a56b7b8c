// Compiled with each distance of cache lines (CMakeLists.txt): what depends on it keeps its
// alignment, and layouts of shared memory do not depend on it.
#include <atomic>

#include "core/events/wait_gate.h"
#include "core/operations/send_queues.h"
#include "core/progress/poller.h"
#include "lane/lane_layout.h"
#include "reliable/connection_timers.h"
#include "shm/joint_copy.h"
#include "shm/segment_layout.h"
#include "util/arena.h"
#include "util/cache_line.h"

namespace lintel {

static_assert(alignof(WaitGate) == cache_line_bytes);
static_assert(alignof(SendQueues) == cache_line_bytes);
static_assert(alignof(Poller) == cache_line_bytes);
static_assert(alignof(ConnectionTimers) == cache_line_bytes);

struct Pooled {
  std::atomic<uint32_t> next_free;
};
static_assert(alignof(Arena<Pooled>) == cache_line_bytes);

}  // namespace lintel
