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

#if defined(__x86_64__)
#define LINTEL_GUARDED_WORD_COPY 1
// The same for 8 bytes, in the code of the caller. The section lists the two instructions and where
// a thread continues that faults there.
[[nodiscard, gnu::always_inline]] inline bool guarded_word_copy(void* destination,
                                                                const void* source) noexcept {
  uint64_t word;
  asm volatile goto(
      "1: movq (%[source]), %[word]\n"
      "2: movq %[word], (%[destination])\n"
      ".pushsection lintel_word_copies, \"a?\"\n"
      ".balign 4\n"
      ".long 1b - ., %l[failed] - .\n"
      ".long 2b - ., %l[failed] - .\n"
      ".popsection"
      : [word] "=&r"(word)
      : [source] "r"(source), [destination] "r"(destination)
      : "memory"
      : failed);
  return true;
failed:
  return false;
}
#endif

// Called by the signal handler. Returns the address at which a thread continues that faulted at
// `instruction`; 0: the fault was not in a small copy.
[[nodiscard]] uintptr_t recovery_from_small_copy(uintptr_t instruction) noexcept;

}  // namespace lintel

#endif
