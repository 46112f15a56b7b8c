// Reads from the kernel what the application unmaps, moves and discards (userfaultfd).
//
// Memory is registered with the kernel for write protection and never protected. So no access to
// it, by whom ever, is ever held up, and all that comes are the events of the address space: a
// thread that changes watched memory sleeps in its system call until the event has been read.
// Connection path, but for changing().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "util/descriptor.h"

namespace lintel {

struct MemoryEvent {
  enum class Kind : uint8_t {
    unmapped,   // the memory was unmapped; other memory may be mapped there already
    discarded,  // the memory loses its contents when the event has been read (MADV_DONTNEED)
    moved,      // the memory is at `target` now, and still watched there
  };
  Kind kind;
  uint64_t begin;
  uint64_t end;
  uint64_t target;
};

class MemoryWatch {
 public:
  // False: the kernel does not offer it; `reason` says why and what helps.
  [[nodiscard]] bool open(std::string& reason);
  // Stops watching. May also be called in a forked child, whose descriptor is that of its parent.
  void close() noexcept { descriptor_.close(); }
  [[nodiscard]] bool active() const noexcept { return descriptor_.is_open(); }
  // Readable when there are events.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

  // Whole pages. False: the kernel cannot watch all of this (mappings of files; memory that
  // another part of the process watches); some of it may be watched now. Twice is as good as once.
  [[nodiscard]] bool add(uint64_t begin, uint64_t end) noexcept;
  void remove(uint64_t begin, uint64_t end) noexcept;
  // The sizes that memory may have to be a multiple of to be watched, ascending; the first is that
  // of pages.
  [[nodiscard]] std::span<const uint64_t> granules() const noexcept { return granules_; }

  // Takes what has happened, without waiting; returns the number of events. Allocates nothing.
  [[nodiscard]] unsigned read(std::span<MemoryEvent> events) noexcept;

  // A thread is changing watched memory: it may have happened, and its event was not read yet.
  // Message path, with one system call.
  [[nodiscard]] bool changing() const noexcept;

 private:
  // Shared memory of System V: the kernel does not report its detaching, as it does other
  // unmapping.
  [[nodiscard]] static bool detachable(uint64_t begin, uint64_t end) noexcept;

  Descriptor descriptor_;
  std::vector<uint64_t> granules_;
};

}  // namespace lintel
