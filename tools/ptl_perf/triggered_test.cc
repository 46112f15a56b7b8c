// Test kind triggered: a chain of triggered increments, and a ping-pong of triggered puts that runs
// without a call from the application. Message path between the readings of the clock.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "ptl_perf/channel.h"
#include "ptl_perf/context.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"
#include "ptl_perf/verifier.h"

namespace lintel::perf {
namespace {

constexpr const char* fire_meaning =
    "time of one increment of the chain: from the call of PtlCTInc that sets it off until PtlCTWait "
    "returns for its end, divided by its length";
constexpr const char* arm_meaning = "time of one call of PtlTriggeredCTInc";
constexpr const char* ping_pong_meaning =
    "half round trip: from the call of PtlPut that sets off a ping-pong of triggered puts until "
    "PtlCTWait returns for its end, divided by the number of puts";

/** Counting events in a ring; each increment triggers the next one. */
class Chain {
 public:
  Chain(Endpoint& endpoint, std::uint64_t length) : length_(length / ring_size * ring_size) {
    for (Counter& counter : counters_) counter = allocate_counter(endpoint.interface);
  }

  std::uint64_t length() const { return length_; }

  void arm() {
    for (std::uint64_t link = 0; link < length_; ++link) {
      const std::uint64_t from = link % ring_size;
      const std::uint64_t to = (link + 1) % ring_size;
      require(PtlTriggeredCTInc(counters_[to].get(), one, counters_[from].get(),
                                reached_[from] + link / ring_size + 1),
              "PtlTriggeredCTInc");
    }
  }

  void fire() {
    const std::uint64_t end = reached_[0] + 1 + length_ / ring_size;
    require(PtlCTInc(counters_[0].get(), one), "PtlCTInc");
    ptl_ct_event_t value;
    const int code = PtlCTWait(counters_[0].get(), end, &value);
    if (code != PTL_OK || value.failure != 0) throw_count_failed("PtlCTWait", code, value);
    reached_[0] = end;
    for (std::uint64_t i = 1; i < ring_size; ++i) reached_[i] += length_ / ring_size;
  }

  /** Throws unless every counter stands where the chain leaves it. */
  void verify() const {
    for (std::uint64_t i = 0; i < ring_size; ++i) {
      ptl_ct_event_t value;
      require(PtlCTGet(counters_[i].get(), &value), "PtlCTGet");
      if (value.success != reached_[i] || value.failure != 0) {
        throw Failure(ExitCode::wrong_data, "a counter of the chain of triggered increments is " +
                                                std::to_string(value.success) + ", not " +
                                                std::to_string(reached_[i]));
      }
    }
  }

 private:
  static constexpr std::uint64_t ring_size = 16;
  static constexpr ptl_ct_event_t one{1, 0};

  std::uint64_t length_;
  std::array<Counter, ring_size> counters_{};
  std::array<std::uint64_t, ring_size> reached_{};
};

void increments(Context& context, const std::string& metric, std::uint64_t length) {
  Chain chain(context.endpoint(), length);
  const bool arming = metric == "arm";
  Point point = make_point(context, "triggered", metric, arming ? arm_meaning : fire_meaning);
  point.configuration = "within one process";
  point.parameter_name = "chain";
  point.parameter = chain.length();
  point.units_per_operation = static_cast<double>(chain.length());
  context.report(measure(context, point, [&](const Pass& pass) -> std::uint64_t {
    if (!context.session.initiator()) return 0;
    PartialClock clock(pass);
    for (std::uint64_t i = pass.operations; i != 0; --i) {
      const std::uint64_t start = ticks_now();
      chain.arm();
      const std::uint64_t armed = ticks_now();
      chain.fire();
      const std::uint64_t end = ticks_now();
      clock.add(1, arming ? armed - start : end - armed);
      if (context.settings.verify) chain.verify();
    }
    return 0;
  }));
}

void ping_pong(Context& context, std::uint64_t size_bytes) {
  Session& session = context.session;
  const bool initiator = session.initiator();
  Endpoint& endpoint = context.endpoint();
  const std::uint64_t hops = context.settings.chain_length;
  const Layout layout = layout_of(context.settings, 1);
  Region sent(size_bytes, 1, layout.guard_bytes, layout.huge_pages);
  Region received(size_bytes, 1, layout.guard_bytes, layout.huge_pages);
  Exposure arrivals(endpoint, Events::counting, 0);
  arrivals.expose(received, endpoint.addresses[session.peer_rank()]);
  Source source(endpoint, sent, Completion::nothing, 0, 0);
  const Destination to = peer_of(session, endpoint);
  fill_pattern(sent, 0, session.rank(), 0);

  Point point = make_point(context, "triggered", "ping-pong", ping_pong_meaning);
  point.configuration = std::string(endpoint.matching ? "matching" : "non-matching") +
                        (endpoint.logical ? ", logical" : ", physical") +
                        ", counting events, PtlCTWait, " + std::to_string(hops) +
                        " puts armed at each end";
  point.size_bytes = size_bytes;
  point.has_bandwidth = true;
  point.units_per_operation = static_cast<double>(2 * hops);
  std::uint64_t reached = 0;
  session.barrier();
  context.report(measure(context, point, [&](const Pass& pass) -> std::uint64_t {
    PartialClock clock(pass);
    for (std::uint64_t i = pass.operations; i != 0; --i) {
      if (context.settings.verify) spoil_pattern(received, 0, session.peer_rank(), 0);
      // The first put of the initiator is not a triggered one.
      for (std::uint64_t hop = 1; hop <= hops - (initiator ? 1 : 0); ++hop) {
        require(PtlTriggeredPut(source.descriptor(), 0, size_bytes, PTL_NO_ACK_REQ, to.process,
                                to.index, to.match_bits, 0, nullptr, 0, arrivals.counter(),
                                reached + hop),
                "PtlTriggeredPut");
      }
      reached += hops;
      session.barrier();
      const std::uint64_t start = ticks_now();
      if (initiator) {
        require(PtlPut(source.descriptor(), 0, size_bytes, PTL_NO_ACK_REQ, to.process, to.index,
                       to.match_bits, 0, nullptr, 0),
                "PtlPut");
      }
      ptl_ct_event_t value;
      const int code = PtlCTWait(arrivals.counter(), reached, &value);
      clock.add(1, ticks_now() - start);
      if (code != PTL_OK || value.failure != 0) throw_count_failed("PtlCTWait", code, value);
      if (context.settings.verify) {
        check_pattern(received, 0, session.peer_rank(), 0, "a triggered put");
      }
    }
    return 0;
  }));
  session.barrier();
}

}  // namespace

void run_triggered(Context& context) {
  const std::uint64_t length = context.settings.chain_length;
  const std::uint64_t limit = context.endpoint().limits.max_msg_size;
  std::vector<std::uint64_t> lengths{length};
  if (length < 100'000 && context.endpoint().limits.max_triggered_ops >= 100'000) {
    lengths.push_back(100'000);
  }
  const auto sizes = rate_sizes_of(context.settings, 1, limit);
  context.progress.expect(2 * lengths.size() + sizes.size());
  for (const std::uint64_t each : lengths) increments(context, "increment", each);
  for (const std::uint64_t each : lengths) increments(context, "arm", each);
  for (const std::uint64_t size : sizes) ping_pong(context, size);
}

}  // namespace lintel::perf
