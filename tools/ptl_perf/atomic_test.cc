// Test kind atomic: half round trip, completion and rate of PtlAtomic. Set-up path; the loops are
// in loops.h.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "ptl_perf/arithmetic.h"
#include "ptl_perf/drivers.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

constexpr const char* latency_meaning =
    "half round trip: from the call of PtlAtomic until the atomic with which the peer answers has "
    "been reported here, divided by two";
constexpr const char* completion_meaning =
    "time of the whole operation: from the call of PtlAtomic until its acknowledgment has been "
    "reported";
constexpr const char* stream_meaning =
    "time per operation of a stream: elapsed time, until the last operation is acknowledged, "
    "divided by the number of operations";

void measure_size(Context& context, const std::string& metric, std::uint64_t size_bytes) {
  const bool ping_pong = metric == "latency";
  const bool single = ping_pong || metric == "completion";
  Session& session = context.session;
  const Settings& settings = context.settings;
  const ptl_op_t operation = operation_of(settings.operation);
  const ptl_datatype_t datatype = datatype_of(settings.datatype);
  Endpoint& endpoint = context.endpoint();
  const Window window = choose_window(settings, size_bytes);
  const Layout layout = layout_of(settings, single ? 1 : window.operations);
  Region sent(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  Region changed(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  const std::uint64_t capacity = 4 * window.operations + 64;
  Exposure target(endpoint, settings.events, capacity);
  target.expose(changed, endpoint.addresses[session.peer_rank()]);
  const ptl_ack_req_t ack = ping_pong ? PTL_NO_ACK_REQ : ack_request(settings.ack);
  Source source = ping_pong ? Source(endpoint, sent, target)
                            : Source(endpoint, sent, completion_of(settings.ack),
                                     PTL_MD_EVENT_CT_ACK, capacity);
  EndMarker marker(endpoint, peer_of(session, endpoint));
  std::unique_ptr<Verifier> verifier;
  if (settings.verify) {
    verifier = make_atomic_verifier({operation, datatype, sent, changed, nullptr, nullptr});
  }

  Point point =
      make_point(context, "atomic", metric,
                 ping_pong ? latency_meaning : (single ? completion_meaning : stream_meaning));
  point.configuration += ", " + settings.operation + " of " + settings.datatype;
  if (!ping_pong) point.configuration += std::string(", ") + ack_name(settings.ack);
  point.size_bytes = size_bytes;
  point.has_bandwidth = true;
  const AtomicOperation atomic{source.descriptor(),
                               size_bytes,
                               ack,
                               peer_of(session, endpoint),
                               SlotOffset(sent.stride_bytes(), sent.slots()),
                               operation,
                               datatype};
  session.barrier();
  if (ping_pong) {
    point.units_per_operation = 2;
    context.report(measure_ping_pong(context, point, target, atomic, verifier.get()));
  } else if (single) {
    context.report(
        measure_one_by_one(context, point, source, target, atomic, marker, verifier.get()));
  } else {
    set_window(point, window);
    context.report(
        measure_stream(context, point, window, source, target, atomic, marker, verifier.get()));
  }
  session.barrier();
}

}  // namespace

void run_atomic(Context& context) {
  const std::uint64_t unit = datatype_bytes(datatype_of(context.settings.datatype));
  const std::uint64_t limit = context.endpoint().limits.max_atomic_size;
  measure_metrics(context, sizes_of(context.settings, unit, limit),
                  rate_sizes_of(context.settings, unit, limit), measure_size, true);
}

}  // namespace lintel::perf
