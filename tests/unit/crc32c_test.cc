// CRC-32C: known values, and the fast implementations compared with the table.
#include "util/crc32c.h"

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace lintel {
namespace {

uint32_t usual(std::string_view text) { return ~crc32c(~0u, text.data(), text.size()); }

// RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(usual("123456789"), 0xe3069283u);
  EXPECT_EQ(usual(std::string_view(
                "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32)),
            0x8a9136aau);
  EXPECT_EQ(usual(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(5, nullptr, 0), 5u);
}

uint32_t by_table(uint32_t seed, const void* data, size_t bytes) {
  return crc32c_methods().back().check(seed, data, bytes);
}

TEST(Crc32c, EveryMethodAgreesWithTheTable) {
  std::mt19937 dice(1);
  std::vector<unsigned char> bytes(70'000);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(dice());
  for (const Crc32cMethod& method : crc32c_methods()) {
    if (!method.usable()) continue;
    SCOPED_TRACE(method.name);
    for (size_t length = 0; length < 1100; ++length)
      for (size_t from = 0; from < 9; ++from)
        ASSERT_EQ(method.check(7, bytes.data() + from, length),
                  by_table(7, bytes.data() + from, length))
            << length;
    for (size_t length = 1100; length < 69'000; length += 131)
      ASSERT_EQ(method.check(7, bytes.data() + 3, length), by_table(7, bytes.data() + 3, length))
          << length;
  }
}

TEST(Crc32c, WhatIsUsedAgreesWithTheTable) {
  const std::vector<unsigned char> bytes(9000, 0x5a);
  for (const size_t length : {0u, 8u, 511u, 512u, 513u, 9000u})
    EXPECT_EQ(crc32c(7, bytes.data(), length), by_table(7, bytes.data(), length));
  bool listed = false;
  for (const Crc32cMethod& method : crc32c_methods())
    listed = listed || (method.usable() && std::string_view(method.name) == crc32c_method());
  EXPECT_TRUE(listed);
}

TEST(Crc32c, WordsInRegistersCountAsTheirBytes) {
  std::mt19937_64 dice(2);
  for (int i = 0; i < 100; ++i) {
    const uint32_t first = static_cast<uint32_t>(dice());
    const uint64_t others[3] = {dice(), dice(), dice()};
    unsigned char bytes[28];
    std::memcpy(bytes, &first, sizeof first);
    std::memcpy(bytes + sizeof first, others, sizeof others);
    EXPECT_EQ(crc32c_of_words(11, first, others[0], others[1], others[2]),
              by_table(11, bytes, sizeof bytes));
  }
}

TEST(Crc32c, GoesOnWhereItEnded) {
  const std::string text(5000, 'x');
  for (const size_t cut : {0u, 1u, 2500u, 4999u})
    EXPECT_EQ(crc32c(crc32c(9, text.data(), cut), text.data() + cut, text.size() - cut),
              crc32c(9, text.data(), text.size()));
}

}  // namespace
}  // namespace lintel
