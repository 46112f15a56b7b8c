/* environment.cc: looking variables up, with defaults and reports. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tools/environment.h"

#include <strings.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "tools/headers.h"
#include "tools/lock.h"
#include "tools/variables.h"

extern "C" char** environ;

namespace lintel::gasnet {
namespace {

// Values that were returned once are never freed: callers keep the pointers.
struct Environment {
  ProcessMutex mutex;
  // An empty pointer: gasnett_unsetenv has unset the variable.
  std::map<std::string, std::unique_ptr<std::string>> changed LINTEL_GASNET_GUARDED_BY(mutex);
  std::map<std::string, std::string> of_job LINTEL_GASNET_GUARDED_BY(mutex);
  bool has_job LINTEL_GASNET_GUARDED_BY(mutex) = false;
  std::atomic<bool> reports{true};
  std::set<std::string> reported LINTEL_GASNET_GUARDED_BY(mutex);
  std::set<std::unique_ptr<std::string>> replaced LINTEL_GASNET_GUARDED_BY(mutex);
};

Environment& environment() {
  // Never destroyed: exit handlers of the client may use it.
  static Environment& instance = *new Environment;
  return instance;
}

char* look_up(const char* key) {
  Environment& e = environment();
  const LockGuard lock(e.mutex);
  if (const auto found = e.changed.find(key); found != e.changed.end())
    return found->second ? found->second->data() : nullptr;
  if (!e.has_job) return std::getenv(key);
  const auto found = e.of_job.find(key);
  return found == e.of_job.end() ? nullptr : found->second.data();
}

void change(const char* key, std::unique_ptr<std::string> value) {
  Environment& e = environment();
  const LockGuard lock(e.mutex);
  auto& place = e.changed[key];
  if (place) e.replaced.insert(std::move(place));
  place = std::move(value);
}

bool verbose() {
  if (!environment().reports.load(std::memory_order_relaxed)) return false;
  const char* value = look_up("GASNET_VERBOSEENV");
  return value && *value && *value != '0' && *value != 'n' && *value != 'N';
}

void report(const char* key, const char* value, bool is_default) {
  if (!verbose()) return;
  const char* origin = "(default)";
  {
    Environment& e = environment();
    const LockGuard lock(e.mutex);
    if (!e.reported.insert(key).second) return;
    if (!is_default)
      origin = e.changed.count(key) != 0 ? "(program)" : e.has_job ? "(rank 0)" : "(environment)";
  }
  std::fprintf(stderr, "ENV parameter: %s = %s   %s\n", key, value, origin);
}

std::optional<double> parse_fraction(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text) return std::nullopt;
  if (*end == '/') {
    const char* denominator = end + 1;
    const double below = std::strtod(denominator, &end);
    if (end == denominator || below == 0) return std::nullopt;
    return *end ? std::nullopt : std::optional(value / below);
  }
  return *end ? std::nullopt : std::optional(value);
}

}  // namespace

std::string serialise_environment() {
  std::string text;
  for (char** entry = environ; entry && *entry; ++entry)
    text.append(*entry, std::strlen(*entry) + 1);
  return text;
}

void set_job_environment(const char* text, size_t bytes) {
  Environment& e = environment();
  const LockGuard lock(e.mutex);
  e.of_job.clear();
  for (const char* entry = text; entry < text + bytes; entry += std::strlen(entry) + 1)
    if (const char* equals = std::strchr(entry, '='))
      e.of_job.emplace(std::string(entry, equals), equals + 1);
  e.has_job = true;
}

void set_environment_reports(bool enabled) {
  environment().reports.store(enabled, std::memory_order_relaxed);
}

void report_other_variables() {
  if (!verbose()) return;
  std::set<std::string> known;
  for (const Variable& variable : kVariables) {
    known.insert(variable.name);
    const char* const value = look_up(variable.name);
    report(variable.name, value ? value : variable.default_value, !value);
  }
  Environment& e = environment();
  const LockGuard lock(e.mutex);
  for (const auto& [name, value] : e.of_job)
    if (name.rfind("GASNET_", 0) == 0 && known.count(name) == 0)
      std::fprintf(stderr, "ENV parameter: %s = %s   (rank 0; this library does not read it)\n",
                   name.c_str(), value.c_str());
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

char* gasnett_getenv(const char* key) { return look_up(key); }

void gasnett_setenv(const char* key, const char* val) {
  change(key, std::make_unique<std::string>(val));
  setenv(key, val, 1);
}

void gasnett_unsetenv(const char* key) {
  change(key, nullptr);
  unsetenv(key);
}

int gasnett_verboseenv() { return verbose() ? 1 : 0; }

char* gasnett_getenv_withdefault(const char* key, const char* dflt) {
  char* value = look_up(key);
  const bool is_default = !value;
  if (is_default) value = const_cast<char*>(dflt);
  report(key, !value ? "*not set*" : *value ? value : "*empty*", is_default);
  return value;
}

int gasnett_getenv_yesno_withdefault(const char* key, int dflt) {
  const char* value = look_up(key);
  int result = dflt;
  if (value && *value) {
    if (!std::strcmp(value, "1") || !strcasecmp(value, "y") || !strcasecmp(value, "yes")) {
      result = 1;
    } else if (!std::strcmp(value, "0") || !strcasecmp(value, "n") || !strcasecmp(value, "no")) {
      result = 0;
    } else {
      gasnett_fatalerror_nopos("%s=%s: give 1, y, yes, 0, n or no", key, value);
    }
  }
  report(key, result ? "YES" : "NO", !value || !*value);
  return result;
}

int64_t gasnett_getenv_int_withdefault(const char* key, int64_t dflt, uint64_t mem_mult) {
  const char* value = look_up(key);
  const bool is_default = !value || !*value;
  const int64_t result = is_default ? dflt : gasnett_parse_int(value, mem_mult);
  gasnett_envint_display(key, result, is_default, mem_mult != 0);
  return result;
}

double gasnett_getenv_dbl_withdefault(const char* key, double dflt) {
  const char* value = look_up(key);
  const bool is_default = !value || !*value;
  double result = dflt;
  if (!is_default) {
    const auto parsed = parse_fraction(value);
    if (!parsed)
      gasnett_fatalerror_nopos("%s=%s: give a number or a fraction such as 3/8", key, value);
    result = *parsed;
  }
  gasnett_envdbl_display(key, result, is_default);
  return result;
}

void gasnett_envint_display(const char* key, int64_t val, int is_dflt, int is_mem_size) {
  char text[64];
  report(key, gasnett_format_number(val, text, sizeof text, is_mem_size), is_dflt != 0);
}

void gasnett_envstr_display(const char* key, const char* val, int is_dflt) {
  report(key, val ? val : "*not set*", is_dflt != 0);
}

void gasnett_envdbl_display(const char* key, double val, int is_dflt) {
  char text[64];
  std::snprintf(text, sizeof text, "%g", val);
  report(key, text, is_dflt != 0);
}
