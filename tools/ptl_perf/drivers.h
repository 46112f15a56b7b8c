// Puts an operation, what it is waited for with, and a timed loop together. Set-up path; the loops
// are in loops.h.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "ptl_perf/channel.h"
#include "ptl_perf/context.h"
#include "ptl_perf/loops.h"
#include "ptl_perf/verifier.h"

namespace lintel::perf {

/** Before the first pass of a ping-pong, which needs no acknowledgments: one operation of each
 *  side, of no length and with an acknowledgment. A peer that cannot be reached is then a failure
 *  among the arrivals, and not a wait without end. */
template <class Operation, class Waiter>
void meet(Operation operation, Waiter& arrivals, bool initiator) {
  operation.length_bytes = 0;
  operation.ack = PTL_ACK_REQ;
  if (!initiator) arrivals.next();
  operation.issue();
  arrivals.acknowledged();
  if (initiator) arrivals.next();
}

/** Both ends of a pair in turn: `operation` here is awaited by `arrivals` there. */
template <class Operation>
std::optional<Result> measure_ping_pong(Context& context, const Point& point, Exposure& arrivals,
                                        Operation operation, Verifier* verifier) {
  const bool initiator = context.session.initiator();
  return arrivals.with_waiter(context.settings.wait, [&](auto waiter) {
    bool met = false;
    const auto with_check = [&](auto check) {
      return measure(context, point, [&](const Pass& pass) -> std::uint64_t {
        if (!met) meet(operation, waiter, initiator);
        met = true;
        if (initiator) {
          one_by_one(operation, waiter, check, pass);
        } else {
          answer(operation, waiter, check, pass);
        }
        return 0;
      });
    };
    if (verifier) return with_check(ArrivalCheck{*verifier});
    return with_check(NoCheck{});
  });
}

/** The target's part where only the initiator issues operations: takes them in, and looks at
 *  memory in between with --verify. */
template <class Waiter>
Body absorb_operations(Context& context, Waiter& waiter, Verifier* verifier,
                       std::uint64_t round_operations) {
  return [&context, &waiter, verifier, round_operations,
          number = std::uint64_t{0}](const Pass& pass) mutable {
    if (!verifier) return waiter.absorb(pass.operations);
    std::uint64_t losses = 0;
    const std::uint64_t step = round_operations ? round_operations : pass.operations;
    for (std::uint64_t left = pass.operations; left > 0; left -= step) {
      losses += waiter.absorb(step);
      verifier->inspect_arrivals(number, step);
      number += step;
      context.session.barrier();  // the initiator may go on
    }
    return losses;
  };
}

/** One operation after the other, each until its reply or acknowledgment. */
template <class Operation>
std::optional<Result> measure_one_by_one(Context& context, const Point& point, Source& source,
                                         Exposure& target, Operation operation, EndMarker& marker,
                                         Verifier* verifier) {
  if (!context.session.initiator()) {
    return target.with_waiter(context.settings.wait, [&](auto waiter) {
      return measure(context, point, absorb_operations(context, waiter, verifier, 0));
    });
  }
  return source.with_waiter(context.settings.wait, [&](auto waiter) {
    marker.restart();
    const auto with_check = [&](auto check) {
      return measure(context, point, [&](const Pass& pass) -> std::uint64_t {
        one_by_one(operation, waiter, check, pass);
        marker.send();
        if (verifier) context.session.barrier();
        return 0;
      });
    };
    if (verifier) return with_check(ReplyCheck{*verifier});
    return with_check(NoCheck{});
  });
}

/** A stream with gaps: fills a window, awaits all of it, lets both ends check, goes on. Only the
 *  first two are timed. */
template <class Operation, class Waiter>
void stream_in_rounds(Context& context, Operation& operation, Waiter& waiter, const Window& window,
                      Verifier& verifier, EndMarker* marker, std::uint64_t& number,
                      const Pass& pass) {
  PartialClock clock(pass);
  for (std::uint64_t left = pass.operations; left > 0; left -= window.operations) {
    for (std::uint64_t i = 0; i < window.operations; ++i) verifier.prepare(number + i);
    const std::uint64_t start = ticks_now();
    for (std::uint64_t i = window.operations; i != 0; --i) operation.issue();
    waiter.advance(window.operations / window.chunk * window.completions_per_chunk);
    clock.add(window.operations, ticks_now() - start);
    for (std::uint64_t i = 0; i < window.operations; ++i) verifier.inspect_reply(number + i);
    number += window.operations;
    if (marker) marker->send();
    context.session.barrier();
  }
}

/** A stream in which acknowledgments or replies bound what is in flight. */
template <class Operation>
std::optional<Result> measure_stream(Context& context, Point point, const Window& window,
                                     Source& source, Exposure& target, Operation operation,
                                     EndMarker& marker, Verifier* verifier) {
  point.granularity = verifier ? window.operations : window.chunk;
  if (!context.session.initiator()) {
    return target.with_waiter(context.settings.wait, [&](auto waiter) {
      return measure(context, point,
                     absorb_operations(context, waiter, verifier, window.operations));
    });
  }
  return source.with_waiter(context.settings.wait, [&](auto waiter) {
    marker.restart();
    std::uint64_t number = 0;
    return measure(context, point, [&](const Pass& pass) -> std::uint64_t {
      if (verifier) {
        stream_in_rounds(context, operation, waiter, window, *verifier, &marker, number, pass);
      } else {
        stream(operation, waiter, window, pass);
        marker.send();
      }
      return 0;
    });
  });
}

/** A stream of operations without acknowledgment: the target returns a credit, a put of no length,
 *  for each chunk that it has taken in. `credits` is where the initiator counts them. */
template <class Operation>
std::optional<Result> measure_credited_stream(Context& context, Point point, Window window,
                                              Exposure& credits, Exposure& target,
                                              Operation operation, PutOperation credit,
                                              Verifier* verifier) {
  window.completions_per_chunk = 1;
  point.granularity = verifier ? window.operations : window.chunk;
  std::uint64_t number = 0;
  if (!context.session.initiator()) {
    return target.with_waiter(context.settings.wait, [&](auto waiter) {
      return measure(context, point, [&](const Pass& pass) -> std::uint64_t {
        std::uint64_t in_round = 0;
        for (std::uint64_t left = pass.operations; left > 0; left -= window.chunk) {
          waiter.advance(window.chunk);
          credit.issue();
          in_round += window.chunk;
          if (verifier && in_round == window.operations) {
            verifier->inspect_arrivals(number, in_round);
            number += in_round;
            in_round = 0;
            context.session.barrier();
          }
        }
        return 0;
      });
    });
  }
  return credits.with_waiter(context.settings.wait, [&](auto waiter) {
    return measure(context, point, [&](const Pass& pass) -> std::uint64_t {
      if (verifier) {
        stream_in_rounds(context, operation, waiter, window, *verifier, nullptr, number, pass);
      } else {
        stream(operation, waiter, window, pass);
      }
      return 0;
    });
  });
}

}  // namespace lintel::perf
