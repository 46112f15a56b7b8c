// Test patterns, guard pages and random scatter lists. Set-up path.
#include "support/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

namespace lintel::test {

void fill(std::span<std::byte> memory, uint32_t seed, std::size_t first) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = pattern_at(seed, first + i);
}

void expect_pattern(std::span<const std::byte> memory, uint32_t seed, std::size_t first,
                    Place place) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] == pattern_at(seed, first + i)) continue;
    ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line()))
        << "byte " << i << " of " << memory.size() << " is " << static_cast<int>(memory[i])
        << " instead of " << static_cast<int>(pattern_at(seed, first + i));
    return;
  }
}

void expect_bytes(std::span<const std::byte> memory, std::byte value, Place place) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] == value) continue;
    ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line()))
        << "byte " << i << " of " << memory.size() << " is " << static_cast<int>(memory[i])
        << " instead of " << static_cast<int>(value);
    return;
  }
}

GuardedPages::GuardedPages(std::size_t pages) : pages_(pages) {
  void* mapping = mmap(nullptr, mapped_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::runtime_error("cannot map guarded pages");
  mapping_ = static_cast<std::byte*>(mapping);
  if (mprotect(mapping_ + page_bytes, pages * page_bytes, PROT_READ | PROT_WRITE) != 0)
    throw std::runtime_error("cannot make guarded pages accessible");
}

GuardedPages::~GuardedPages() { munmap(mapping_, mapped_bytes()); }

std::span<std::byte> GuardedPages::accessible() const noexcept {
  return {mapping_ + page_bytes, pages_ * page_bytes};
}

std::byte* GuardedPages::end() const noexcept { return mapping_ + (pages_ + 1) * page_bytes; }

Scatter random_scatter(std::mt19937& random, std::span<std::byte> memory, std::size_t pieces,
                       std::size_t longest_piece) {
  Scatter scatter;
  std::size_t position = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t gap = random() % 5;
    std::size_t length = random() % 4 == 0 ? 0 : random() % (longest_piece + 1);
    position = std::min(position + gap, memory.size());
    length = std::min(length, memory.size() - position);
    scatter.pieces.push_back({memory.data() + position, length});
    position += length;
  }
  std::shuffle(scatter.pieces.begin(), scatter.pieces.end(), random);
  for (const ptl_iovec_t& piece : scatter.pieces) {
    const auto start =
        static_cast<std::size_t>(static_cast<std::byte*>(piece.iov_base) - memory.data());
    for (std::size_t i = 0; i < piece.iov_len; ++i) scatter.positions.push_back(start + i);
  }
  return scatter;
}

}  // namespace lintel::test
