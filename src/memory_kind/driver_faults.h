// The log lines of failed calls of drivers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel {

// Writes that `function` of the driver failed with this error, unless it did so within the last
// seconds. `bytes`: length that it was called for, or 0.
void say_driver_fault(uint8_t kind, const char* driver, int error, const char* function,
                      size_t bytes, const char* text) noexcept;

}  // namespace lintel
