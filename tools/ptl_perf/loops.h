// The timed loops. Message path: between two readings of the clock there are Portals calls, the
// test of their return codes, and the counting of the loop.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "ptl_perf/context.h"
#include "ptl_perf/ticks.h"

namespace lintel::perf {

/** Check that does nothing, in place of verification. */
struct NoCheck {
  void before() {}
  void after() {}
};

/** One operation at a time, each awaited: a ping, or an operation with a reply. */
template <class Operation, class Waiter, class Check>
void one_by_one(Operation& operation, Waiter& completions, Check& check, const Pass& pass) {
  std::uint64_t* stamp = pass.stamps;
  *stamp = ticks_now();
  for (std::uint64_t left = pass.operations; left != 0; left -= pass.batch) {
    for (std::uint64_t i = pass.batch; i != 0; --i) {
      check.before();
      operation.issue();
      completions.next();
      check.after();
    }
    *++stamp = ticks_now();
  }
}

/** The other end of a ping-pong: the same with waiting and answering exchanged. */
template <class Operation, class Waiter, class Check>
void answer(Operation& operation, Waiter& arrivals, Check& check, const Pass& pass) {
  for (std::uint64_t i = pass.operations; i != 0; --i) {
    arrivals.next();
    check.after();
    check.before();
    operation.issue();
  }
}

/** Number of operations in flight. */
struct Window {
  std::uint64_t operations;             // window = chunk * (lag + 1)
  std::uint64_t chunk;                  // operations issued between two waits
  std::uint64_t lag;                    // chunks that stay in flight while the next is issued
  std::uint64_t completions_per_chunk;  // acknowledgments or replies: chunk; credits: 1
};

/** A stream bounded by the window. The last batch includes waiting for all that is in flight. */
template <class Operation, class Waiter>
void stream(Operation& operation, Waiter& completions, const Window& window, const Pass& pass) {
  std::uint64_t* stamp = pass.stamps;
  std::uint64_t ahead = 0;
  *stamp = ticks_now();
  for (std::uint64_t left = pass.operations; left != 0; left -= pass.batch) {
    for (std::uint64_t chunks = pass.batch / window.chunk; chunks != 0; --chunks) {
      for (std::uint64_t i = window.chunk; i != 0; --i) operation.issue();
      if (ahead < window.lag) {
        ++ahead;
      } else {
        completions.advance(window.completions_per_chunk);
      }
    }
    if (left == pass.batch) completions.advance(ahead * window.completions_per_chunk);
    *++stamp = ticks_now();
  }
}

}  // namespace lintel::perf
