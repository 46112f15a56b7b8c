// Cost of applying an atomic operation to target memory (spec 3.15.4), by operation, datatype,
// number of items and alignment.
#include "core/operations/atomics.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "repeated.h"

namespace lintel::components {
namespace {

struct Case {
  const char* name;
  ptl_op_t operation;
  ptl_datatype_t datatype;
};

constexpr Case cases[] = {
    {"sum_int64", PTL_SUM, PTL_INT64_T},     {"sum_double", PTL_SUM, PTL_DOUBLE},
    {"max_int32", PTL_MAX, PTL_INT32_T},     {"bor_uint8", PTL_BOR, PTL_UINT8_T},
    {"swap_uint64", PTL_SWAP, PTL_UINT64_T}, {"sum_complex", PTL_SUM, PTL_DOUBLE_COMPLEX},
};

void apply(benchmark::State& state, const Case& what, bool fetches) {
  const auto items = static_cast<size_t>(state.range(0));
  const auto shift = static_cast<size_t>(state.range(1));  // bytes off alignment
  const size_t length_bytes = items * datatype_size(what.datatype);
  std::vector<std::byte> target(length_bytes + 64);
  std::vector<std::byte> data(length_bytes);
  std::vector<std::byte> fetched(length_bytes);
  const auto misalignment = reinterpret_cast<uintptr_t>(target.data()) % 64;
  std::byte* const start = target.data() + (64 - misalignment) % 64 + shift;
  MemoryRegion region;
  bool applied = region.open(start, length_bytes, false, true);
  for (auto _ : state) {
    applied &= apply_atomic(what.operation, what.datatype, region, 0, data.data(), nullptr,
                            fetches ? fetched.data() : nullptr, items);
    benchmark::ClobberMemory();
  }
  if (!applied) state.SkipWithError("not applied");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void compare_and_swap(benchmark::State& state) {
  alignas(64) uint64_t target = 0;
  const uint64_t value = 0;
  const uint64_t operand = 0;
  uint64_t fetched = 0;
  MemoryRegion region;
  bool applied = region.open(&target, sizeof target, false, true);
  for (auto _ : state) {
    applied &= apply_atomic(
        PTL_CSWAP, PTL_UINT64_T, region, 0, reinterpret_cast<const std::byte*>(&value),
        reinterpret_cast<const std::byte*>(&operand), reinterpret_cast<std::byte*>(&fetched), 1);
    benchmark::ClobberMemory();
  }
  if (!applied) state.SkipWithError("not applied");
}

[[maybe_unused]] const bool registered = [] {
  for (const Case& what : cases) {
    for (const bool fetches : {false, true}) {
      const std::string name = std::string(fetches ? "fetch_" : "apply_") + what.name;
      benchmark::RegisterBenchmark(
          name.c_str(), [&what, fetches](benchmark::State& state) { apply(state, what, fetches); })
          ->ArgNames({"items", "shift"})
          ->ArgsProduct({{1, 64}, {0, 1}})
          ->Apply(repeated);
    }
  }
  return true;
}();
BENCHMARK(compare_and_swap)->Apply(repeated);

}  // namespace
}  // namespace lintel::components
