// How every component benchmark is repeated: several short runs, of which the median counts.
#pragma once

#include <benchmark/benchmark.h>

namespace lintel::components {

inline void repeated(benchmark::internal::Benchmark* benchmark) {
  benchmark->MinTime(0.02)->Repetitions(9)->ReportAggregatesOnly(true);
}

}  // namespace lintel::components
