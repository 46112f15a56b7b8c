// Cost of matching by depth of the list and by mix of wildcards, and of appending to it.
//
// Depth is the number of entries posted before the one that matches. The cost must not grow with
// it; what may grow is the number of cache misses once the list exceeds the caches.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/matching/match_list.h"
#include "repeated.h"

namespace lintel::components {
namespace {

constexpr uint64_t own_source = source_of(ProcessId{1, 1});
constexpr uint64_t wanted_bits = 0x7777'0000'0000;

enum Mix : int64_t {
  exact,  // no wildcards
  mpi,    // exact, any tag, any source, both: what MPI posts
};

// The shape of entry `index`; its match bits differ from all others and from `wanted_bits`.
MatchCriteria unwanted(Mix mix, uint64_t index) {
  MatchCriteria criteria{index << 16, 0, own_source, source_mask_exact};
  if (mix == exact) return criteria;
  if (index % 4 == 1 || index % 4 == 3) criteria.ignore_bits = 0xffff;
  if (index % 4 >= 2) {
    criteria.source = 0;
    criteria.source_mask = source_mask_any;
  }
  return criteria;
}

// A list of `depth` entries that nothing matches, and its memory.
class Posted {
 public:
  Posted(Mix mix, uint64_t depth) : nodes_(depth) {
    for (uint64_t i = 0; i < depth; ++i) {
      nodes_[i].criteria = unwanted(mix, i + 1);
      list.append(nodes_[i]);
    }
    wanted.criteria = {wanted_bits, 0, own_source, source_mask_exact};
  }
  ~Posted() {
    while (!list.empty()) list.remove(*list.head());
  }

  MatchList list;
  MatchNode wanted;

 private:
  std::vector<MatchNode> nodes_;
};

bool accept_any(const MatchNode&) { return true; }

// A persistent entry is found again and again.
void match_last(benchmark::State& state) {
  Posted posted(static_cast<Mix>(state.range(0)), static_cast<uint64_t>(state.range(1)));
  posted.list.append(posted.wanted);
  for (auto _ : state)
    benchmark::DoNotOptimize(posted.list.find(wanted_bits, own_source, accept_any));
}

// A message for which nothing is posted, before it goes to the overflow list.
void match_nothing(benchmark::State& state) {
  Posted posted(static_cast<Mix>(state.range(0)), static_cast<uint64_t>(state.range(1)));
  for (auto _ : state)
    benchmark::DoNotOptimize(posted.list.find(wanted_bits, own_source, accept_any));
}

// The life of a use-once entry: appended, found, removed.
void append_match_remove(benchmark::State& state) {
  Posted posted(static_cast<Mix>(state.range(0)), static_cast<uint64_t>(state.range(1)));
  for (auto _ : state) {
    posted.list.append(posted.wanted);
    MatchNode* found = posted.list.find(wanted_bits, own_source, accept_any);
    benchmark::DoNotOptimize(found);
    posted.list.remove(*found);
  }
}

// Messages that arrive in another order than the entries were posted: every find looks elsewhere.
void match_scattered(benchmark::State& state) {
  const auto depth = static_cast<uint64_t>(state.range(1));
  Posted posted(static_cast<Mix>(state.range(0)), depth);
  uint64_t index = 0;
  for (auto _ : state) {
    index = (index + 7919) % depth;
    benchmark::DoNotOptimize(posted.list.find((index + 1) << 16, own_source, accept_any));
  }
}

// Filling an empty list and emptying it, per entry.
void append_many(benchmark::State& state) {
  const auto depth = static_cast<uint64_t>(state.range(1));
  std::vector<MatchNode> nodes(depth);
  for (uint64_t i = 0; i < depth; ++i)
    nodes[i].criteria = unwanted(static_cast<Mix>(state.range(0)), i + 1);
  MatchList list;
  for (auto _ : state) {
    for (MatchNode& node : nodes) list.append(node);
    for (MatchNode& node : nodes) list.remove(node);
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

// Lists of a non-matching interface: the head, whatever it is.
void take_head(benchmark::State& state) {
  MatchList list;
  list.set_matching(false);
  std::vector<MatchNode> nodes(1024);
  for (MatchNode& node : nodes) list.append(node);
  for (auto _ : state) {
    MatchNode* head = list.head();
    list.remove(*head);
    list.append(*head);
  }
  while (!list.empty()) list.remove(*list.head());
}

void by_mix_and_depth(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"mix", "depth"})
      ->ArgsProduct({{exact, mpi}, {0, 1, 10, 100, 1000, 10'000, 100'000}});
  repeated(benchmark);
}

void by_mix_and_length(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"mix", "depth"})->ArgsProduct({{exact, mpi}, {10, 1000, 100'000}});
  repeated(benchmark);
}

BENCHMARK(match_last)->Apply(by_mix_and_depth);
BENCHMARK(match_nothing)->Apply(by_mix_and_depth);
BENCHMARK(append_match_remove)->Apply(by_mix_and_depth);
BENCHMARK(match_scattered)->Apply(by_mix_and_length);
BENCHMARK(append_many)->Apply(by_mix_and_length);
BENCHMARK(take_head)->Apply(repeated);

}  // namespace
}  // namespace lintel::components
