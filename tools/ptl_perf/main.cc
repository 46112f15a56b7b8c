// ptl_perf: measures Portals between two processes. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <portals4_lintel.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

#include "common/text.h"
#include "ptl_perf/context.h"
#include "ptl_perf/errors.h"
#include "ptl_perf/fork_rendezvous.h"
#include "ptl_perf/host_rendezvous.h"
#include "ptl_perf/job_rendezvous.h"
#include "ptl_perf/options.h"
#include "ptl_perf/paths.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/report.h"
#include "ptl_perf/supervisor.h"
#include "ptl_perf/tests.h"
#include "ptl_perf/watchdog.h"

namespace lintel::perf {
namespace {

// Place of this process among those on its node.
struct LocalPlace {
  unsigned rank;
  unsigned processes;
};

// Before Portals starts threads, so that they share the core with the thread that makes the calls.
// False: `text` says why not.
bool pin_to_own_core(const Settings& settings, const std::vector<int>& cores, LocalPlace place,
                     std::string& text) {
  text = "not pinned (--no-pin)";
  if (settings.pinning == Pinning::off) return false;
  text = "not pinned: " + std::to_string(place.processes) + " processes may use " +
         std::to_string(cores.size()) + (cores.size() == 1 ? " core" : " cores");
  if (place.processes > cores.size()) return false;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cores[place.rank], &own);
  text = "not pinned: the kernel refused";
  if (sched_setaffinity(0, sizeof own, &own) != 0) return false;
  text = "pinned to cores ";
  for (unsigned i = 0; i < place.processes; ++i) {
    text += (i ? ", " : "") + std::to_string(cores[i]);
  }
  text += " with all their threads";
  return true;
}

// Collective. How a launcher has bound processes that were not pinned here, if it gave each cores
// of its own; else an empty text. At rank 0.
std::string describe_binding(Session& session) {
  cpu_set_t own;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  const std::vector<cpu_set_t> all = session.rendezvous().gather_value(own);
  std::map<unsigned, cpu_set_t> used_on_node;
  int least = CPU_SETSIZE, most = 0;
  for (unsigned rank = 0; rank < all.size(); ++rank) {
    const auto [used, is_first] = used_on_node.try_emplace(session.nodes()[rank], all[rank]);
    if (!is_first) {
      cpu_set_t both;
      CPU_AND(&both, &used->second, &all[rank]);
      if (CPU_COUNT(&both) != 0) return "";
      CPU_OR(&used->second, &used->second, &all[rank]);
    }
    least = std::min(least, CPU_COUNT(&all[rank]));
    most = std::max(most, CPU_COUNT(&all[rank]));
  }
  return "bound by the launcher: each process has " + std::to_string(least) +
         (most > least ? " to " + std::to_string(most) : "") + (most > 1 ? " cores" : " core") +
         " of its own";
}

std::vector<std::pair<std::string, std::string>> portals_environment() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (text.starts_with("PTL_") && equals != std::string::npos) {
      const std::string name = text.substr(0, equals);
      // A job key is a secret; the output of a benchmark gets passed around.
      found.emplace_back(name, name == "PTL_JOB_KEY" ? "(set)" : text.substr(equals + 1));
    }
  }
  return found;
}

std::string describe_interface(const Settings& settings, const Session& session) {
  const ptl_process_t own = session.physical_id();
  return (settings.interface == PTL_IFACE_DEFAULT ? "default"
                                                  : std::to_string(settings.interface)) +
         ", nid " + tools::format_nid(own.phys.nid) + " pid " + std::to_string(own.phys.pid);
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  return text;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// Describes which ranks are on which node; empty if all are on one.
std::string describe_nodes(const Session& session) {
  const std::vector<unsigned>& nodes = session.nodes();
  const unsigned count = *std::max_element(nodes.begin(), nodes.end()) + 1;
  if (count == 1) return "";
  std::string text = " on " + std::to_string(count) + " nodes (";
  for (unsigned node = 0; node < count; ++node) {
    text += node == 0 ? "ranks " : "; ";
    const char* separator = "";
    for (unsigned rank = 0; rank < nodes.size(); ++rank) {
      if (nodes[rank] != node) continue;
      unsigned last = rank;
      while (last + 1 < nodes.size() && nodes[last + 1] == node) ++last;
      text.append(separator).append(std::to_string(rank));
      if (last > rank) text.append("-").append(std::to_string(last));
      separator = ",";
      rank = last;
    }
  }
  return text + ")";
}

std::string describe_pairs(const Session& session, const Settings& settings) {
  if (!settings.across_nodes) return "";
  std::string text = "; pairs across nodes: ";
  const std::vector<unsigned>& order = session.order();
  for (std::size_t i = 0; i < order.size(); i += 2) {
    text += (i > 0 ? ", " : "") + std::to_string(order[i]) + "-" + std::to_string(order[i + 1]);
  }
  return text;
}

std::string describe_clock(const tools::Machine& machine, const TickScale& scale) {
#if defined(__x86_64__)
  std::string text =
      "time-stamp counter, " + tools::format_fixed(1.0 / scale.nanoseconds_per_tick(), 3) + " GHz";
  if (!machine.invariant_tsc) text += " (not invariant: compare with another clock)";
  return text;
#else
  (void)machine;
  return "counter of " + tools::format_fixed(1000.0 / scale.nanoseconds_per_tick(), 3) + " MHz";
#endif
}

unsigned deadline_s(const Settings& settings) {
  double longest = settings.seconds_per_point;
  for (const auto& test : settings.tests) {
    if (test == "idle") longest = std::max(longest, settings.idle_seconds);
  }
  return settings.deadline_s + static_cast<unsigned>(std::ceil(2 * longest));
}

void run_tests(Context& context) {
  if (context.settings.short_run()) {
    run_short(context);
    return;
  }
  const std::vector<std::string> names = context.settings.tests;
  for (const auto& name : names) find_test(name)->run(context);
}

// One process of the measurement, from start to end. Returns its exit code.
int take_part(Settings settings, Rendezvous& rendezvous, LocalPlace place) {
  ProgressLine progress(rendezvous.rank() == 0);
  try {
    if (settings.short_run())
      settings.seconds_per_point = std::min(settings.seconds_per_point, 0.3);
    Watchdog watchdog(deadline_s(settings), rendezvous.connection());
    Circumstances facts;
    facts.machine = tools::describe_machine();
    if (getloadavg(&facts.load, 1) != 1) facts.load = 0;
    const bool pinned = pin_to_own_core(settings, facts.machine.cpus_allowed, place, facts.pinning);
    static_cast<void>(PtlLintelSetLocalRank(place.rank));
    Session session(rendezvous, settings);
    const LostPeerExplanation explanation(
        [&] { return why_unreachable(session, session.endpoint(settings)); });
    facts.paths = gather_paths(session, session.endpoint(settings));
    if (const std::string binding = describe_binding(session);
        !pinned && settings.pinning == Pinning::automatic && !binding.empty())
      facts.pinning = binding;
    std::unique_ptr<Reporter> reporter;
    Context context{session, settings, watchdog, progress, nullptr};
    if (rendezvous.rank() == 0) {
      facts.library = "Lintel " LINTEL_VERSION ", Portals " + std::to_string(PTL_MAJOR_VERSION) +
                      "." + std::to_string(PTL_MINOR_VERSION);
      facts.interface = describe_interface(settings, session);
      facts.processes =
          rendezvous.description() + describe_nodes(session) + describe_pairs(session, settings);
      facts.host = host_name();
      facts.date = date_now();
      facts.clock = describe_clock(facts.machine, context.scale);
      facts.environment = portals_environment();
      reporter = std::make_unique<Reporter>(settings, facts, session.endpoint(settings).interface);
      context.reporter = reporter.get();
    }
    run_tests(context);
    watchdog.ignore_connection();
    progress.clear();
    if (reporter) reporter->finish();
    return static_cast<int>(ExitCode::success);
  } catch (const Failure& failure) {
    progress.clear();
    std::fprintf(stderr, "ptl_perf: rank %u: %s\n", rendezvous.rank(), failure.what());
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    progress.clear();
    std::fprintf(stderr, "ptl_perf: rank %u: %s\n", rendezvous.rank(), error.what());
    return static_cast<int>(ExitCode::failed);
  }
}

LocalPlace place_of(const HostRendezvous& rendezvous) {
  return rendezvous.same_host() ? LocalPlace{rendezvous.rank(), 2} : LocalPlace{0, 1};
}

// Runs the listening process: the command line comes from the other end. Rank 0 alone writes files.
int take_part_for_other_host(Socket connection, char* program) {
  try {
    std::fprintf(stderr, "ptl_perf: measuring with %s\n", connection.peer_address().c_str());
    HostRendezvous rendezvous(std::move(connection));
    std::vector<std::string> words = rendezvous.arguments();
    std::vector<char*> arguments{program};
    for (std::string& word : words) arguments.push_back(word.data());
    const auto parsed = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
    const auto* const settings = std::get_if<Settings>(&parsed);
    rendezvous.answer(settings != nullptr && !settings->listen ? "" : "the options are not usable");
    if (settings == nullptr || settings->listen) return static_cast<int>(ExitCode::usage);
    return take_part(*settings, rendezvous, place_of(rendezvous));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptl_perf: %s\n", error.what());
    return static_cast<int>(ExitCode::failed);
  }
}

int run(int argc, char** argv) {
  const auto parsed = parse_command_line(argc, argv);
  if (const auto* exit_now = std::get_if<ExitNow>(&parsed)) return exit_now->code;
  const Settings& settings = std::get<Settings>(parsed);
  if (settings.listen) {
    serve_connections(settings.port, [&](Socket connection) {
      return take_part_for_other_host(std::move(connection), argv[0]);
    });
  }
  if (!settings.host.empty()) {
    HostRendezvous rendezvous(settings, {argv + 1, argv + argc});
    rendezvous.await_answer();
    return take_part(settings, rendezvous, place_of(rendezvous));
  }

  ptl_job_info_t job;
  if (PtlJobInit() != PTL_OK || PtlJobGetInfo(&job) != PTL_OK) {
    throw Failure(ExitCode::usage, std::string("cannot join the job: ") + PtlJobError());
  }
  if (job.launcher != std::string("none")) {
    JobRendezvous rendezvous(job);
    return take_part(settings, rendezvous, LocalPlace{job.local_rank, job.local_size});
  }
  PtlJobFini();
  const unsigned processes = 2 * settings.pairs;
  SharedBoard board(processes);
  return run_processes(processes, [&](unsigned rank) {
    ForkRendezvous rendezvous(board, rank);
    return take_part(settings, rendezvous, LocalPlace{rank, processes});
  });
}

}  // namespace
}  // namespace lintel::perf

int main(int argc, char** argv) {
  try {
    return lintel::perf::run(argc, argv);
  } catch (const lintel::perf::Failure& failure) {
    std::fprintf(stderr, "ptl_perf: %s\n", failure.what());
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptl_perf: %s\n", error.what());
    return static_cast<int>(lintel::perf::ExitCode::failed);
  }
}
