/* trace.cc: trace and statistics files, their categories, the source line. Set-up path; lines are
 * written on the path of the call that they trace.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "trace/trace.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "job/job.h"
#include "job/rank_list.h"
#include "job/thread.h"
#include "tools/categories.h"
#include "tools/descriptors.h"
#include "tools/lock.h"

unsigned int gasneti_trace_categories = 0;
unsigned int gasneti_stats_categories = 0;
unsigned int gasneti_transfer_categories = 0;

namespace lintel::gasnet {
namespace {

constexpr const char* kAllLetters = "GPRSWBLAXIODCNHU";
constexpr unsigned int kOfTransfers =
    GASNETI_CATEGORY_BIT('P') | GASNETI_CATEGORY_BIT('G') | GASNETI_CATEGORY_BIT('O');

/* The source line that GASNETT_TRACE_SETSOURCELINE has set in this thread. */
struct SourceLine {
  const char* file = "";
  unsigned int line = 0;
  int frozen = 0;
};
SourceLine& source_line() {
  static LINTEL_GASNET_PER_THREAD SourceLine line;
  return line;
}

/** One of the two files. */
class Log {
 public:
  explicit Log(unsigned int& categories) : categories_(categories) {}

  void open(const char* file_key, const char* mask_key, const char* nodes_key) {
    const char* name = gasnett_getenv_withdefault(file_key, nullptr);
    const char* letters = gasnett_getenv_withdefault(mask_key, kAllLetters);
    const char* nodes = gasnett_getenv_withdefault(nodes_key, "*");
    const bool is_wanted = name && *name && lists_rank(nodes, job().rank());
    FILE* const file = is_wanted ? file_named(name) : nullptr;
    if (is_wanted && !file)
      gasnett_fatalerror_nopos("%s=%s: the file cannot be written", file_key, name);
    const LockGuard lock(mutex_);
    start_ = gasnett_ticks_now();
    file_ = file;
    if (file) choose(letters);
  }

  void set_mask(const char* letters) {
    const LockGuard lock(mutex_);
    choose(letters);
  }
  /** Valid for ever. */
  const char* mask() {
    const LockGuard lock(mutex_);
    return file_ ? mask_->c_str() : "";
  }

  void print(char category, const char* format, va_list arguments) {
    char text[4096];
    std::vsnprintf(text, sizeof text, format, arguments);
    const gasnett_tick_t now = gasnett_ticks_now();
    const SourceLine& line = source_line();
    char place[256] = "";
    if (*line.file) std::snprintf(place, sizeof place, "[%s:%u] ", line.file, line.line);
    const LockGuard lock(mutex_);
    if (!file_) return;
    const double seconds = static_cast<double>(gasnett_ticks_to_ns(now - start_)) / 1e9;
    std::fprintf(file_, "%u %.9fs> %s(%c) %s", job().rank(), seconds, place, category, text);
    if (const size_t length = std::strlen(text); length == 0 || text[length - 1] != '\n')
      std::fputc('\n', file_);
    if (flushes_) std::fflush(file_);
  }

  void set_flushes(bool flushes) {
    const LockGuard lock(mutex_);
    flushes_ = flushes;
  }
  void close() {
    const LockGuard lock(mutex_);
    set_categories(0);
    if (file_) std::fflush(file_);
    if (file_ && file_ != stdout && file_ != stderr) std::fclose(file_);
    file_ = nullptr;
  }

 private:
  static FILE* file_named(std::string path) {
    if (path == "stdout") return stdout;
    if (path == "stderr" || path == "-") return stderr;
    if (const size_t place = path.find('%'); place != std::string::npos)
      path.replace(place, 1, std::to_string(job().rank()));
    return open_file(path.c_str(), "w");
  }
  void choose(const char* letters) LINTEL_GASNET_REQUIRES(mutex_) {
    std::string mask;
    const bool complement = *letters == '^';
    for (const char* letter = kAllLetters; *letter; ++letter)
      if ((std::strchr(letters, *letter) != nullptr) != complement) mask += *letter;
    if (mask.find('U') == std::string::npos) mask += 'U';  // it cannot be suppressed
    unsigned int bits = 0;
    for (const char letter : mask) bits |= GASNETI_CATEGORY_BIT(letter);
    mask_ = &*masks_.insert(std::move(mask)).first;
    set_categories(file_ ? bits : 0);
  }
  /** Other threads read the categories at the same time. */
  void set_categories(unsigned int bits) {
    __atomic_store_n(&categories_, bits, __ATOMIC_RELAXED);
    const unsigned int of_both = __atomic_load_n(&gasneti_trace_categories, __ATOMIC_RELAXED) |
                                 __atomic_load_n(&gasneti_stats_categories, __ATOMIC_RELAXED);
    __atomic_store_n(&gasneti_transfer_categories, of_both & kOfTransfers, __ATOMIC_RELAXED);
  }

  unsigned int& categories_;
  ProcessMutex mutex_;
  FILE* file_ LINTEL_GASNET_GUARDED_BY(mutex_) = nullptr;
  /* All that were chosen, since callers keep the pointers. */
  std::set<std::string> masks_ LINTEL_GASNET_GUARDED_BY(mutex_);
  const std::string* mask_ LINTEL_GASNET_GUARDED_BY(mutex_) = nullptr;
  bool flushes_ LINTEL_GASNET_GUARDED_BY(mutex_) = false;
  gasnett_tick_t start_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
};

Log& trace() {
  static Log& instance = *new Log(gasneti_trace_categories);
  return instance;
}
Log& statistics() {
  static Log& instance = *new Log(gasneti_stats_categories);
  return instance;
}

using StatisticsCallback = void (*)(void (*print)(const char* format, ...));
std::vector<StatisticsCallback>& callbacks() {
  static auto& instance = *new std::vector<StatisticsCallback>;
  return instance;
}

void print_statistics_line(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  statistics().print('H', format, arguments);
  va_end(arguments);
}

/* Counts by category since the last dump that set them to zero. */
std::atomic<unsigned long long> g_counts['Z' - 'A' + 1];

int g_traces_local = 1;

}  // namespace

bool is_traced(gex_Rank_t jobrank) {
  return jobrank != job().rank() || __atomic_load_n(&g_traces_local, __ATOMIC_RELAXED) != 0;
}

void count_for_statistics(char category) {
  g_counts[category - 'A'].fetch_add(1, std::memory_order_relaxed);
}

void open_trace_files() {
  trace().open("GASNET_TRACEFILE", "GASNET_TRACEMASK", "GASNET_TRACENODES");
  statistics().open("GASNET_STATSFILE", "GASNET_STATSMASK", "GASNET_STATSNODES");
  const bool flushes = gasnett_getenv_yesno_withdefault("GASNET_TRACEFLUSH", 0) != 0;
  trace().set_flushes(flushes);
  statistics().set_flushes(flushes);
  g_traces_local = gasnett_getenv_yesno_withdefault("GASNET_TRACELOCAL", 1);
  LINTEL_GASNET_TRACE('I', "rank %u of %u, %s", job().rank(), job().size(), GASNET_CONFIG_STRING);
}

void close_trace_files() {
  gasneti_stats_dump(0);
  trace().close();
  statistics().close();
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

void gasneti_trace_printf(char category, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  trace().print(category, format, arguments);
  va_end(arguments);
}
void gasneti_stats_printf(char category, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  statistics().print(category, format, arguments);
  va_end(arguments);
}
const char* gasneti_trace_get_mask() { return trace().mask(); }
const char* gasneti_stats_get_mask() { return statistics().mask(); }
void gasneti_trace_set_mask(const char* letters) { trace().set_mask(letters); }
void gasneti_stats_set_mask(const char* letters) { statistics().set_mask(letters); }
int gasneti_trace_get_local() { return g_traces_local; }
void gasneti_trace_set_local(int enabled) {
  __atomic_store_n(&g_traces_local, enabled, __ATOMIC_RELAXED);
}

void gasneti_trace_set_source_line(const char* file, unsigned int line) {
  SourceLine& s = source_line();
  if (s.frozen > 0) return;
  s.file = file;
  s.line = line;
}
void gasneti_trace_get_source_line(const char** file, unsigned int* line) {
  *file = source_line().file;
  *line = source_line().line;
}
void gasneti_trace_freeze_source_line() { ++source_line().frozen; }
void gasneti_trace_unfreeze_source_line() { --source_line().frozen; }

int gasneti_stats_init(void (*callback)(void (*print)(const char* format, ...))) {
  callbacks().push_back(callback);
  return gasneti_stats_categories != 0;
}

void gasneti_stats_dump(int reset) {
  if (gasneti_stats_categories == 0) return;
  for (const char* letter = kAllLetters; *letter; ++letter) {
    std::atomic<unsigned long long>& count = g_counts[*letter - 'A'];
    if (const unsigned long long calls = count.load(std::memory_order_relaxed); calls != 0)
      gasneti_stats_printf(*letter, "%llu %s", calls, name_of_category(*letter));
    if (reset) count.store(0, std::memory_order_relaxed);
  }
  for (const StatisticsCallback callback : callbacks()) callback(print_statistics_line);
}
