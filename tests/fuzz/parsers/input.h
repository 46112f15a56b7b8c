// The input of one run of a fuzzer, consumed piece by piece. Bytes after its end are zero, so every
// input is valid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// Executes one run. Each program in this folder defines it. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lintel::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) noexcept : next_(data), left_(size) {}

  [[nodiscard]] bool is_empty() const noexcept { return left_ == 0; }
  [[nodiscard]] size_t left() const noexcept { return left_; }
  void fill(void* to, size_t bytes) noexcept {
    const size_t known = std::min(bytes, left_);
    if (bytes > known) std::memset(static_cast<uint8_t*>(to) + known, 0, bytes - known);
    if (known != 0) std::memcpy(to, next_, known);
    next_ += known;
    left_ -= known;
  }
  template <typename T>
  [[nodiscard]] T take() noexcept {
    T value;
    fill(&value, sizeof value);
    return value;
  }
  [[nodiscard]] uint8_t byte() noexcept { return take<uint8_t>(); }
  // Excludes `limit`, which is at most 256.
  [[nodiscard]] unsigned below(unsigned limit) noexcept { return byte() % limit; }
  [[nodiscard]] bool flag() noexcept { return (byte() & 1) != 0; }
  [[nodiscard]] std::vector<std::byte> bytes(size_t most) noexcept {
    std::vector<std::byte> taken(std::min(most, left_));
    fill(taken.data(), taken.size());
    return taken;
  }
  // Changes up to `most` bytes at positions that the input determines.
  void damage(void* what, size_t bytes, unsigned most) noexcept {
    auto* const at = static_cast<uint8_t*>(what);
    for (unsigned i = below(most + 1); i != 0 && bytes != 0; --i) {
      const size_t place = take<uint16_t>() % bytes;
      at[place] = byte();
    }
  }

 private:
  const uint8_t* next_;
  size_t left_;
};

// A condition that must hold in every run. Sanitizers detect other faults.
#define FUZZ_CHECK(condition)                                                            \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

}  // namespace lintel::fuzz
