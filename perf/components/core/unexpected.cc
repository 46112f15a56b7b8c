// Cost of an append that looks for its message among unexpected headers.
#include <cstdint>
#include <cstdlib>

#include "core/matching/unexpected_list.h"
#include "repeated.h"

namespace lintel::components {
namespace {

constexpr uint64_t source = source_of(ProcessId{1, 1});

MatchCriteria asking_for(uint64_t match_bits, uint64_t ignore_bits) {
  return {match_bits, ignore_bits, source, source_mask_exact};
}

// `count` headers, each with match bits of its own.
class Arrived {
 public:
  explicit Arrived(uint64_t count) {
    if (!pool_.open(1u << 20)) std::abort();
    list.open(pool_);
    for (uint64_t i = 0; i < count; ++i) {
      UnexpectedHeader& header = *pool_.allocate(of_peer_);
      header.match_bits = i << 16;
      header.source = source;
      list.add(header);
    }
  }
  ~Arrived() {
    while (!list.empty()) list.remove(*list.head());
  }

 private:
  std::atomic<uint32_t> of_peer_{0};
  UnexpectedPool pool_;

 public:
  UnexpectedList list;
};

// An append claims one header, and another like it arrives: the list keeps its length.
void claim_one(benchmark::State& state) {
  const auto count = static_cast<uint64_t>(state.range(0));
  Arrived arrived(count);
  uint64_t index = 0;
  for (auto _ : state) {
    index = (index + 7919) % count;
    UnexpectedHeader* found = arrived.list.find_first(asking_for(index << 16, 0));
    if (found == nullptr) std::abort();
    arrived.list.remove(*found);
    arrived.list.add(*found);
  }
}

// As above with the low bits wild: the oldest of the list is claimed.
void claim_with_wildcard(benchmark::State& state) {
  Arrived arrived(static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    UnexpectedHeader* found = arrived.list.find_first(asking_for(0, ~uint64_t{0}));
    if (found == nullptr) std::abort();
    arrived.list.remove(*found);
    arrived.list.add(*found);
  }
}

// An append whose message has not arrived yet.
void claim_nothing(benchmark::State& state) {
  Arrived arrived(static_cast<uint64_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(arrived.list.find_first(asking_for(~uint64_t{0}, 0)));
}

void by_length(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("headers")->Arg(10)->Arg(100)->Arg(1000)->Arg(10'000)->Arg(100'000);
  repeated(benchmark);
}

BENCHMARK(claim_one)->Apply(by_length);
BENCHMARK(claim_with_wildcard)->Apply(by_length);
BENCHMARK(claim_nothing)->Apply(by_length);

}  // namespace
}  // namespace lintel::components
