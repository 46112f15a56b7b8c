// Checks of the data of puts and gets. Message path with --verify, otherwise unused.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/verifier.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

// Eight bytes of the pattern. All bits depend on all of the arguments, so that data which is
// stale, shifted or someone else's is noticed.
std::uint64_t pattern_word(unsigned sender, std::uint64_t number, std::uint64_t word) {
  std::uint64_t x = word + number * 0x9e3779b97f4a7c15u + (sender + 1) * 0xd1b54a32d192ed03u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void fill(const Region& region, std::uint64_t slot, unsigned sender, std::uint64_t number,
          std::uint64_t flip) {
  std::byte* at = region.view(slot);
  std::uint64_t left = region.size_bytes();
  for (std::uint64_t word = 0; left > 0; ++word) {
    const std::uint64_t value = pattern_word(sender, number, word) ^ flip;
    const std::uint64_t step = std::min<std::uint64_t>(left, sizeof value);
    std::memcpy(at, &value, step);
    at += step;
    left -= step;
  }
  region.write_back(slot);
}

[[noreturn]] void throw_wrong_byte(const std::string& what, std::uint64_t number,
                                   std::uint64_t position, unsigned found, unsigned expected,
                                   bool untouched) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), ": byte %llu of message %llu is 0x%02x, not 0x%02x%s",
                static_cast<unsigned long long>(position), static_cast<unsigned long long>(number),
                found, expected, untouched ? " (never written)" : "");
  throw Failure(ExitCode::wrong_data, "wrong data in " + what + text.data());
}

}  // namespace

void fill_pattern(const Region& region, std::uint64_t slot, unsigned sender, std::uint64_t number) {
  fill(region, slot, sender, number, 0);
}

void spoil_pattern(const Region& region, std::uint64_t slot, unsigned sender,
                   std::uint64_t number) {
  fill(region, slot, sender, number, ~std::uint64_t{0});
}

void check_pattern(const Region& region, std::uint64_t slot, unsigned sender, std::uint64_t number,
                   const std::string& what) {
  const std::byte* at = region.view(slot);
  const std::uint64_t size = region.size_bytes();
  for (std::uint64_t position = 0; position < size; position += sizeof(std::uint64_t)) {
    const std::uint64_t value = pattern_word(sender, number, position / sizeof(std::uint64_t));
    const std::uint64_t step = std::min<std::uint64_t>(size - position, sizeof value);
    if (std::memcmp(at + position, &value, step) == 0) continue;
    std::array<std::byte, sizeof value> expected;
    std::memcpy(expected.data(), &value, sizeof value);
    std::uint64_t wrong = 0;
    while (at[position + wrong] == expected[wrong]) ++wrong;
    throw_wrong_byte(
        what, number, position + wrong, std::to_integer<unsigned>(at[position + wrong]),
        std::to_integer<unsigned>(expected[wrong]), at[position + wrong] == ~expected[wrong]);
  }
  check_guard(region, slot, what);
}

void check_guard(const Region& region, std::uint64_t slot, const std::string& what) {
  if (!region.guard_intact(slot)) {
    throw Failure(ExitCode::wrong_data,
                  "wrong data in " + what + ": bytes behind the end of the message were written");
  }
}

PutVerifier::PutVerifier(const Region& sent, const Region& received, unsigned rank, unsigned peer)
    : sent_(sent), received_(received), rank_(rank), peer_(peer) {
  for (std::uint64_t slot = 0; slot < received_.slots(); ++slot) {
    spoil_pattern(received_, slot, peer_, slot);
  }
}

void PutVerifier::prepare(std::uint64_t number) { fill_pattern(sent_, number, rank_, number); }

void PutVerifier::inspect_arrivals(std::uint64_t first, std::uint64_t count) {
  // Of several operations to the same slot the last one is there.
  const std::uint64_t seen = std::min(count, received_.slots());
  for (std::uint64_t number = first + count - seen; number < first + count; ++number) {
    check_pattern(received_, number, peer_, number, "a put");
    spoil_pattern(received_, number, peer_, number + received_.slots());
  }
}

GetVerifier::GetVerifier(const Region& served, const Region& fetched, unsigned rank, unsigned peer)
    : served_(served), fetched_(fetched), rank_(rank), peer_(peer) {
  for (std::uint64_t slot = 0; slot < served_.slots(); ++slot) {
    fill_pattern(served_, slot, rank_, slot);
  }
}

void GetVerifier::prepare(std::uint64_t number) {
  spoil_pattern(fetched_, number, peer_, number % fetched_.slots());
}

void GetVerifier::inspect_reply(std::uint64_t number) {
  check_pattern(fetched_, number, peer_, number % fetched_.slots(), "a get");
}

void GetVerifier::inspect_arrivals(std::uint64_t first, std::uint64_t count) {
  // Being read must not change anything.
  const std::uint64_t seen = std::min(count, served_.slots());
  for (std::uint64_t number = first; number < first + seen; ++number) {
    check_pattern(served_, number, rank_, number % served_.slots(), "memory read by a get");
  }
}

}  // namespace lintel::perf
