#include <algorithm>
#include <cstdio>
#include <cstring>

#include "checker/explorer.h"
#include "program.h"

namespace lintel::model {
void use_sites(Sites& of);
void catch_faults();

namespace {

Sites sites;

struct Verdict {
  std::string error;
  std::string trace;
  uint64_t executions = 0;
  uint64_t buffered = 0;
  uint64_t blocked = 0;
  uint64_t cut = 0;
  double seconds = 0;
};

// Each execution is found once, in whatever order threads are tried.
bool is_counted_right(Scenario scenario, const Result& result) {
  std::reverse(scenario.threads.begin(), scenario.threads.end());
  Explorer explorer(sites);
  const Result other = explorer.run(scenario, true);
  return other.executions == result.executions &&
         (other.buffered == result.buffered || result.is_cut_short || other.is_cut_short);
}

Verdict explore(const Protocol& protocol, bool buffers_loads, bool tells) {
  Verdict verdict;
  for (const Scenario& scenario : protocol.scenarios) {
    Explorer explorer(sites);
    const Result result = explorer.run(scenario, buffers_loads);
    verdict.executions += result.executions;
    verdict.buffered += result.buffered;
    verdict.blocked += result.blocked;
    verdict.cut += result.cut;
    verdict.seconds += result.seconds;
    if (tells)
      std::printf(
          "  %-42s %6lu executions, %s%lu with load buffering, %lu incomplete, %lu cut, %.2f s\n",
          scenario.name.c_str(), static_cast<unsigned long>(result.executions),
          result.is_cut_short ? "at least " : "", static_cast<unsigned long>(result.buffered),
          static_cast<unsigned long>(result.blocked), static_cast<unsigned long>(result.cut),
          result.seconds);
    if (result.error.empty() && tells && !is_counted_right(scenario, result))
      verdict.error = "other executions with the threads in reverse order: " + scenario.name;
    if (result.error.empty()) continue;
    verdict.error = result.error + " (" + scenario.name + ")";
    verdict.trace = result.trace;
    break;
  }
  return verdict;
}

bool check(const Protocol& protocol, const char* shown) {
  sites.forget();
  std::printf("%s\n", protocol.name);
  const Verdict strong = explore(protocol, true, true);
  if (!strong.error.empty()) {
    std::printf("  WRONG: %s\n%s", strong.error.c_str(), strong.trace.c_str());
    return false;
  }
  sites.name_all();
  bool right = strong.executions != 0 && strong.cut == 0;
  if (!right) std::printf("  WRONG: executions are not complete\n");
  unsigned found = 0;
  const std::vector<Weakening> weakenings = sites.weakenings(protocol.files);
  double seconds = strong.seconds;
  for (const Weakening& weakening : weakenings) {
    sites.weaken(&weakening);
    // Most orders are noticed without load buffering, which takes long.
    Verdict weak = explore(protocol, false, false);
    const bool is_buffered = weak.error.empty();
    if (is_buffered) weak = explore(protocol, true, false);
    sites.weaken(nullptr);
    seconds += weak.seconds;
    const std::string text = sites.text(weakening);
    const bool noticed = !weak.error.empty();
    found += noticed ? 1 : 0;
    right &= noticed;
    std::printf("  %-75s %s%s\n", text.c_str(),
                !noticed      ? "WRONG: not noticed"
                : is_buffered ? "load buffering: "
                              : "",
                weak.error.c_str());
    if (shown != nullptr && text.find(shown) != std::string::npos)
      std::printf("%s", weak.trace.c_str());
  }
  std::printf("  %lu executions, %lu with load buffering, %zu weaker orders, %u noticed, %.2f s\n",
              static_cast<unsigned long>(strong.executions),
              static_cast<unsigned long>(strong.buffered), weakenings.size(), found, seconds);
  return right;
}

}  // namespace

void Litmus::check(const Scenario& scenario, const std::set<std::string>& outcomes,
                   const char* error) {
  sites.forget();
  Explorer explorer(sites);
  const Result result = explorer.run(scenario, true);
  const bool right =
      result.error == error &&
      (*error != '\0' || (result.outcomes == outcomes && is_counted_right(scenario, result)));
  std::string seen;
  for (const std::string& outcome : result.outcomes) seen += " " + outcome;
  std::printf("%-45s %6lu executions  %s%s%s\n", scenario.name.c_str(),
              static_cast<unsigned long>(result.executions),
              right ? "" : "WRONG: ", result.error.c_str(), *error != '\0' ? "" : seen.c_str());
  if (!right) std::printf("%s", result.trace.c_str());
  passed_ &= right;
}

namespace {

struct Row {
  const char* name;
  Protocol (*protocol)();
};
constexpr Row protocols[] = {
    {"spin_lock", spin_lock},
    {"doorbell", doorbell},
    {"wait_gate", wait_gate},
    {"poll_token", poll_token},
    {"lane_cells", lane_cells},
    {"lane_acks", lane_acks},
    {"event_queue", event_queue},
    {"counting_event", counting_event},
    {"arena", arena},
    {"send_queue", send_queue},
    {"rank_map", rank_map},
    {"connection_timers", connection_timers},
    {"descriptor_watch", descriptor_watch},
    {"joint_copy", joint_copy},
    {"awaited_puts", awaited_puts},
    {"operation_table", operation_table},
    {"peer_table", peer_table},
    {"gasnet_node_stage", gasnet_node_stage},
    {"gasnet_near_ring", gasnet_near_ring},
    {"gasnet_barrier", gasnet_barrier},
    {"gasnet_records", gasnet_records},
#if defined(LINTEL_MODEL_VERBS)
    {"channel_requests", channel_requests},
#endif
};

}  // namespace

}  // namespace lintel::model

// model_tests NAME [PART]: a table of its executions and orders, and the execution in which a
// weaker order of which PART is a part is noticed.
int main(int count, char** arguments) {
  using namespace lintel::model;
  use_sites(sites);
  catch_faults();
  if (count < 2) return 2;
  if (std::strcmp(arguments[1], "litmus") == 0) {
    Litmus litmus;
    run_litmus_tests(litmus);
    return litmus.passed() ? 0 : 1;
  }
  for (const Row& row : protocols)
    if (std::strcmp(arguments[1], row.name) == 0)
      return check(row.protocol(), count > 2 ? arguments[2] : nullptr) ? 0 : 1;
  return 2;
}
