// Memory for the match and unexpected indexes: small tables from the heap, large ones as
// reservations that cost only the pages which are written.
// Connection path.
#include "core/matching/keyed_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace lintel {
namespace {

constexpr size_t reservation_bytes = size_t{1} << 18;
constexpr size_t line_bytes = 64;

void* acquire(size_t bytes) noexcept {
  if (bytes >= reservation_bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  const size_t rounded = (bytes + line_bytes - 1) / line_bytes * line_bytes;
  void* const memory = std::aligned_alloc(line_bytes, rounded);
  return memory == nullptr ? nullptr : std::memset(memory, 0, rounded);
}

void release(void* memory, size_t bytes) noexcept {
  if (bytes >= reservation_bytes)
    munmap(memory, bytes);
  else
    std::free(memory);
}

}  // namespace

constinit KeyedMemory keyed_memory{acquire, release};

}  // namespace lintel
