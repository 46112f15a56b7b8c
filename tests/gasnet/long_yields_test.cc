// When waiting threads stop yielding. Prints nothing on success.
#include "network/long_yields.h"

#include <cstdio>
#include <cstdlib>

namespace {

void check(bool condition, const char* text) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", text);
  std::exit(1);
}

}  // namespace

int main() {
  constexpr uint64_t us = 1000, ms = 1000 * us;
  lintel::gasnet::LongYields yields;
  check(!yields.are_expected(ms), "at first a thread yields");
  yields.note(ms, ms + 20 * us);
  check(!yields.are_expected(ms + 20 * us), "the others only wait");
  yields.note(ms, ms + 300 * us);
  check(!yields.are_expected(ms + 300 * us), "several others send and receive");
  yields.note(2 * ms, 5 * ms);
  check(yields.are_expected(5 * ms) && yields.are_expected(100 * ms), "another thread computes");
  check(!yields.are_expected(102 * ms), "it may have ended");
  return 0;
}
