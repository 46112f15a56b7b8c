// Assertions about the library's own state: counts, lists and states kept by hand. Never about what
// arrives from outside or what a caller passes; that is checked and refused. Built in where
// LINTEL_ASSERTIONS is set (CMake option: presets checked, clang, asan, tsan and fuzz), else
// without cost.
#pragma once

#ifdef LINTEL_ASSERTIONS

namespace lintel {

// Writes the condition and its place as an error, then aborts. Any thread; allocates nothing.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept
    __attribute__((visibility("default")));

}  // namespace lintel

#define LINTEL_ASSERT(condition)                     \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::lintel::assertion_failed(#condition, __FILE__, __LINE__))

#else

// The condition is compiled and never evaluated.
#define LINTEL_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))

#endif
