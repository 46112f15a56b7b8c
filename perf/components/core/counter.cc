// Cost of moving and reading a counting event (spec 3.14), and of triggered increments (spec 3.16).
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/events/counting_event.h"
#include "repeated.h"

namespace lintel::components {
namespace {

// Increments are executed by the counters themselves, so that nothing else is ever asked for here.
class NoExecutor final : public TriggerExecutor {
 public:
  void execute(TriggeredOperation&) noexcept override { std::abort(); }
  void release(TriggeredOperation&) noexcept override {}
  void release_chain(TriggeredOperation&, TriggeredOperation&) noexcept override {}
};

WaitGate gate;
NoExecutor executor;

void open(CountingEvent& counter) { counter.open(&gate, &executor); }

void increment(benchmark::State& state) {
  CountingEvent counter;
  open(counter);
  for (auto _ : state) counter.add_success(1);
  benchmark::DoNotOptimize(counter.get());
}

void read(benchmark::State& state) {
  CountingEvent counter;
  open(counter);
  for (auto _ : state) benchmark::DoNotOptimize(counter.get());
}

// The counter has an operation waiting that is not reached.
void increment_below_threshold(benchmark::State& state) {
  CountingEvent counter;
  CountingEvent target;
  open(counter);
  open(target);
  TriggeredOperation operation;
  operation.kind = TriggeredKind::ct_inc;
  operation.threshold = uint64_t{1} << 62;
  operation.count = {&target, 1, 0};
  counter.attach(operation);
  for (auto _ : state) counter.add_success(1);
  counter.cancel_all([](TriggeredOperation&) {});
}

// Operations posted on one counter and reached one by one. `descending` is the order that the
// specification advises against.
void attach_and_fire(benchmark::State& state) {
  const auto length = static_cast<uint64_t>(state.range(0));
  const bool descending = state.range(1) != 0;
  CountingEvent counter;
  CountingEvent target;
  open(target);
  std::vector<TriggeredOperation> operations(length);
  for (auto _ : state) {
    open(counter);
    for (uint64_t i = 0; i < length; ++i) {
      TriggeredOperation& operation = operations[i];
      operation.kind = TriggeredKind::ct_inc;
      operation.threshold = descending ? length - i : i + 1;
      operation.count = {&target, 1, 0};
      operation.target_generation = target.handle.generation();
      counter.attach(operation);
    }
    for (uint64_t i = 0; i < length; ++i) counter.add_success(1);
    counter.cancel_all([](TriggeredOperation&) { std::abort(); });
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// A chain: every increment reaches the threshold of the next counter. Only the firing is timed;
// "items" are increments.
void chain(benchmark::State& state) {
  constexpr uint64_t ring_size = 64;
  const auto length = static_cast<uint64_t>(state.range(0));
  const auto ring = std::make_unique<CountingEvent[]>(ring_size);
  std::vector<TriggeredOperation> operations(length);
  for (auto _ : state) {
    state.PauseTiming();
    for (uint64_t i = 0; i < ring_size; ++i) open(ring[i]);
    for (uint64_t link = 0; link < length; ++link) {
      CountingEvent& target = ring[(link + 1) % ring_size];
      TriggeredOperation& operation = operations[link];
      operation.kind = TriggeredKind::ct_inc;
      operation.threshold = link / ring_size + 1;
      operation.count = {&target, 1, 0};
      operation.target_generation = target.handle.generation();
      ring[link % ring_size].attach(operation);
    }
    state.ResumeTiming();
    ring[0].add_success(1);
    if (ring[length % ring_size].get().success < length / ring_size) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(increment)->Apply(repeated);
BENCHMARK(read)->Apply(repeated);
BENCHMARK(increment_below_threshold)->Apply(repeated);
BENCHMARK(attach_and_fire)
    ->ArgNames({"operations", "descending"})
    ->ArgsProduct({{10, 1000, 100'000}, {0, 1}})
    ->Apply(repeated);
BENCHMARK(chain)->ArgName("length")->Arg(100)->Arg(10'000)->Arg(100'000)->Apply(repeated);

}  // namespace
}  // namespace lintel::components
