#include "util/foreign_fault.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "util/log.h"

namespace lintel {

namespace {

// printf() is not async-signal-safe.
class Line {
 public:
  void add(const char* text) noexcept {
    for (; *text != '\0'; ++text) add(*text);
  }
  void add(char character) noexcept {
    if (length_ < sizeof text_) text_[length_++] = character;
  }
  void add_number(uint64_t value, unsigned base) noexcept {
    char digits[20];
    unsigned count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count != 0) add(digits[--count]);
  }
  void add_address(uintptr_t value) noexcept {
    add("0x");
    add_number(value, 16);
  }
  void write_out() const noexcept { write_to_standard_error(text_, length_); }

 private:
  char text_[256];
  size_t length_ = 0;
};

}  // namespace

void write_foreign_fault(const ForeignFault& fault) noexcept {
  const int saved_errno = errno;
  Line line;
  line.add("lintel[");
  line.add_number(static_cast<uint64_t>(getpid()), 10);
  line.add("] error: ");
  line.add(fault.signal);
  line.add(": the program touched ");
  line.add_address(fault.address);
  if (fault.instruction != 0) {
    line.add(" by the instruction at ");
    line.add_address(fault.instruction);
  }
  line.add(fault.ends_process
               ? ", outside the copies that this library guards; the signal ends the process"
               : ", outside the copies that this library guards; passed on to the handler before");
  line.add('\n');
  line.write_out();
  errno = saved_errno;
}

}  // namespace lintel
