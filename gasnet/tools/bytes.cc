/* bytes.cc: checksums, and counting zero bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <cstring>

#include "tools/headers.h"

uint64_t gasnett_checksum(const void* data, int nbytes) {
  // FNV-1a over words of eight bytes, then over the rest.
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t sum = 0xcbf29ce484222325;
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (; nbytes >= 8; nbytes -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    sum = (sum ^ word) * kPrime;
    sum ^= sum >> 32;
  }
  for (; nbytes > 0; --nbytes) sum = (sum ^ *bytes++) * kPrime;
  return sum;
}

size_t gasnett_count0s(const void* src, size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(src);
  size_t zeros = 0;
  for (; bytes >= 8; bytes -= 8, from += 8) {
    uint64_t word;
    std::memcpy(&word, from, 8);
    zeros += static_cast<size_t>(gasnett_count0s_uint64_t(word));
  }
  for (; bytes > 0; --bytes) zeros += *from++ == 0;
  return zeros;
}

size_t gasnett_count0s_copy(void* dst, const void* src, size_t bytes) {
  if (bytes != 0) std::memcpy(dst, src, bytes);
  return gasnett_count0s(dst, bytes);
}
