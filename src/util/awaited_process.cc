#include "util/awaited_process.h"

namespace lintel {

std::atomic<uint64_t> awaited_process{0};

}  // namespace lintel
