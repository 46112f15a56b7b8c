#include "simulation/repeatable_random.h"

#include <cstring>

#include "simulation/dice.h"
#include "util/random.h"

namespace lintel {

namespace {
simulation::Dice kernel(0);
}  // namespace

bool fill_random(void* data, size_t bytes) noexcept {
  auto* to = static_cast<unsigned char*>(data);
  for (; bytes != 0; --bytes) *to++ = static_cast<unsigned char>(kernel.roll());
  return true;
}

uint64_t random_u64() noexcept { return kernel.roll(); }

namespace simulation {
void reseed_random(uint64_t seed) noexcept { kernel = Dice(seed); }
}  // namespace simulation

}  // namespace lintel
