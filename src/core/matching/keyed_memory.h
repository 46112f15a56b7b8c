// Source of memory for the tables of the match and unexpected indexes.
// Connection path: called when a table is created or grows, never per message.
#pragma once

#include <cstddef>

namespace lintel {

// Replaceable as a pair, so that tests can count the requests and refuse them.
struct KeyedMemory {
  // Zeroed memory, aligned to a cache line and touched only where it is written; null when there
  // is none. Large requests are reservations of address space.
  void* (*acquire)(size_t bytes) noexcept;
  // `bytes` as requested.
  void (*release)(void* memory, size_t bytes) noexcept;
};

extern constinit KeyedMemory keyed_memory;

}  // namespace lintel
