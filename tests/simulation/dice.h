// The random numbers of a simulation: the same seed gives the same numbers everywhere.
#pragma once

#include <cstdint>

namespace lintel::simulation {

class Dice {
 public:
  explicit Dice(uint64_t seed) noexcept : state_(seed) {}

  // SplitMix64.
  [[nodiscard]] uint64_t roll() noexcept {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // Excludes `limit`, which must be at least 1.
  [[nodiscard]] uint64_t below(uint64_t limit) noexcept { return roll() % limit; }
  // Includes both limits.
  [[nodiscard]] uint64_t between(uint64_t least, uint64_t most) noexcept {
    return least + below(most - least + 1);
  }
  [[nodiscard]] bool happens(double probability) noexcept {
    return static_cast<double>(roll() >> 11) * 0x1p-53 < probability;
  }
  template <typename T, unsigned long n>
  [[nodiscard]] const T& one_of(const T (&choices)[n]) noexcept {
    return choices[below(n)];
  }

 private:
  uint64_t state_;
};

}  // namespace lintel::simulation
