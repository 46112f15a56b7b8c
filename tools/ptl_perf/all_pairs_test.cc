// Test kind all-pairs: half round trip between every two processes. Set-up path; the loop is in
// loops.h. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "ptl_perf/drivers.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

constexpr const char* meaning =
    "half round trip, as of put: from the call of PtlPut until the put with which the peer answers has "
    "been reported, divided by two. In each round all processes work, each with another peer";

// The circle method: rank 0 stays, the others move on by one place in each round, and after one
// round less than there are processes each process has met each other one.
std::vector<unsigned> order_of_round(unsigned processes, unsigned round) {
  const auto at = [&](unsigned place) {
    return place == 0 ? 0 : 1 + (place - 1 + round) % (processes - 1);
  };
  std::vector<unsigned> order;
  for (unsigned place = 0; place < processes / 2; ++place) {
    order.push_back(at(place));
    order.push_back(at(processes - 1 - place));
  }
  return order;
}

std::optional<Result> measure_round(Context& context, std::uint64_t size_bytes) {
  Session& session = context.session;
  Endpoint& endpoint = context.endpoint();
  const Layout layout = layout_of(context.settings, 1);
  Region sent(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  Region received(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  Exposure arrivals(endpoint, context.settings.events, 64);
  arrivals.expose(received, endpoint.addresses[session.peer_rank()]);
  Source source(endpoint, sent, arrivals);
  std::unique_ptr<Verifier> verifier;
  if (context.settings.verify) {
    verifier = std::make_unique<PutVerifier>(sent, received, session.rank(), session.peer_rank());
  }
  Point point = make_point(context, "all-pairs", "latency", meaning);
  point.size_bytes = size_bytes;
  point.units_per_operation = 2;
  point.by_initiator = true;
  const PutOperation put{source.descriptor(), size_bytes, PTL_NO_ACK_REQ,
                         peer_of(session, endpoint), SlotOffset(sent.stride_bytes(), sent.slots())};
  session.barrier();
  std::optional<Result> result = measure_ping_pong(context, point, arrivals, put, verifier.get());
  session.barrier();
  return result;
}

// One line for each pair of the round.
void report_pairs(Context& context, const Result& round) {
  const Session& session = context.session;
  for (const auto& [initiator, times] : round.by_initiator) {
    const unsigned peer = session.peer_rank(initiator);
    Result line;
    line.point = round.point;
    line.batch = round.batch;
    line.operations = round.operations / round.by_initiator.size();
    line.times_ns = times;
    const auto whole = [&](const char* name, const char* title, unsigned value) {
      line.extras.push_back({name, title, static_cast<double>(value), 0});
    };
    whole("rank", "rank", std::min(initiator, peer));
    whole("peer_rank", "and rank", std::max(initiator, peer));
    whole("node", "node", session.nodes()[std::min(initiator, peer)]);
    whole("peer_node", "and node", session.nodes()[std::max(initiator, peer)]);
    context.report(line);
  }
}

}  // namespace

void run_all_pairs(Context& context) {
  Session& session = context.session;
  const unsigned rounds = session.process_count() - 1;
  std::vector<std::uint64_t> sizes{8};
  if (!context.settings.sizes_bytes.empty())
    sizes = sizes_of(context.settings, 1, context.endpoint().limits.max_msg_size);
  const std::vector<unsigned> before = session.order();
  context.progress.expect(sizes.size() * rounds);
  for (const std::uint64_t size : sizes) {
    for (unsigned round = 0; round < rounds; ++round) {
      session.set_order(order_of_round(session.process_count(), round));
      if (const std::optional<Result> result = measure_round(context, size)) {
        report_pairs(context, *result);
      }
    }
  }
  session.set_order(before);
}

}  // namespace lintel::perf
