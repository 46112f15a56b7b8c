// A guarded copy of a few bytes without a recovery point. If one of its instructions faults, the
// handler of guarded_memory.h continues where it returns false. Most payloads are that small.
// Message path.
#pragma once

#include <cstddef>
#include <cstdint>

// The sanitizers are to see every access.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LINTEL_GUARDED_SMALL_COPY 1

namespace lintel {

inline constexpr size_t largest_small_copy = 96;

// 1 to largest_small_copy bytes. All are read before the first is written.
extern "C" [[nodiscard, gnu::visibility("default")]] bool lintel_guarded_small_copy(
    void* destination, const void* source, size_t bytes) noexcept;

// Called by the signal handler. Returns the address at which a thread continues that faulted at
// `instruction`; 0: the fault was not in a small copy.
[[nodiscard]] uintptr_t recovery_from_small_copy(uintptr_t instruction) noexcept;

}  // namespace lintel

#endif
