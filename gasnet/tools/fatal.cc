/* fatal.cc: messages of fatal errors, names of places in the source. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tools/fatal.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tools/headers.h"

namespace lintel::gasnet {
namespace {
const char* g_process_label = "";

[[noreturn]] void end_with_message(const char* place, const char* format, va_list arguments) {
  // The text, with a place of 512 bytes, fits write_message().
  char text[1400];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::fflush(stdout);
  std::fflush(stderr);
  write_message(STDERR_FILENO, "*** FATAL ERROR %s%s: %s\n", g_process_label, place, text);
  gasnett_freezeForDebuggerErr();
  gasnett_print_backtrace_ifenabled(STDERR_FILENO);
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}
}  // namespace

void write_message(int descriptor, const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length <= 0) return;
  [[maybe_unused]] const auto written =
      write(descriptor, text, std::min(static_cast<size_t>(length), sizeof text - 1));
}

void set_process_label(const char* text) { g_process_label = text; }
const char* process_label() { return g_process_label; }

}  // namespace lintel::gasnet

void gasneti_fatalerror(const char* function, const char* file, int line, const char* format, ...) {
  char place[512];
  std::snprintf(place, sizeof place, "in %s at %s:%d", function, file, line);
  va_list arguments;
  va_start(arguments, format);
  lintel::gasnet::end_with_message(place, format, arguments);
}

void gasnett_fatalerror_nopos(const char* fmt, ...) {
  va_list arguments;
  va_start(arguments, fmt);
  lintel::gasnet::end_with_message("", fmt, arguments);
}

void gasnett_killmyprocess(int code) { _exit(code); }

gasnett_sighandlerfn_t gasnett_reghandler(int sig, gasnett_sighandlerfn_t handler) {
  const gasnett_sighandlerfn_t previous = std::signal(sig, handler);
  if (previous == SIG_ERR)
    gasnett_fatalerror_nopos("no handler can be installed for signal %d", sig);
  return previous;
}

char* gasneti_format_location(const char* function, const char* file, int line) {
  const int length = std::snprintf(nullptr, 0, "%s at %s:%d", function, file, line) + 1;
  char* text = static_cast<char*>(std::malloc(static_cast<size_t>(length)));
  if (text) std::snprintf(text, static_cast<size_t>(length), "%s at %s:%d", function, file, line);
  return text;
}

void gasnett_flush_streams() {
  std::fflush(stdout);
  std::fflush(stderr);
}

void gasnett_close_streams() {
  std::fclose(stdin);
  std::fclose(stdout);
  std::fclose(stderr);
}
