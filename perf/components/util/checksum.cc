// The check of frames, by each method that this processor can use: what it takes of a frame of an
// Ethernet port, and of one of UDP over the loopback.
#include <vector>

#include <benchmark/benchmark.h>

#include "../core/repeated.h"
#include "util/crc32c.h"

namespace lintel::components {
namespace {

// Arguments: the place of the method among crc32c_methods(), bytes.
void frame_check(benchmark::State& state) {
  const Crc32cMethod& method = crc32c_methods()[static_cast<size_t>(state.range(0))];
  const std::vector<unsigned char> frame(static_cast<size_t>(state.range(1)), 0x5a);
  uint32_t check = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(check = method.check(check, frame.data(), frame.size()));
  state.SetLabel(method.name);
}

void methods_and_sizes(benchmark::internal::Benchmark* benchmark) {
  for (size_t i = 0; i < crc32c_methods().size(); ++i)
    for (const int64_t bytes : {104, 8900, 32448})
      if (crc32c_methods()[i].usable()) benchmark->Args({static_cast<int64_t>(i), bytes});
  repeated(benchmark);
}
BENCHMARK(frame_check)->Apply(methods_and_sizes);

}  // namespace
}  // namespace lintel::components
