// The barrier of the endpoints. Set-up path.
#include "fuzz/shared.h"

#include <unistd.h>

namespace lintel::fuzz {

void Shared::barrier(int endpoints) {
  const uint32_t passed = barriers.load();
  if (arrived.fetch_add(1) + 1 == static_cast<uint32_t>(endpoints)) {
    arrived.store(0);
    barriers.store(passed + 1);
    return;
  }
  while (barriers.load() == passed) {
    if (failed.load() != 0) throw OtherFailed{};
    usleep(20);
  }
}

}  // namespace lintel::fuzz
