// The line about a fault that this library passes on. Signal handlers: only what is
// async-signal-safe.
#pragma once

#include <cstdint>

namespace lintel {

struct ForeignFault {
  const char* signal;     // "SIGSEGV"
  uintptr_t address;      // accessed address; 0 also where the processor does not report it
  uintptr_t instruction;  // address of the instruction that accessed it; 0: unknown
  bool ends_process;      // no handler of the program takes it
};

// Writes one line to standard error. Keeps errno.
void write_foreign_fault(const ForeignFault& fault) noexcept;

}  // namespace lintel
