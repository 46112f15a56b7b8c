// CRC-32C by table, and by the instructions of x86-64 and ARMv8. Message path.
//
// The instruction takes 8 bytes and three cycles, but three can be under way at once. So long
// buffers are cut into three streams, whose checks are joined afterwards: appending n zero bytes to
// a message is a linear map of its check, which four tables of 256 entries carry out. Long buffers
// are folded where the processor can do that (crc32c_folding.cc).
#include "util/crc32c.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "util/crc32c_folding.h"

#if defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
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

#if defined(__x86_64__)
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
#if defined(__x86_64__) || defined(__ARM_FEATURE_CRC32)
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
  // What is short has no use for more than instructions.
  constexpr size_t worth_choosing = 512;
  if (bytes < worth_choosing) return crc32c_unfolded(seed, data, bytes);
  return best_method().check(seed, data, bytes);
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

const char* crc32c_method() noexcept { return best_method().name; }

}  // namespace lintel
