/* running_threads_test.cc: which threads the end of the process waits for. Prints nothing on
 * success.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "job/thread.h"

using namespace lintel::gasnet;

namespace {

void check(uint32_t expected, const char* when) {
  const uint32_t running = running_threads();
  if (running == expected) return;
  std::fprintf(stderr, "%u threads run and not %u: %s\n", running, expected, when);
  std::exit(1);
}

}  // namespace

int main() {
  this_thread();
  check(1, "this one has called the library");
  std::thread([] { retire_this_thread(); }).join();
  check(1, "a thread that never called the library was none of them");
  std::thread([] {
    this_thread();
    check(2, "the second has called it");
    retire_this_thread();
    check(1, "it makes no further call");
    retire_this_thread();
    check(1, "that counts once");
  }).join();
  check(1, "nor when it has ended");
  std::thread([] { this_thread(); }).join();
  check(1, "the third has ended");
  retire_this_thread();
  check(0, "this one makes no further call");
  return 0;
}
