// Cost of finding registered memory: acquire() and release() of memory that is registered already,
// by number of regions.
#include <sys/mman.h>

#include <cstdlib>

#include "../core/repeated.h"
#include "registration/watched_cache.h"

namespace lintel::components {
namespace {

class NoDevice final : public Registrar {
 public:
  int register_memory(void*, uint64_t, bool, Registration&) noexcept override { return 0; }
  void deregister_memory(Registration&) noexcept override {}
};

void find_registered(benchmark::State& state) {
  const auto regions = static_cast<uint64_t>(state.range(0));
  constexpr uint64_t stride = 8192;  // every other page, so that they are not merged
  NoDevice device;
  WatchedCache cache({.most_regions = 65536});
  const auto memory = cache.attach(device);
  void* const mapped = mmap(nullptr, regions * stride, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == nullptr || mapped == MAP_FAILED) std::abort();
  auto* const base = static_cast<std::byte*>(mapped);
  int error = 0;
  for (uint64_t i = 0; i < regions; ++i)
    memory->release(memory->acquire(base + i * stride, 4096, true, error));
  if (cache.counters().regions != regions) {
    state.SkipWithError("memory cannot be watched here (userfaultfd)");
  } else {
    uint64_t place = 0;
    for (auto _ : state) {
      place = (place * 6364136223846793005u + 1442695040888963407u);
      const RegisteredRegion* const region =
          memory->acquire(base + (place >> 40) % regions * stride, 4096, true, error);
      benchmark::DoNotOptimize(region);
      memory->release(region);
    }
  }
  munmap(mapped, regions * stride);
}

BENCHMARK(find_registered)->ArgName("regions")->Arg(1)->Arg(64)->Arg(4096)->Apply(repeated);

}  // namespace
}  // namespace lintel::components
