// Formatting and writing of log lines. Set-up and fault paths only: makes system calls.
#include "util/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>

#include "util/without_cancellation.h"

namespace lintel {

namespace log_detail {
std::atomic<LogLevel> threshold{LogLevel::warn};
}

namespace {

bool standard_error_is_open() noexcept { return fcntl(STDERR_FILENO, F_GETFD) >= 0; }
std::atomic<bool> has_standard_error{standard_error_is_open()};

constexpr const char* level_names[] = {"error", "warn", "info", "debug", "trace"};
static_assert(std::size(level_names) == static_cast<size_t>(LogLevel::trace) + 1);

// Never freed: another thread may be writing a line. So one is made for each name, not for each
// PtlInit, and all stay reachable for leak checkers.
struct Speaker {
  char host[64];
  char rank[32];
  const Speaker* previous;
};
std::atomic<const Speaker*> speaker{nullptr};
std::atomic<LogListener> listener{nullptr};

void write_line(LogLevel level, const char* format, va_list arguments) noexcept {
  const int saved_errno = errno;
  const WithoutCancellation scope;
  char line[1024];
  constexpr size_t usable = sizeof line - 1;  // the newline takes the last byte

  size_t length =
      static_cast<size_t>(std::snprintf(line, usable, "lintel[%s] %s: ", log_speaker().text,
                                        level_names[static_cast<size_t>(level)]));
  const char* const without_head = line + length;
  const int text = std::vsnprintf(line + length, usable - length, format, arguments);
  if (text >= 0 && length + static_cast<size_t>(text) < usable) {
    length += static_cast<size_t>(text);
  } else if (text >= 0) {
    length = usable - 1;
    std::memcpy(line + length - 3, "...", 3);
  }
  std::replace_if(
      line, line + length, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  line[length] = '\0';
  const LogListener listens = listener.load(std::memory_order_acquire);
  if (listens == nullptr || listens(level, without_head)) {
    line[length++] = '\n';
    write_to_standard_error(line, length);
  }
  errno = saved_errno;
}

}  // namespace

void find_standard_error() noexcept {
  has_standard_error.store(standard_error_is_open(), std::memory_order_relaxed);
}

// Failures are ignored: it is full, or was closed later.
void write_to_standard_error(const char* text, size_t length) noexcept {
  if (!has_standard_error.load(std::memory_order_relaxed)) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, length);
}

void set_log_level(LogLevel level) noexcept {
  log_detail::threshold.store(level, std::memory_order_relaxed);
}

void set_log_listener(LogListener listens) noexcept {
  listener.store(listens, std::memory_order_release);
}

void set_log_speaker(const char* host, const char* rank) noexcept {
  Speaker named;
  std::snprintf(named.host, sizeof named.host, "%s:", host);
  std::snprintf(named.rank, sizeof named.rank, "%s%s", *rank == '\0' ? "" : " rank ", rank);
  named.previous = speaker.load(std::memory_order_acquire);
  if (named.previous != nullptr && std::strcmp(named.host, named.previous->host) == 0 &&
      std::strcmp(named.rank, named.previous->rank) == 0)
    return;
  const auto* const kept = new (std::nothrow) Speaker(named);
  if (kept != nullptr) speaker.store(kept, std::memory_order_release);
}

SpeakerText log_speaker() noexcept {
  const Speaker* const known = speaker.load(std::memory_order_acquire);
  SpeakerText result;
  std::snprintf(result.text, sizeof result.text, "%s%ld%s", known == nullptr ? "" : known->host,
                static_cast<long>(getpid()), known == nullptr ? "" : known->rank);
  return result;
}

void log_message(LogLevel level, const char* format, ...) noexcept {
  if (!log_enabled(level)) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(level, format, arguments);
  va_end(arguments);
}

void log_once(std::atomic<bool>& said, LogLevel level, const char* format, ...) noexcept {
  if (!log_enabled(level) || said.exchange(true, std::memory_order_relaxed)) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(level, format, arguments);
  va_end(arguments);
}

}  // namespace lintel
