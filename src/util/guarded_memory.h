// Touching application memory that may not be there (spec 3.10, 3.11, 3.12: PTL_NI_SEGV).
// Message path: a guarded access costs a few stores; only a fault takes the long way.
//
// A guarded access runs under a recovery point; the handler for SIGSEGV and SIGBUS that
// install_fault_handler() sets up returns to it. Faults elsewhere go to the handler that was there
// before. If the application replaces the handler afterwards, bad accesses end it, which the
// specification allows.
#pragma once

#include <cstddef>

#include "util/guarded_small_copy.h"

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

// Set-up path; idempotent, thread-safe. PTL_SEGV_HANDLER=0 leaves the signals alone.
void install_fault_handler() noexcept;

// guarded_copy() of up to this many bytes reads all of them before it writes: the two ranges may
// overlap. 0: it makes no such promise.
#ifdef LINTEL_GUARDED_SMALL_COPY
inline constexpr size_t largest_overlapping_copy = largest_small_copy;
#else
inline constexpr size_t largest_overlapping_copy = 0;
#endif

namespace guarded_detail {
[[nodiscard]] bool copy_under_recovery_point(void* destination, const void* source,
                                             size_t bytes) noexcept;
}  // namespace guarded_detail

// memcpy that reports instead of crashing. False: some byte of either range is not accessible, and
// part of the destination may have been written.
[[nodiscard]] inline bool guarded_copy(void* destination, const void* source,
                                       size_t bytes) noexcept {
  if (bytes == 0) return true;
#ifdef LINTEL_GUARDED_SMALL_COPY
  if (bytes <= largest_small_copy) [[likely]]
    return lintel_guarded_small_copy(destination, source, bytes);
#endif
  return guarded_detail::copy_under_recovery_point(destination, source, bytes);
}

// The same as straight code for 8 bytes. Only in the library itself: its handler knows these
// places.
[[nodiscard, gnu::always_inline]] inline bool guarded_copy_straight(void* destination,
                                                                    const void* source,
                                                                    size_t bytes) noexcept {
#ifdef LINTEL_GUARDED_WORD_COPY
  if (bytes == 8) [[likely]]
    return guarded_word_copy(destination, source);
#endif
  return guarded_copy(destination, source, bytes);
}

// Whether a range can be read now.
[[nodiscard]] bool is_readable(const void* start, size_t bytes) noexcept;

// Runs action(argument) under a recovery point. False: it touched inaccessible memory and was
// abandoned there; it must hold no lock and own nothing meanwhile.
[[nodiscard]] bool guarded_call(void (*action)(void*), void* argument) noexcept;

}  // namespace lintel
#pragma GCC visibility pop
