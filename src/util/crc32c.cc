// CRC-32C by table, and by the instructions of x86-64 and ARMv8. Message path.
//
// The instruction takes 8 bytes and three cycles, but three can be under way at once. So long
// buffers are cut into three streams, whose checks are joined afterwards: appending n zero bytes to
// a message is a linear map of its check, which four tables of 256 entries carry out. Where a
// processor multiplies 512 bits without carry, long buffers are folded instead: 256 bytes a step.
#include "util/crc32c.h"

#include <array>
#include <cstring>

#if defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lintel {

namespace {

constexpr uint32_t polynomial = 0x82f63b78;  // reflected

using Table = std::array<uint32_t, 256>;

constexpr std::array<Table, 8> make_byte_tables() {
  std::array<Table, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t check = i;
    for (int bit = 0; bit < 8; ++bit) check = (check >> 1) ^ ((check & 1) != 0 ? polynomial : 0);
    tables[0][i] = check;
  }
  for (unsigned t = 1; t < 8; ++t)
    for (uint32_t i = 0; i < 256; ++i)
      tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
  return tables;
}

constexpr std::array<Table, 8> byte_tables = make_byte_tables();

[[maybe_unused]] inline uint64_t load(const unsigned char* from) noexcept {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

#if defined(__x86_64__) || defined(__ARM_FEATURE_CRC32)

constexpr uint32_t append_zero_bytes(uint32_t check, size_t count) {
  for (size_t i = 0; i < count; ++i) check = (check >> 8) ^ byte_tables[0][check & 0xff];
  return check;
}

// The effect of `length` zero bytes on a check, one table for each of its four bytes.
template <size_t length>
constexpr std::array<Table, 4> make_shift_tables() {
  // Linear: the images of the 32 bits determine the rest.
  std::array<uint32_t, 32> image{};
  for (unsigned bit = 0; bit < 32; ++bit)
    image[bit] = append_zero_bytes(uint32_t{1} << bit, length);
  std::array<Table, 4> tables{};
  for (unsigned byte = 0; byte < 4; ++byte)
    for (uint32_t value = 0; value < 256; ++value)
      for (unsigned bit = 0; bit < 8; ++bit)
        if ((value >> bit & 1) != 0) tables[byte][value] ^= image[byte * 8 + bit];
  return tables;
}

constexpr size_t long_stream = 1024;
constexpr size_t short_stream = 128;
constexpr std::array<Table, 4> long_shift = make_shift_tables<long_stream>();
constexpr std::array<Table, 4> short_shift = make_shift_tables<short_stream>();

inline uint32_t shift(const std::array<Table, 4>& tables, uint32_t check) noexcept {
  return tables[0][check & 0xff] ^ tables[1][check >> 8 & 0xff] ^ tables[2][check >> 16 & 0xff] ^
         tables[3][check >> 24];
}

#if defined(__x86_64__)
#define LINTEL_CRC_TARGET __attribute__((target("sse4.2")))
LINTEL_CRC_TARGET inline uint32_t step8(uint32_t check, uint64_t word) noexcept {
  return static_cast<uint32_t>(__builtin_ia32_crc32di(check, word));
}
LINTEL_CRC_TARGET inline uint32_t step4(uint32_t check, uint32_t word) noexcept {
  return __builtin_ia32_crc32si(check, word);
}
LINTEL_CRC_TARGET inline uint32_t step1(uint32_t check, unsigned char byte) noexcept {
  return __builtin_ia32_crc32qi(check, byte);
}
#else
#define LINTEL_CRC_TARGET
inline uint32_t step8(uint32_t check, uint64_t word) noexcept { return __crc32cd(check, word); }
inline uint32_t step4(uint32_t check, uint32_t word) noexcept { return __crc32cw(check, word); }
inline uint32_t step1(uint32_t check, unsigned char byte) noexcept {
  return __crc32cb(check, byte);
}
#endif

template <size_t stream>
LINTEL_CRC_TARGET inline uint32_t three_streams(uint32_t check, const unsigned char*& from,
                                                size_t& bytes,
                                                const std::array<Table, 4>& tables) noexcept {
  while (bytes >= 3 * stream) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t i = 0; i < stream; i += 8) {
      check = step8(check, load(from + i));
      second = step8(second, load(from + stream + i));
      third = step8(third, load(from + 2 * stream + i));
    }
    check = shift(tables, check) ^ second;
    check = shift(tables, check) ^ third;
    from += 3 * stream;
    bytes -= 3 * stream;
  }
  return check;
}

// Less than three short streams.
LINTEL_CRC_TARGET inline uint32_t crc32c_of_few(uint32_t check, const unsigned char* from,
                                                size_t bytes) noexcept {
  for (; bytes >= 8; bytes -= 8, from += 8) check = step8(check, load(from));
  if (bytes >= 4) {
    uint32_t word;
    std::memcpy(&word, from, sizeof word);
    check = step4(check, word);
    bytes -= 4;
    from += 4;
  }
  for (; bytes != 0; --bytes, ++from) check = step1(check, *from);
  return check;
}

LINTEL_CRC_TARGET uint32_t crc32c_of_words_by_instruction(uint32_t check, uint32_t first,
                                                          uint64_t second, uint64_t third,
                                                          uint64_t fourth) noexcept {
  return step8(step8(step8(step4(check, first), second), third), fourth);
}

LINTEL_CRC_TARGET uint32_t crc32c_by_instruction(uint32_t seed, const void* data,
                                                 size_t bytes) noexcept {
  const auto* from = static_cast<const unsigned char*>(data);
  if (bytes < 3 * short_stream) return crc32c_of_few(seed, from, bytes);
  uint32_t check = three_streams<long_stream>(seed, from, bytes, long_shift);
  check = three_streams<short_stream>(check, from, bytes, short_shift);
  return crc32c_of_few(check, from, bytes);
}

#endif

#if defined(__x86_64__)
#define LINTEL_FOLD_TARGET __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

// x^n modulo the polynomial, in the order of bits in which carry-less products of reflected
// operands come out one place too low.
constexpr uint64_t reflected_power(unsigned n) {
  constexpr uint64_t forward = 0x11edc6f41;
  uint64_t power = 1;
  for (unsigned i = 0; i < n; ++i) {
    power <<= 1;
    if ((power >> 32) != 0) power ^= forward;
  }
  uint64_t reflected = 0;
  for (unsigned bit = 0; bit < 32; ++bit) reflected |= (power >> bit & 1) << (32 - bit);
  return reflected;
}

// What moves 16 bytes forward by `bits` without changing the check of the whole.
struct FoldConstants {
  uint64_t low;
  uint64_t high;
};
constexpr FoldConstants fold_by(unsigned bits) {
  return {reflected_power(bits + 32), reflected_power(bits - 32)};
}

LINTEL_FOLD_TARGET inline __m512i fold512(__m512i block, __m512i constants, __m512i next) noexcept {
  constexpr int exclusive_or = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block, constants, 0x00),
                                   _mm512_clmulepi64_epi128(block, constants, 0x11), next,
                                   exclusive_or);
}

LINTEL_FOLD_TARGET inline __m512i constants512(FoldConstants by) noexcept {
  return _mm512_set4_epi64(static_cast<int64_t>(by.high), static_cast<int64_t>(by.low),
                           static_cast<int64_t>(by.high), static_cast<int64_t>(by.low));
}

constexpr size_t fold_bytes = 256;

// At least fold_bytes. What is left at the end is for the instruction.
LINTEL_FOLD_TARGET uint32_t crc32c_by_folding(uint32_t seed, const unsigned char*& from,
                                              size_t& bytes) noexcept {
  __m512i block[4];
  for (unsigned i = 0; i < 4; ++i) block[i] = _mm512_loadu_si512(from + 64 * i);
  block[0] =
      _mm512_xor_si512(block[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(seed))));
  from += fold_bytes;
  bytes -= fold_bytes;
  constexpr FoldConstants by_2048 = fold_by(2048);
  constexpr FoldConstants by_512 = fold_by(512);
  const __m512i far = constants512(by_2048);
  for (; bytes >= fold_bytes; bytes -= fold_bytes, from += fold_bytes)
    for (unsigned i = 0; i < 4; ++i)
      block[i] = fold512(block[i], far, _mm512_loadu_si512(from + 64 * i));
  const __m512i near = constants512(by_512);
  __m512i sum = block[0];
  for (unsigned i = 1; i < 4; ++i) sum = fold512(sum, near, block[i]);
  for (; bytes >= 64; bytes -= 64, from += 64) sum = fold512(sum, near, _mm512_loadu_si512(from));
  // Four pieces of 16 bytes, then the check of the one that is left.
  constexpr FoldConstants by_128 = fold_by(128);
  const __m128i nearest =
      _mm_set_epi64x(static_cast<int64_t>(by_128.high), static_cast<int64_t>(by_128.low));
  alignas(64) __m128i pieces[4];
  _mm512_store_si512(pieces, sum);
  __m128i last = pieces[0];
  for (unsigned i = 1; i < 4; ++i)
    last = _mm_xor_si128(pieces[i], _mm_xor_si128(_mm_clmulepi64_si128(last, nearest, 0x00),
                                                  _mm_clmulepi64_si128(last, nearest, 0x11)));
  const uint32_t check = step8(0, static_cast<uint64_t>(_mm_cvtsi128_si64(last)));
  return step8(check, static_cast<uint64_t>(_mm_extract_epi64(last, 1)));
}

bool can_fold() noexcept {
  static const bool can = __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("vpclmulqdq") &&
                          __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
  return can;
}
#endif

bool has_instruction() noexcept {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2");
  return has;
#elif defined(__ARM_FEATURE_CRC32)
  return true;
#else
  return false;
#endif
}

}  // namespace

uint32_t crc32c_by_table(uint32_t seed, const void* data, size_t bytes) noexcept {
  const auto* from = static_cast<const unsigned char*>(data);
  uint32_t check = seed;
  for (; bytes >= 8; bytes -= 8, from += 8) {
    // Byte by byte, so that the order of bytes in a word does not matter.
    const auto first = check ^ (uint32_t{from[0]} | uint32_t{from[1]} << 8 |
                                uint32_t{from[2]} << 16 | uint32_t{from[3]} << 24);
    check = byte_tables[7][first & 0xff] ^ byte_tables[6][first >> 8 & 0xff] ^
            byte_tables[5][first >> 16 & 0xff] ^ byte_tables[4][first >> 24] ^
            byte_tables[3][from[4]] ^ byte_tables[2][from[5]] ^ byte_tables[1][from[6]] ^
            byte_tables[0][from[7]];
  }
  for (; bytes != 0; --bytes, ++from) check = (check >> 8) ^ byte_tables[0][(check ^ *from) & 0xff];
  return check;
}

uint32_t crc32c_unfolded(uint32_t seed, const void* data, size_t bytes) noexcept {
#if defined(__x86_64__) || defined(__ARM_FEATURE_CRC32)
  if (has_instruction()) [[likely]]
    return crc32c_by_instruction(seed, data, bytes);
#endif
  return crc32c_by_table(seed, data, bytes);
}

uint32_t crc32c(uint32_t seed, const void* data, size_t bytes) noexcept {
#if defined(__x86_64__)
  constexpr size_t worth_folding = 2 * fold_bytes;
  if (bytes >= worth_folding && can_fold()) {
    const auto* from = static_cast<const unsigned char*>(data);
    const uint32_t check = crc32c_by_folding(seed, from, bytes);
    return crc32c_by_instruction(check, from, bytes);
  }
#endif
  return crc32c_unfolded(seed, data, bytes);
}

uint32_t crc32c_of_words(uint32_t seed, uint32_t first, uint64_t second, uint64_t third,
                         uint64_t fourth) noexcept {
#if defined(__x86_64__) || defined(__ARM_FEATURE_CRC32)
  if (has_instruction()) [[likely]]
    return crc32c_of_words_by_instruction(seed, first, second, third, fourth);
#endif
  const uint64_t others[3] = {second, third, fourth};
  return crc32c_by_table(crc32c_by_table(seed, &first, sizeof first), others, sizeof others);
}

const char* crc32c_method() noexcept {
#if defined(__x86_64__)
  if (can_fold()) return "CRC-32C by folding";
#endif
  return has_instruction() ? "CRC-32C by instructions" : "CRC-32C by tables";
}

}  // namespace lintel
