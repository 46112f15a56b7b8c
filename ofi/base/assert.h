// Assertions about the state of the provider: counts and lists kept by hand. Built in where
// LINTEL_ASSERTIONS is set, as in the library, else without cost.
#pragma once

#ifdef LINTEL_ASSERTIONS

namespace lintel::ofi {

// Writes the condition and its place to standard error, then aborts. Any thread.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace lintel::ofi

#define OFI_ASSERT(condition)                        \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::lintel::ofi::assertion_failed(#condition, __FILE__, __LINE__))

#else

// The condition is compiled and never evaluated.
#define OFI_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))

#endif
