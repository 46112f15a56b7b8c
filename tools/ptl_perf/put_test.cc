// Test kind put: half round trip, completion, message rate and bandwidth of PtlPut.
// Set-up path; the loops are in loops.h.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "ptl_perf/drivers.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

constexpr const char* latency_meaning =
    "half round trip: from the call of PtlPut until the put with which the peer answers has been "
    "reported here, divided by two";
constexpr const char* completion_meaning =
    "time of the whole operation: from the call of PtlPut until its acknowledgment has been "
    "reported";
constexpr const char* stream_meaning =
    "time per message of a stream: elapsed time, until the last message is acknowledged, divided "
    "by the number of messages";

constexpr const char* test_name = "put";

void latency(Context& context, std::uint64_t size_bytes) {
  Session& session = context.session;
  Endpoint& endpoint = context.endpoint();
  const Layout layout = layout_of(context.settings, 1);
  Region sent(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages,
              context.settings.initiator_memory);
  Region received(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages,
                  context.settings.target_memory);
  Exposure arrivals(endpoint, context.settings.events, 64);
  arrivals.expose(received, endpoint.addresses[session.peer_rank()]);
  Source source(endpoint, sent, arrivals);
  std::unique_ptr<Verifier> verifier;
  if (context.settings.verify) {
    verifier = std::make_unique<PutVerifier>(sent, received, session.rank(), session.peer_rank());
  }

  Point point = make_point(context, test_name, "latency", latency_meaning);
  point.size_bytes = size_bytes;
  point.units_per_operation = 2;
  point.has_bandwidth = true;
  const PutOperation put{source.descriptor(), size_bytes, PTL_NO_ACK_REQ,
                         peer_of(session, endpoint), SlotOffset(sent.stride_bytes(), sent.slots())};
  session.barrier();
  context.report(measure_ping_pong(context, point, arrivals, put, verifier.get()));
  session.barrier();
}

void completion(Context& context, std::uint64_t size_bytes) {
  Session& session = context.session;
  const Settings& settings = context.settings;
  Endpoint& endpoint = context.endpoint();
  const Layout layout = layout_of(settings, 1);
  Region region(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages,
                own_memory(context));
  Exposure target(endpoint, settings.events, 4096);
  target.expose(region, endpoint.addresses[session.peer_rank()]);
  Source source(endpoint, region, completion_of(settings.ack), PTL_MD_EVENT_CT_ACK, 64);
  EndMarker marker(endpoint, peer_of(session, endpoint));
  std::unique_ptr<Verifier> verifier;
  if (settings.verify) {
    verifier = std::make_unique<PutVerifier>(region, region, session.rank(), session.peer_rank());
  }

  Point point = make_point(context, test_name, "completion", completion_meaning);
  point.configuration += std::string(", ") + ack_name(settings.ack);
  point.size_bytes = size_bytes;
  point.has_bandwidth = true;
  const PutOperation put{source.descriptor(), size_bytes, ack_request(settings.ack),
                         peer_of(session, endpoint),
                         SlotOffset(region.stride_bytes(), region.slots())};
  session.barrier();
  context.report(measure_one_by_one(context, point, source, target, put, marker, verifier.get()));
  session.barrier();
}

void stream(Context& context, const std::string& metric, std::uint64_t size_bytes) {
  Session& session = context.session;
  const Settings& settings = context.settings;
  Endpoint& endpoint = context.endpoint();
  const Window window = choose_window(settings, size_bytes);
  const Layout layout = layout_of(settings, window.operations);
  Region region(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages,
                own_memory(context));  // sent here, received there
  Exposure target(endpoint, settings.events, 4 * window.operations + 64);
  target.expose(region, endpoint.addresses[session.peer_rank()]);
  Source source(endpoint, region, completion_of(settings.ack), PTL_MD_EVENT_CT_ACK,
                2 * window.operations + 64);
  std::unique_ptr<Verifier> verifier;
  if (settings.verify) {
    verifier = std::make_unique<PutVerifier>(region, region, session.rank(), session.peer_rank());
  }

  Point point = make_point(context, test_name, metric, stream_meaning);
  point.configuration += std::string(", ") + ack_name(settings.ack);
  set_window(point, window);
  point.size_bytes = size_bytes;
  point.has_bandwidth = true;
  const PutOperation put{source.descriptor(), size_bytes, ack_request(settings.ack),
                         peer_of(session, endpoint),
                         SlotOffset(region.stride_bytes(), region.slots())};
  if (settings.ack == Ack::none) {
    Region nothing(0, 1, 0);
    Exposure credits(endpoint, Events::counting, 0, credit_index);
    credits.expose(nothing, endpoint.addresses[session.peer_rank()]);
    const PutOperation credit{source.descriptor(), 0, PTL_NO_ACK_REQ,
                              peer_of(session, endpoint, credit_index), SlotOffset(64, 1)};
    session.barrier();
    context.report(measure_credited_stream(context, point, window, credits, target, put, credit,
                                           verifier.get()));
    session.barrier();
    return;
  }
  EndMarker marker(endpoint, peer_of(session, endpoint));
  session.barrier();
  context.report(
      measure_stream(context, point, window, source, target, put, marker, verifier.get()));
  session.barrier();
}

void measure_size(Context& context, const std::string& metric, std::uint64_t size_bytes) {
  if (metric == "latency") {
    latency(context, size_bytes);
  } else if (metric == "completion") {
    completion(context, size_bytes);
  } else {
    stream(context, metric, size_bytes);
  }
}

}  // namespace

void run_put(Context& context) {
  const std::uint64_t limit = context.endpoint().limits.max_msg_size;
  measure_metrics(context, sizes_of(context.settings, 1, limit),
                  rate_sizes_of(context.settings, 1, limit), measure_size, true);
}

}  // namespace lintel::perf
