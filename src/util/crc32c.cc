// CRC-32C by table, and by the instructions of x86-64 and ARMv8. Message path.
//
// The instruction takes 8 bytes and three cycles, but three can be under way at once. So long
// buffers are cut into three streams, whose checks are joined afterwards: appending n zero bytes to
// a message is a linear map of its check, which four tables of 256 entries carry out. Long buffers
// are folded where the processor can do that.
#include "util/crc32c.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>

#include <asm/hwcap.h>
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

#if defined(__x86_64__) || defined(__aarch64__)

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
using Wide = uint64_t;  // a check as the instruction for eight bytes has it
LINTEL_CRC_TARGET inline Wide step8(Wide check, uint64_t word) noexcept {
  return __builtin_ia32_crc32di(check, word);
}
LINTEL_CRC_TARGET inline uint32_t step4(uint32_t check, uint32_t word) noexcept {
  return __builtin_ia32_crc32si(check, word);
}
LINTEL_CRC_TARGET inline uint32_t step1(uint32_t check, unsigned char byte) noexcept {
  return __builtin_ia32_crc32qi(check, byte);
}
#else
#define LINTEL_CRC_TARGET
// Not intrinsics: compilers offer them only in builds for processors that all have the
// instructions.
using Wide = uint32_t;
inline Wide step8(Wide check, uint64_t word) noexcept {
  asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(check) : "r"(word));
  return check;
}
inline uint32_t step4(uint32_t check, uint32_t word) noexcept {
  asm(".arch_extension crc\n\tcrc32cw %w0, %w0, %w1" : "+r"(check) : "r"(word));
  return check;
}
inline uint32_t step1(uint32_t check, unsigned char byte) noexcept {
  asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(check) : "r"(uint32_t{byte}));
  return check;
}
#endif

template <size_t stream>
LINTEL_CRC_TARGET inline uint32_t three_streams(uint32_t check, const unsigned char*& from,
                                                size_t& bytes,
                                                const std::array<Table, 4>& tables) noexcept {
  while (bytes >= 3 * stream) {
    Wide first = check;
    Wide second = 0;
    Wide third = 0;
    for (size_t i = 0; i < stream; i += 8) {
      first = step8(first, load(from + i));
      second = step8(second, load(from + stream + i));
      third = step8(third, load(from + 2 * stream + i));
    }
    check = shift(tables, static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    check = shift(tables, check) ^ static_cast<uint32_t>(third);
    from += 3 * stream;
    bytes -= 3 * stream;
  }
  return check;
}

template <size_t words>
LINTEL_CRC_TARGET inline Wide step_words(Wide check, const unsigned char*& from) noexcept {
#pragma GCC unroll 4
  for (size_t i = 0; i < words; ++i) check = step8(check, load(from + 8 * i));
  from += 8 * words;
  return check;
}

// Computes the check of fewer bytes than three short streams.
LINTEL_CRC_TARGET inline uint32_t crc32c_of_few(uint32_t check, const unsigned char* from,
                                                size_t bytes) noexcept {
  const unsigned char* const end = from + bytes;
  Wide wide = check;
  for (size_t fours = bytes / 32; fours != 0; --fours) wide = step_words<4>(wide, from);
  if ((bytes & 16) != 0) wide = step_words<2>(wide, from);
  if ((bytes & 8) != 0) wide = step_words<1>(wide, from);
  check = static_cast<uint32_t>(wide);
  if ((bytes & 4) != 0) {
    uint32_t word;
    std::memcpy(&word, from, sizeof word);
    check = step4(check, word);
    from += 4;
  }
  for (; from != end; ++from) check = step1(check, *from);
  return check;
}

LINTEL_CRC_TARGET uint32_t crc32c_of_words_by_instruction(uint32_t check, uint32_t first,
                                                          uint64_t second, uint64_t third,
                                                          uint64_t fourth) noexcept {
  return static_cast<uint32_t>(step8(step8(step8(step4(check, first), second), third), fourth));
}

LINTEL_CRC_TARGET uint32_t crc32c_by_instruction(uint32_t seed, const void* data,
                                                 size_t bytes) noexcept {
  const auto* from = static_cast<const unsigned char*>(data);
  if (bytes < 3 * short_stream) return crc32c_of_few(seed, from, bytes);
  uint32_t check = three_streams<long_stream>(seed, from, bytes, long_shift);
  check = three_streams<short_stream>(check, from, bytes, short_shift);
  return crc32c_of_few(check, from, bytes);
}

// Best method of the processor.
enum class Ability : uint8_t { unknown, tables, instructions, folding };
std::atomic<Ability> ability{Ability::unknown};

#if defined(__x86_64__)

// __builtin_cpu_supports() would do that for every program at its start, whether it needs a check
// or not. On a virtual machine each of its dozen CPUID instructions takes microseconds.
[[gnu::cold, gnu::noinline]] Ability ask_processor() noexcept {
  constexpr uint64_t vector_registers = 0xe6;  // state of 512-bit registers, saved by the kernel
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t basic = 0;
  uint32_t d = 0;
  Ability found = Ability::tables;
  if (__get_cpuid(1, &a, &b, &basic, &d) != 0 && (basic & bit_SSE4_2) != 0) {
    found = Ability::instructions;
    uint32_t with_f = 0;
    uint32_t with_multiplication = 0;
    if ((basic & bit_PCLMUL) != 0 && (basic & bit_OSXSAVE) != 0 &&
        __get_cpuid_count(7, 0, &a, &with_f, &with_multiplication, &d) != 0 &&
        (with_f & bit_AVX512F) != 0 && (with_multiplication & bit_VPCLMULQDQ) != 0) {
      uint32_t enabled = 0;
      asm volatile("xgetbv" : "=a"(enabled), "=d"(d) : "c"(0));
      if ((enabled & vector_registers) == vector_registers) found = Ability::folding;
    }
  }
  ability.store(found, std::memory_order_relaxed);
  return found;
}

#else

[[gnu::cold, gnu::noinline]] Ability ask_processor() noexcept {
  const bool has_crc = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  const Ability found = has_crc ? Ability::instructions : Ability::tables;
  ability.store(found, std::memory_order_relaxed);
  return found;
}

#endif

bool is_able(Ability wanted) noexcept {
  const Ability known = ability.load(std::memory_order_relaxed);
  return known >= wanted || (known == Ability::unknown && ask_processor() >= wanted);
}

bool has_instruction() noexcept { return is_able(Ability::instructions); }

#endif

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

#if defined(__x86_64__)

// Long buffers by multiplication without carry. Folding: a block of bits can be moved forward in a
// message, and joined with what lies there, by multiplying it with a power of x modulo the
// polynomial, without changing the check of the whole. So many blocks are read, moved and joined at
// once, and only the last one is divided. All polynomials are reflected: the lowest bit belongs to
// the highest power of x.
#define LINTEL_WIDE __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

// Bytes of a step; fold_wide() takes at least so many, and leaves less than 64.
constexpr size_t wide_folding_bytes = 256;

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

// Constants that move 16 bytes forward by `bits`. Products of reflected numbers are one place too
// low, so the constants are one place higher.
struct FoldConstants {
  uint64_t low;
  uint64_t high;
};
constexpr FoldConstants fold_by(unsigned bits) {
  return {uint64_t{power(bits + 32)} << 1, uint64_t{power(bits - 32)} << 1};
}

constexpr FoldConstants by_128 = fold_by(128);
constexpr FoldConstants by_512 = fold_by(512);
constexpr FoldConstants by_2048 = fold_by(2048);

LINTEL_WIDE inline __m128i constants128(FoldConstants by) noexcept {
  return _mm_set_epi64x(static_cast<int64_t>(by.high), static_cast<int64_t>(by.low));
}

LINTEL_WIDE inline __m128i fold128(__m128i block, __m128i constants, __m128i next) noexcept {
  return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(block, constants, 0x00),
                                           _mm_clmulepi64_si128(block, constants, 0x11)));
}

LINTEL_WIDE inline uint32_t check_of(__m128i block) noexcept {
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

bool can_fold_wide() noexcept { return is_able(Ability::folding); }

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

uint32_t crc32c_by_wide_folding(uint32_t seed, const void* data, size_t bytes) noexcept {
  const auto* from = static_cast<const unsigned char*>(data);
  if (bytes >= wide_folding_bytes) seed = fold_wide(seed, from, bytes);
  return crc32c_by_instruction(seed, from, bytes);
}
#endif

bool always() noexcept { return true; }

constexpr Crc32cMethod methods[] = {
#if defined(__x86_64__)
    {"CRC-32C by folding 512 bits", can_fold_wide, crc32c_by_wide_folding},
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    {"CRC-32C by instructions", has_instruction, crc32c_by_instruction},
#endif
    {"CRC-32C by tables", always, crc32c_by_table},
};

const Crc32cMethod& best_method() noexcept {
  static const Crc32cMethod& best =
      *std::ranges::find_if(methods, [](const auto& m) { return m.usable(); });
  return best;
}

}  // namespace

std::span<const Crc32cMethod> crc32c_methods() noexcept { return methods; }

uint32_t crc32c(uint32_t seed, const void* data, size_t bytes) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
  // Short data gain nothing from folding.
  constexpr size_t worth_choosing = 512;
  if (bytes < worth_choosing && ability.load(std::memory_order_relaxed) >= Ability::instructions)
      [[likely]]
    return crc32c_by_instruction(seed, data, bytes);
#endif
  return best_method().check(seed, data, bytes);
}

uint32_t crc32c_of_words(uint32_t seed, uint32_t first, uint64_t second, uint64_t third,
                         uint64_t fourth) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
  if (ability.load(std::memory_order_relaxed) >= Ability::instructions) [[likely]]
    return crc32c_of_words_by_instruction(seed, first, second, third, fourth);
#endif
  const uint64_t others[3] = {second, third, fourth};
  return crc32c(crc32c(seed, &first, sizeof first), others, sizeof others);
}

const char* crc32c_method() noexcept { return best_method().name; }

}  // namespace lintel
