// Writes lines about the library's state to a descriptor, for debuggers: the process may be stopped
// anywhere. Takes no lock and allocates nothing.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace lintel {

class StateWriter {
 public:
  explicit StateWriter(int descriptor) noexcept : descriptor_(descriptor) {}

  // Writes a line. The format contains no line end. Longer lines are cut.
  [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) noexcept {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    const int wanted = vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    if (wanted < 0) return;
    const auto length = std::min(static_cast<size_t>(wanted), sizeof text - 2);
    text[length] = '\n';
    if (write(descriptor_, text, length + 1) < 0) return;  // no error can be reported
  }

 private:
  int descriptor_;
};

}  // namespace lintel
