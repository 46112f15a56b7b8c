// Cost of posting and taking full events (spec 3.13).
#include "core/events/event_queue.h"

#include <cstdint>
#include <cstdlib>

#include "repeated.h"

namespace lintel::components {
namespace {

WaitGate gate;

ptl_event_t put_event() {
  ptl_event_t event{};
  event.type = PTL_EVENT_PUT;
  return event;
}

class OpenQueue {
 public:
  explicit OpenQueue(ptl_size_t count) {
    if (!queue.open(count, 0, &gate)) std::abort();
  }
  EventQueue queue;
};

// One event at a time: the queue is as good as empty, as in a ping-pong.
void post_and_get(benchmark::State& state) {
  OpenQueue open(static_cast<ptl_size_t>(state.range(0)));
  ptl_event_t posted = put_event();
  ptl_event_t event;
  for (auto _ : state) {
    ++posted.hdr_data;
    open.queue.post(posted);
    if (open.queue.get(&event) != GetStatus::ok) std::abort();
    benchmark::DoNotOptimize(event);
  }
}

// With a place reserved beforehand, as entries with flow control need it (spec 2.8).
void reserve_post_get(benchmark::State& state) {
  OpenQueue open(static_cast<ptl_size_t>(state.range(0)));
  ptl_event_t posted = put_event();
  ptl_event_t event;
  for (auto _ : state) {
    if (!open.queue.try_reserve()) std::abort();
    ++posted.hdr_data;
    open.queue.post(posted, true);
    if (open.queue.get(&event) != GetStatus::ok) std::abort();
    benchmark::DoNotOptimize(event);
  }
}

void get_from_empty(benchmark::State& state) {
  OpenQueue open(static_cast<ptl_size_t>(state.range(0)));
  ptl_event_t event;
  for (auto _ : state) benchmark::DoNotOptimize(open.queue.get(&event));
}

// The queue is filled and then emptied; "items" are events.
void fill_and_empty(benchmark::State& state) {
  OpenQueue open(static_cast<ptl_size_t>(state.range(0)));
  const auto count = static_cast<uint64_t>(state.range(0));
  const ptl_event_t posted = put_event();
  ptl_event_t event;
  for (auto _ : state) {
    for (uint64_t number = 0; number < count; ++number) open.queue.post(posted);
    for (uint64_t number = 0; number < count; ++number)
      if (open.queue.get(&event) != GetStatus::ok) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// Nobody takes events: every post overwrites the oldest (spec 3.13.5).
void overwrite(benchmark::State& state) {
  OpenQueue open(static_cast<ptl_size_t>(state.range(0)));
  const ptl_event_t posted = put_event();
  for (auto _ : state) open.queue.post(posted);
}

void by_count(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("count")->Arg(64)->Arg(1024)->Arg(65'536);
  repeated(benchmark);
}

BENCHMARK(post_and_get)->Apply(by_count);
BENCHMARK(reserve_post_get)->Apply(by_count);
BENCHMARK(get_from_empty)->Apply(by_count);
BENCHMARK(fill_and_empty)->Apply(by_count);
BENCHMARK(overwrite)->Apply(by_count);

}  // namespace
}  // namespace lintel::components
