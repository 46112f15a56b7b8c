// A stream of puts of all sizes; every byte is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "support/interface.h"
#include "support/rank.h"

namespace lintel::test {

struct RandomStream {
  uint64_t messages = 1000;
  // In bytes. A quarter of the messages are up to this long; half are shorter than 200.
  std::size_t largest = 100'000;
  ptl_pt_index_t pt_index = 4;
  // Called in rank 0 before each message is sent.
  std::function<void(uint64_t message)> before = [](uint64_t) {};
  // Called in rank 1 after each message has been checked.
  std::function<void()> arrived = [] {};
};

// Rank 0 sends to rank 1, with several messages under way at once; other ranks must not call it.
// Returns when all have been checked and acknowledged.
void exchange(const RandomStream& stream, Rank& rank, const Interface& interface);

}  // namespace lintel::test
