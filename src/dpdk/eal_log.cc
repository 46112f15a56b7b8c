// A stream that is a function. Set-up path.
#include "dpdk/eal_log.h"

#include <rte_log.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "dpdk/eal.h"

namespace lintel {

namespace {

std::mutex mutex;
std::string complaint;
std::atomic<int> quiet{0};

ssize_t write_lines(void*, const char* text, size_t bytes) {
  std::string_view rest(text, bytes);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    const int level = rte_log_cur_msg_loglevel();
    const bool is_complaint = level <= static_cast<int>(RTE_LOG_ERR);
    if (is_complaint) {
      const std::lock_guard guard(mutex);
      // Of what is tried the first complaint says most.
      if (quiet.load(std::memory_order_relaxed) == 0 || complaint.empty()) complaint = line;
    }
    const bool shown = is_complaint && quiet.load(std::memory_order_relaxed) == 0;
    log_message(shown ? LogLevel::info : LogLevel::debug, "dpdk: %.*s",
                static_cast<int>(line.size()), line.data());
  }
  return static_cast<ssize_t>(bytes);
}

}  // namespace

void redirect_eal_log() noexcept {
  cookie_io_functions_t functions{};
  functions.write = write_lines;
  FILE* const stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
  rte_openlog_stream(stream);
  rte_log_set_global_level(log_enabled(LogLevel::trace)   ? RTE_LOG_DEBUG
                           : log_enabled(LogLevel::debug) ? RTE_LOG_INFO
                                                          : RTE_LOG_ERR);
}

std::string last_eal_complaint() {
  const std::lock_guard guard(mutex);
  return complaint;
}

QuietEalLog::QuietEalLog() noexcept {
  if (quiet.fetch_add(1, std::memory_order_relaxed) != 0) return;
  const std::lock_guard guard(mutex);
  complaint.clear();
}
QuietEalLog::~QuietEalLog() { quiet.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace lintel
