// See the header. All polynomials are reflected: the lowest bit belongs to the highest power of x.
#include "util/crc32c_folding.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#define LINTEL_WIDE __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))
#define LINTEL_MIXED __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))

namespace lintel {

namespace {

constexpr uint32_t polynomial = 0x82f63b78;

constexpr uint32_t times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; b != 0; b <<= 1) {
    if ((b >> 31) != 0) product ^= a;
    a = (a >> 1) ^ ((a & 1) != 0 ? polynomial : 0);
  }
  return product;
}

// x^n modulo the polynomial.
constexpr uint32_t power(uint64_t n) {
  uint32_t result = 0x8000'0000;
  for (uint32_t square = 0x4000'0000; n != 0; n >>= 1, square = times(square, square))
    if ((n & 1) != 0) result = times(result, square);
  return result;
}

// What moves 16 bytes forward by `bits`. Products of reflected numbers come out one place too low,
// so the constants are one place higher.
struct FoldConstants {
  uint64_t low;
  uint64_t high;
};
constexpr FoldConstants fold_by(unsigned bits) {
  return {uint64_t{power(bits + 32)} << 1, uint64_t{power(bits - 32)} << 1};
}

constexpr FoldConstants by_128 = fold_by(128);
constexpr FoldConstants by_256 = fold_by(256);
constexpr FoldConstants by_512 = fold_by(512);
constexpr FoldConstants by_1024 = fold_by(1024);
constexpr FoldConstants by_2048 = fold_by(2048);

LINTEL_MIXED inline __m128i constants128(FoldConstants by) noexcept {
  return _mm_set_epi64x(static_cast<int64_t>(by.high), static_cast<int64_t>(by.low));
}

LINTEL_MIXED inline __m128i fold128(__m128i block, __m128i constants, __m128i next) noexcept {
  return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(block, constants, 0x00),
                                           _mm_clmulepi64_si128(block, constants, 0x11)));
}

LINTEL_MIXED inline uint32_t check_of(__m128i block) noexcept {
  const uint64_t check = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(block)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(check, static_cast<uint64_t>(_mm_extract_epi64(block, 1))));
}

LINTEL_WIDE inline __m512i load512(const unsigned char* from) noexcept {
  return _mm512_loadu_si512(from);
}

LINTEL_WIDE inline __m512i constants512(FoldConstants by) noexcept {
  return _mm512_set4_epi64(static_cast<int64_t>(by.high), static_cast<int64_t>(by.low),
                           static_cast<int64_t>(by.high), static_cast<int64_t>(by.low));
}

LINTEL_WIDE inline __m512i fold512(__m512i block, __m512i constants, __m512i next) noexcept {
  constexpr int exclusive_or = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block, constants, 0x00),
                                   _mm512_clmulepi64_epi128(block, constants, 0x11), next,
                                   exclusive_or);
}

LINTEL_MIXED inline __m256i load256(const unsigned char* from) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

LINTEL_MIXED inline __m256i constants256(FoldConstants by) noexcept {
  return _mm256_broadcastsi128_si256(constants128(by));
}

LINTEL_MIXED inline __m256i fold256(__m256i block, __m256i constants, __m256i next) noexcept {
  return _mm256_xor_si256(next, _mm256_xor_si256(_mm256_clmulepi64_epi128(block, constants, 0x00),
                                                 _mm256_clmulepi64_epi128(block, constants, 0x11)));
}

inline uint64_t load64(const unsigned char* from) noexcept {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// What fold_mixed() cuts a buffer into: three streams of `stream_step` bytes a step for the
// instruction, then a part of `folded_step` bytes a step that is folded.
constexpr size_t words_per_step = 6;
constexpr size_t stream_step = words_per_step * 8;
constexpr size_t folded_step = 128;
constexpr size_t mixed_step = 3 * stream_step + folded_step;
constexpr size_t most_steps = 64;
static_assert(mixed_folding_bytes == 2 * mixed_step && 8 * folded_step == 1024);

// What moves the checks of the streams to the last step of the folded part.
struct StreamShifts {
  uint32_t first, second, third;
};
constexpr std::array<StreamShifts, most_steps + 1> make_stream_shifts() {
  // A product comes out one place too low, and the instruction moves it by 32 more.
  constexpr uint64_t moved = 33;
  std::array<StreamShifts, most_steps + 1> shifts{};
  for (size_t steps = 2; steps <= most_steps; ++steps) {
    const uint64_t folded_bits = 8 * folded_step * (steps - 1) - moved;
    const uint64_t stream_bits = 8 * stream_step * steps;
    shifts[steps] = {power(folded_bits + 2 * stream_bits), power(folded_bits + stream_bits),
                     power(folded_bits)};
  }
  return shifts;
}
constexpr std::array<StreamShifts, most_steps + 1> stream_shifts = make_stream_shifts();

LINTEL_MIXED inline uint64_t product(uint64_t check, uint32_t by) noexcept {
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_clmulepi64_si128(
      _mm_cvtsi64_si128(static_cast<int64_t>(check)), _mm_cvtsi64_si128(by), 0)));
}

// The three streams, a step at a time.
struct Streams {
  const unsigned char* from;
  size_t length;  // of each
  uint64_t first, second, third;

  LINTEL_MIXED void step() noexcept {
#pragma GCC unroll 6
    for (size_t i = 0; i < words_per_step; ++i, from += 8) {
      first = _mm_crc32_u64(first, load64(from));
      second = _mm_crc32_u64(second, load64(from + length));
      third = _mm_crc32_u64(third, load64(from + 2 * length));
    }
  }
  [[nodiscard]] LINTEL_MIXED uint32_t joined(const StreamShifts& by) const noexcept {
    return static_cast<uint32_t>(_mm_crc32_u64(
        0, product(first, by.first) ^ product(second, by.second) ^ product(third, by.third)));
  }
};

}  // namespace

bool can_fold_wide() noexcept {
  static const bool can = __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("vpclmulqdq") &&
                          __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
  return can;
}

bool can_fold_mixed() noexcept {
  static const bool can = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq") &&
                          __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
  return can;
}

// The loops over the blocks are unrolled because GCC at -O2 keeps the blocks on the stack
// otherwise, which takes 1.3 times as long.
LINTEL_WIDE uint32_t fold_wide(uint32_t seed, const unsigned char*& from, size_t& bytes) noexcept {
  __m512i block[4];
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; ++i) block[i] = load512(from + 64 * i);
  block[0] =
      _mm512_xor_si512(block[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(seed))));
  from += wide_folding_bytes;
  bytes -= wide_folding_bytes;
  const __m512i far = constants512(by_2048);
  for (; bytes >= wide_folding_bytes; bytes -= wide_folding_bytes, from += wide_folding_bytes)
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; ++i) block[i] = fold512(block[i], far, load512(from + 64 * i));
  const __m512i near = constants512(by_512);
  __m512i sum = block[0];
#pragma GCC unroll 4
  for (unsigned i = 1; i < 4; ++i) sum = fold512(sum, near, block[i]);
  for (; bytes >= 64; bytes -= 64, from += 64) sum = fold512(sum, near, load512(from));
  const __m128i nearest = constants128(by_128);
  alignas(64) __m128i pieces[4];
  _mm512_store_si512(pieces, sum);
  __m128i last = pieces[0];
  for (unsigned i = 1; i < 4; ++i) last = fold128(last, nearest, pieces[i]);
  return check_of(last);
}

LINTEL_MIXED uint32_t fold_mixed(uint32_t seed, const unsigned char*& from,
                                 size_t& bytes) noexcept {
  const size_t steps = std::min(bytes / mixed_step, most_steps);
  Streams streams{from, steps * stream_step, seed, 0, 0};
  from += 3 * streams.length;
  __m256i block[4];
  for (unsigned i = 0; i < 4; ++i) block[i] = load256(from + 32 * i);
  from += folded_step;
  streams.step();
  const __m256i far = constants256(by_1024);
  for (size_t step = 1; step < steps; ++step, from += folded_step) {
    for (unsigned i = 0; i < 4; ++i) block[i] = fold256(block[i], far, load256(from + 32 * i));
    streams.step();
  }
  bytes -= steps * mixed_step;
  // The streams lie before the folded part: their check begins it, as the seed began theirs.
  const auto before = static_cast<int>(streams.joined(stream_shifts[steps]));
  block[0] = _mm256_xor_si256(block[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128(before)));
  // What is less than a step belongs to nobody else.
  const bool at_end = bytes < mixed_step;
  if (at_end && bytes >= folded_step) {
    for (unsigned i = 0; i < 4; ++i) block[i] = fold256(block[i], far, load256(from + 32 * i));
    from += folded_step;
    bytes -= folded_step;
  }
  const __m256i near = constants256(by_256);
  __m256i sum = block[0];
  for (unsigned i = 1; i < 4; ++i) sum = fold256(sum, near, block[i]);
  if (at_end)
    for (; bytes >= 32; bytes -= 32, from += 32) sum = fold256(sum, near, load256(from));
  return check_of(
      fold128(_mm256_castsi256_si128(sum), constants128(by_128), _mm256_extracti128_si256(sum, 1)));
}

}  // namespace lintel

#endif
