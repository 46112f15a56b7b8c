// A chain of triggered increments: each increment moves the counter that triggers the next one.
//
// The chain goes round a ring of counters with rising thresholds, so that its length is not bound
// by the number of counters an interface may have.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "portals_process.h"
#include "probes.h"

namespace probe {

namespace {

constexpr std::size_t counters_in_ring = 64;

// Nanoseconds for one increment of a chain of `length`.
double one_increment_ns(ptl_handle_ni_t interface, std::size_t length) {
  std::vector<ptl_handle_ct_t> ring(counters_in_ring);
  for (auto& counter : ring) check(PtlCTAlloc(interface, &counter), "PtlCTAlloc");
  const ptl_ct_event_t one{1, 0};
  for (std::size_t link = 0; link < length; ++link) {
    check(PtlTriggeredCTInc(ring[(link + 1) % counters_in_ring], one, ring[link % counters_in_ring],
                            link / counters_in_ring + 1),
          "PtlTriggeredCTInc");
  }
  const double start = now_s();
  check(PtlCTInc(ring[0], one), "PtlCTInc");
  ptl_ct_event_t reached;
  check(PtlCTWait(ring[length % counters_in_ring], length / counters_in_ring, &reached),
        "PtlCTWait");
  const double elapsed = now_s() - start;
  for (auto counter : ring) check(PtlCTFree(counter), "PtlCTFree");
  return elapsed / static_cast<double>(length) * 1e9;
}

double median_of(int runs, ptl_handle_ni_t interface, std::size_t length) {
  std::vector<double> values;
  for (int run = 0; run < runs; ++run) values.push_back(one_increment_ns(interface, length));
  std::nth_element(values.begin(), values.begin() + runs / 2, values.end());
  return values[static_cast<std::size_t>(runs / 2)];
}

}  // namespace

void measure_chain(const Options& options) {
  pin_to(options.cpus[0]);
  const PortalsProcess process;
  std::printf("{\"increment_ns_by_length\": {");
  const char* separator = "";
  for (const std::size_t length : {1000u, 10000u, 100000u}) {
    std::printf("%s\"%zu\": %.2f", separator, length, median_of(9, process.interface(), length));
    separator = ", ";
  }
  std::printf("}}\n");
}

}  // namespace probe
