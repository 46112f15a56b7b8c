// What the reliability layer does for a short message, both ways.
#include <benchmark/benchmark.h>

#include "../core/repeated.h"
#include "copying_pair.h"

namespace lintel::components {
namespace {

void reliable_message(benchmark::State& state) {
  CopyingPair pair({});
  for (auto _ : state)
    if (!pair.exchange()) state.SkipWithError("the message was not sent");
}
BENCHMARK(reliable_message)->Apply(repeated);

}  // namespace
}  // namespace lintel::components
