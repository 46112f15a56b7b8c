// Size of the system's pages: 4 KiB on x86-64; 4, 16 or 64 KiB on Arm, as its kernel was built.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace lintel {

#if defined(__x86_64__)
inline constexpr size_t largest_page_bytes = 4096;
#else
inline constexpr size_t largest_page_bytes = 65536;
#endif

[[nodiscard]] inline size_t system_page_bytes() noexcept {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Start of the page in which `address` lies.
[[nodiscard]] inline uintptr_t page_start(uintptr_t address) noexcept {
  return address & ~uintptr_t{system_page_bytes() - 1};
}

}  // namespace lintel
