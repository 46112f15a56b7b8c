// Messages of the library: one line each on standard error, from the level that PTL_LOG_LEVEL
// chooses. log_enabled() is cheap enough for the message path; log_message() writes and is not.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)

namespace lintel {

// Levels in the order of the words of PTL_LOG_LEVEL. A level includes those before it.
enum class LogLevel : uint8_t {
  error,  // a request of the caller cannot be fulfilled
  warn,   // the library works, but not as configured or not as well as it could
  info,   // choices and their reasons: interfaces, transports, limits
  debug,  // connections, lists, unusual paths
  trace,  // single messages
};

namespace log_detail {
extern std::atomic<LogLevel> threshold;
}

void set_log_level(LogLevel level) noexcept;

// Checks standard error. If it is closed, nothing is written from then on, because the program may
// open a file with its number. Called when the library is loaded, and by PtlInit.
void find_standard_error() noexcept;
// Writes text unchanged, at any level.
void write_to_standard_error(const char* text, size_t length) noexcept;

// Sets the name of the process in front of each further line: "node7:1234 rank 3". Set-up path, one
// thread. PtlInit sets the host and, where a launcher gives it, the rank.
void set_log_speaker(const char* host, const char* rank) noexcept;
// The name of the process in log lines.
struct SpeakerText {
  char text[128];
};
[[nodiscard]] SpeakerText log_speaker() noexcept;

[[nodiscard]] inline bool log_enabled(LogLevel level) noexcept {
  return level <= log_detail::threshold.load(std::memory_order_relaxed);
}

// Writes "lintel[host:pid rank] level: text" with one write(), so that lines of several threads and
// processes do not mix. Nothing happens below the chosen level. Any thread; errno is kept. Control
// characters become '?' and long lines end in "...", since text may come from the environment or
// from a peer.
void log_message(LogLevel level, const char* format, ...) noexcept
    __attribute__((format(printf, 2, 3)));

// The same, but only the first time for this flag: for faults that repeat. The caller keeps the
// flag, usually as a function-local static.
void log_once(std::atomic<bool>& said, LogLevel level, const char* format, ...) noexcept
    __attribute__((format(printf, 3, 4)));

// Called with the text of each line that is to be written, by the thread that writes it. False: the
// listener, a tool such as ptl_info, shows the line, and it is not written to standard error.
using LogListener = bool (*)(LogLevel level, const char* text) noexcept;
void set_log_listener(LogListener listener) noexcept;

// Faults that were written in the last ten seconds: one that repeats must not fill the log. Fault
// path; the caller's lock held.
class SaidRecently {
 public:
  static constexpr uint64_t again_ns = 10'000'000'000;

  // True: the fault named by `key` (not 0) is to be written. Of many at once some are not.
  [[nodiscard]] bool is_due(uint64_t key, uint64_t now_ns) noexcept {
    Entry* free = nullptr;
    for (Entry& entry : entries_) {
      const bool expired = entry.key == 0 || now_ns - entry.said_ns >= again_ns;
      if (entry.key == key && !expired) return false;
      if (expired && (free == nullptr || entry.key == key)) free = &entry;
    }
    if (free == nullptr) return false;
    *free = {key, now_ns};
    return true;
  }

 private:
  struct Entry {
    uint64_t key = 0;
    uint64_t said_ns = 0;
  };
  std::array<Entry, 64> entries_;
};

}  // namespace lintel

#pragma GCC visibility pop
