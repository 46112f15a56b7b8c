// The seed of the matching hashes.
// Set-up path.
#include "core/matching/keyed_hash.h"

#include <sys/random.h>
#include <time.h>

#include "util/without_cancellation.h"

namespace lintel {

uint64_t keyed_hash_seed() noexcept {
  static const uint64_t seed = [] {
    uint64_t random = 0;
    const WithoutCancellation scope;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) == sizeof random) return random;
    // Early in the boot of a machine there is no entropy yet; the clock has to do.
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000007U ^ static_cast<uint64_t>(now.tv_nsec);
  }();
  return seed;
}

}  // namespace lintel
