// util/random.h for simulations: what the kernel would give follows from the seed.
#pragma once

#include <cstdint>

namespace lintel::simulation {

void reseed_random(uint64_t seed) noexcept;

}  // namespace lintel::simulation
