// The check of frames by crc32c(), by each method that this processor has, and by ISA-L where it is
// installed. Random interleaving compares them on a busy machine.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#ifdef LINTEL_HAS_ISAL
#include <isa-l/crc.h>
#endif

#include "../core/repeated.h"
#include "util/crc32c.h"

namespace lintel::components {
namespace {

using Check = uint32_t (*)(uint32_t seed, const void* data, size_t bytes) noexcept;

#ifdef LINTEL_HAS_ISAL
uint32_t isal(uint32_t seed, const void* data, size_t bytes) noexcept {
  auto* const from = static_cast<unsigned char*>(const_cast<void*>(data));
  return crc32_iscsi(from, static_cast<int>(bytes), seed);
}
#endif

void frame_check(benchmark::State& state, Check check) {
  const std::vector<unsigned char> frame(static_cast<size_t>(state.range(0)), 0x5a);
  uint32_t value = 0;
  for (auto _ : state) benchmark::DoNotOptimize(value = check(value, frame.data(), frame.size()));
}

void add(const std::string& name, Check check) {
  auto* const measured =
      benchmark::RegisterBenchmark(("frame_check/" + name).c_str(), frame_check, check);
  // A short message, frames of Ethernet with 1500 and 9000 bytes, of UDP over the loopback, the
  // largest.
  for (const int64_t bytes : {64, 104, 1400, 8900, 32448, 65536}) measured->Arg(bytes);
  repeated(measured);
}

[[maybe_unused]] const bool added = [] {
  add("crc32c", crc32c);
#ifdef LINTEL_HAS_ISAL
  add("ISA-L", isal);
#endif
  for (const Crc32cMethod& method : crc32c_methods())
    if (method.usable()) add(method.name, method.check);
  return true;
}();

}  // namespace
}  // namespace lintel::components
