// util/random.h for simulations: the numbers are derived from the seed, and do not come from the
// kernel.
#pragma once

#include <cstdint>

namespace lintel::simulation {

void reseed_random(uint64_t seed) noexcept;

}  // namespace lintel::simulation
