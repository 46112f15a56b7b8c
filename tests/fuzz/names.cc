// Set-up path.
#include "fuzz/names.h"

#include <algorithm>
#include <cstdio>

#include "support/text.h"

namespace lintel::fuzz {

namespace {

std::string text(uint64_t number) { return std::to_string(number); }

std::string name_of(const Program& program, const Element& element) {
  if (element.action == Action::send) {
    const Message& m = program.messages[element.id];
    static constexpr const char* kinds[] = {"put", "get", "atomic", "fetch-atomic", "swap"};
    return "message " + text(m.id) + " (" + kinds[static_cast<int>(m.kind)] + " of " +
           text(m.length) + " at " + text(m.remote_offset) + ", tag " + text(m.tag) +
           ", endpoint " + std::to_string(m.endpoint) + " thread " + std::to_string(m.thread) +
           (m.triggered ? ", triggered" : "") + ")";
  }
  if (element.action == Action::disable) return "PtlPTDisable";
  if (element.action == Action::enable) return "PtlPTEnable";
  const Entry& e = program.entries[element.id];
  const char* what = element.action == Action::append   ? "append of"
                     : element.action == Action::unlink ? "unlink of"
                     : e.search == PTL_SEARCH_DELETE    ? "search and delete"
                                                        : "search";
  char options[16];
  std::snprintf(options, sizeof options, "%#x", e.options);
  return std::string(what) + " entry " + text(e.id) + " (" +
         (e.is_search                   ? "search"
          : e.list == PTL_OVERFLOW_LIST ? "overflow"
                                        : "priority") +
         ", " + text(e.memory.length()) + " bytes, options " + options + ", tag " + text(e.tag) +
         " ignoring " + text(e.ignored_tags) + ", min_free " + text(e.min_free) + ", counter " +
         std::to_string(e.counter) + ")";
}

}  // namespace

std::string describe(const PortalHistory& history, const Evidence& evidence,
                     const Element& element) {
  uint64_t origin_ns = never;
  for (const auto& sequence : history.sequences)
    for (const Element& each : sequence) origin_ns = std::min(origin_ns, each.begin_ns);
  const auto us = [&](uint64_t ns) { return ns == never ? "?" : text((ns - origin_ns) / 1000); };
  std::string result = name_of(*history.program, element) + " [" + us(element.begin_ns) + ".." +
                       us(element.end_ns) + " us";
  if (element.call != nullptr) {
    if (element.call->code != PTL_OK && element.call->code != CallSeen::unknown)
      result += ", " + test::return_code_name(element.call->code);
  } else {
    const MessageSeen& seen = history.messages[element.id];
    if (seen.ends != 0) result += ", " + test::fail_name(seen.end.ni_fail_type);
    if (const Taken* const arrival = evidence.arrival_of(element.id); arrival != nullptr)
      result += ", to entry " + text(user_number(arrival->event) - entry_user_base);
  }
  return result + "]";
}

}  // namespace lintel::fuzz
