// Test kind get: time, rate and bandwidth of PtlGet. Set-up path; the loops are in loops.h.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "ptl_perf/drivers.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

constexpr const char* latency_meaning =
    "time of the whole operation: from the call of PtlGet until its reply has been reported";
constexpr const char* stream_meaning =
    "time per operation of a stream: elapsed time, until the last reply, divided by the number of "
    "gets";

void measure_size(Context& context, const std::string& metric, std::uint64_t size_bytes) {
  const bool single = metric == "latency";
  Session& session = context.session;
  const Settings& settings = context.settings;
  Endpoint& endpoint = context.endpoint();
  const Window window = choose_window(settings, size_bytes);
  const Layout layout = layout_of(settings, single ? 1 : window.operations);
  // Read there, written here.
  Region region(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages,
                own_memory(context));
  const std::uint64_t capacity = 4 * window.operations + 64;
  Exposure target(endpoint, settings.events, capacity);
  target.expose(region, endpoint.addresses[session.peer_rank()]);
  Source sink(endpoint, region,
              settings.events == Events::full ? Completion::full : Completion::counting,
              PTL_MD_EVENT_CT_REPLY, capacity);
  EndMarker marker(endpoint, peer_of(session, endpoint));
  std::unique_ptr<Verifier> verifier;
  if (settings.verify) {
    verifier = std::make_unique<GetVerifier>(region, region, session.rank(), session.peer_rank());
  }

  Point point = make_point(context, "get", metric, single ? latency_meaning : stream_meaning);
  point.size_bytes = size_bytes;
  point.has_bandwidth = true;
  const GetOperation get{sink.descriptor(), size_bytes, peer_of(session, endpoint),
                         SlotOffset(region.stride_bytes(), region.slots())};
  session.barrier();
  if (single) {
    context.report(measure_one_by_one(context, point, sink, target, get, marker, verifier.get()));
  } else {
    set_window(point, window);
    context.report(
        measure_stream(context, point, window, sink, target, get, marker, verifier.get()));
  }
  session.barrier();
}

}  // namespace

void run_get(Context& context) {
  const std::uint64_t limit = context.endpoint().limits.max_msg_size;
  measure_metrics(context, sizes_of(context.settings, 1, limit),
                  rate_sizes_of(context.settings, 1, limit), measure_size);
}

}  // namespace lintel::perf
