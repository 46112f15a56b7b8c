// Test kinds fetch-atomic and swap: time and rate of PtlFetchAtomic and PtlSwap. Set-up path; the
// loops are in loops.h.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <string>

#include "ptl_perf/arithmetic.h"
#include "ptl_perf/drivers.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

const std::string stream_meaning =
    "time per operation of a stream: elapsed time, until the last former value is here, divided by "
    "the number of operations";

std::string latency_meaning(const char* call) {
  return std::string("time of the whole operation: from the call of ") + call +
         " until the former value has been reported to be here";
}

template <bool swaps>
void measure_size(Context& context, const std::string& metric, std::uint64_t size_bytes) {
  const bool single = metric == "latency";
  Session& session = context.session;
  const Settings& settings = context.settings;
  const std::string& operation_name = swaps ? settings.swap_operation : settings.operation;
  const ptl_op_t operation = operation_of(operation_name);
  const ptl_datatype_t datatype = datatype_of(settings.datatype);
  Endpoint& endpoint = context.endpoint();
  const Window window = choose_window(settings, size_bytes);
  const Layout layout = layout_of(settings, single ? 1 : window.operations);
  Region sent(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  Region fetched(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  Region changed(size_bytes, layout.slots, layout.guard_bytes, layout.huge_pages);
  const std::uint64_t capacity = 4 * window.operations + 64;
  Exposure target(endpoint, settings.events, capacity);
  target.expose(changed, endpoint.addresses[session.peer_rank()]);
  Source source(endpoint, sent, Completion::nothing, 0, 0);
  Source sink(endpoint, fetched,
              settings.events == Events::full ? Completion::full : Completion::counting,
              PTL_MD_EVENT_CT_REPLY, capacity);
  EndMarker marker(endpoint, peer_of(session, endpoint));
  Operand operand;
  std::unique_ptr<Verifier> verifier;
  if (settings.verify) {
    verifier = make_atomic_verifier({operation, datatype, sent, changed,
                                     session.initiator() ? &fetched : nullptr,
                                     swaps ? &operand : nullptr});
  }

  Point point =
      make_point(context, swaps ? "swap" : "fetch-atomic", metric,
                 single ? latency_meaning(swaps ? "PtlSwap" : "PtlFetchAtomic") : stream_meaning);
  point.configuration += ", " + operation_name + " of " + settings.datatype;
  point.size_bytes = size_bytes;
  point.has_bandwidth = true;
  const ptl_handle_md_t into = sink.descriptor();
  const ptl_handle_md_t from = source.descriptor();
  const Destination peer = peer_of(session, endpoint);
  const SlotOffset offset(sent.stride_bytes(), sent.slots());
  const auto fetch = [&] {
    if constexpr (swaps)
      return SwapOperation{into, from, size_bytes, peer, offset, &operand, operation, datatype};
    else
      return FetchAtomicOperation{into, from, size_bytes, peer, offset, operation, datatype};
  }();
  session.barrier();
  if (single) {
    context.report(measure_one_by_one(context, point, sink, target, fetch, marker, verifier.get()));
  } else {
    set_window(point, window);
    context.report(
        measure_stream(context, point, window, sink, target, fetch, marker, verifier.get()));
  }
  session.barrier();
}

}  // namespace

void run_fetch_atomic(Context& context) {
  const std::uint64_t unit = datatype_bytes(datatype_of(context.settings.datatype));
  const std::uint64_t limit = context.endpoint().limits.max_fetch_atomic_size;
  measure_metrics(context, sizes_of(context.settings, unit, limit),
                  rate_sizes_of(context.settings, unit, limit), measure_size<false>);
}

void run_swap(Context& context) {
  const Settings& settings = context.settings;
  const std::uint64_t unit = datatype_bytes(datatype_of(settings.datatype));
  std::uint64_t limit = context.endpoint().limits.max_fetch_atomic_size;
  if (single_item(operation_of(settings.swap_operation))) limit = std::min(limit, unit);
  measure_metrics(context, sizes_of(settings, unit, limit), rate_sizes_of(settings, unit, limit),
                  measure_size<true>);
}

}  // namespace lintel::perf
