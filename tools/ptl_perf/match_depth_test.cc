// Test kind match-depth: half round trip of a put with entries that do not match posted before the
// one that does. Set-up path; the loop is in loops.h.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "ptl_perf/drivers.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

constexpr const char* meaning =
    "half round trip of a put, as in the test put; at both ends so many entries that do not match "
    "(depth) were posted before the one that does";

// Entries in one or in four shapes of wildcards, none of which takes the messages of the test.
void post_others(Exposure& exposure, ptl_process_t peer, Shapes shapes, std::uint64_t depth) {
  // Differs from the match bits of the test in the upper half, which no shape ignores.
  constexpr ptl_match_bits_t other = 0x0bad'0000'0000'0000;
  for (std::uint64_t i = 0; i < depth; ++i) {
    ptl_match_bits_t ignored = 0;
    if (shapes == Shapes::mixed) {
      constexpr ptl_match_bits_t shape[] = {0, 0xff, 0xffff, 0xffff'ffff};
      ignored = shape[i % 4];
    }
    exposure.append_empty(peer, other + (i << 16), ignored);
  }
}

void measure_depth(Context& context, std::uint64_t size_bytes, std::uint64_t depth) {
  Session& session = context.session;
  const Settings& settings = context.settings;
  Endpoint& endpoint = context.endpoint();
  const Layout layout = layout_of(settings, 1);
  Region sent(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  Region received(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  const ptl_process_t peer = endpoint.addresses[session.peer_rank()];
  Exposure arrivals(endpoint, settings.events, 64);
  post_others(arrivals, peer, settings.shapes, depth);
  arrivals.expose(received, peer);
  Source source(endpoint, sent, arrivals);
  std::unique_ptr<Verifier> verifier;
  if (settings.verify) {
    verifier = std::make_unique<PutVerifier>(sent, received, session.rank(), session.peer_rank());
  }

  Point point = make_point(context, "match-depth", "latency", meaning);
  point.configuration += settings.shapes == Shapes::exact ? ", entries without wildcards"
                                                          : ", entries of four wildcard shapes";
  point.size_bytes = size_bytes;
  point.parameter_name = "depth";
  point.parameter = depth;
  point.units_per_operation = 2;
  const PutOperation put{source.descriptor(), size_bytes, PTL_NO_ACK_REQ,
                         peer_of(session, endpoint), SlotOffset(sent.stride_bytes(), sent.slots())};
  session.barrier();
  context.report(measure_ping_pong(context, point, arrivals, put, verifier.get()));
  session.barrier();
}

}  // namespace

void run_match_depth(Context& context) {
  const Settings& settings = context.settings;
  const auto sizes = rate_sizes_of(settings, 1, context.endpoint().limits.max_msg_size);
  std::vector<std::uint64_t> depths = settings.depths;
  if (depths.empty()) depths = {0, 1, 10, 100, 1000, 10'000, 100'000};
  context.progress.expect(sizes.size() * depths.size());
  for (const std::uint64_t size : sizes) {
    for (const std::uint64_t depth : depths) measure_depth(context, size, depth);
  }
}

}  // namespace lintel::perf
