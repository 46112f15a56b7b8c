// Random programs of all calls, compared with a model (CONTRIBUTING.md, Tests). Starts the
// processes of each round. When one fails, it prints how to repeat it and searches for a shorter
// program that also fails. Set-up path.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "fuzz/endpoint.h"
#include "fuzz/shared.h"
#include "support/deadlines.h"

namespace lintel::fuzz {

namespace {

using Clock = std::chrono::steady_clock;
using Environment = std::vector<std::pair<const char*, const char*>>;

struct Transport {
  const char* name;
  Environment environment;
  // The interface of the second endpoint if both are in one process; none: each process has one
  // endpoint.
  std::optional<ptl_interface_t> second_interface;
  bool one_process;  // never more than one process
  bool lossy;
};

constexpr const char* losses = "drop=0.05,dup=0.05,reorder=0.05,seed=11";

const std::vector<Transport>& transports() {
  static const std::vector<Transport> all = {
      {"self", {{"PTL_TRANSPORT", "shm"}}, std::nullopt, true, false},
      {"shm", {{"PTL_TRANSPORT", "shm"}}, 1, false, false},
      {"shm_copy", {{"PTL_TRANSPORT", "shm"}, {"PTL_SHM_CMA", "0"}}, 1, false, false},
      {"udp", {{"PTL_TRANSPORT", "udp"}}, 3, false, true},
      {"udp_lossy", {{"PTL_TRANSPORT", "udp"}, {"PTL_FAULTS", losses}}, 3, false, true},
#ifdef LINTEL_HAS_FAKE_VERBS
      {"verbs",
       {{"PTL_TRANSPORT", "verbs"}, {"PTL_MODULE_PATH", LINTEL_MODULE_DIRECTORY}},
       5,
       true,
       false},
      {"verbs_ud",
       {{"PTL_TRANSPORT", "verbs"},
        {"PTL_MODULE_PATH", LINTEL_MODULE_DIRECTORY},
        {"PTL_VERBS_MAX_RC", "0"}},
       5,
       true,
       false},
#endif
  };
  return all;
}

struct Options {
  Shape shape;
  int processes = 2;
  std::string transport = "shm";
  int seconds = 10;
  int64_t phase = -1;  // if not negative, only this phase is executed
  int repeat = 0;
  bool shrink = true;
};

// One set of processes. It executes phases from the first one on, or one phase repeatedly.
struct Round {
  Shape shape;
  std::optional<uint64_t> only_phase;
  int repeat = 0;
  Clock::time_point end;
};

const Transport& transport_of(const Options& options) {
  for (const Transport& transport : transports())
    if (options.transport == transport.name) return transport;
  throw std::invalid_argument("no transport " + options.transport);
}

class SharedMapping {
 public:
  SharedMapping() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared{};
  }
  ~SharedMapping() { munmap(shared_, sizeof(Shared)); }
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  [[nodiscard]] Shared& operator*() const noexcept { return *shared_; }

 private:
  Shared* shared_ = nullptr;
};

void run_endpoint(Shared& shared, const Round& round, int index, ptl_interface_t interface,
                  bool lossy) {
  std::vector<std::string> problems;
  try {
    Endpoint endpoint(shared, round.shape, index, interface, lossy);
    endpoint.connect();
    for (int done = 0; problems.empty() && shared.stop.load() == 0; ++done) {
      const uint64_t phase = round.only_phase.value_or(static_cast<uint64_t>(done));
      shared.barrier(round.shape.endpoints);
      if (index == 0) {
        shared.phase.store(phase);
        const bool last = round.repeat != 0 ? done + 1 >= round.repeat : Clock::now() > round.end;
        if (last) shared.stop.store(1);
      }
      problems = endpoint.run(phase);
      if (index == 0) shared.phases_done.fetch_add(1);
    }
    if (problems.empty()) problems = endpoint.check_room();
    if (problems.empty()) shared.barrier(round.shape.endpoints);
  } catch (const OtherFailed&) {
    return;
  } catch (const std::exception& error) {
    problems.push_back(std::string("exception: ") + error.what());
  }
  if (problems.empty()) return;
  shared.failed.store(1);
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  std::cerr << text;
}

[[noreturn]] void run_process(Shared& shared, const Round& round, const Options& options,
                              int process, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const Transport& transport = transport_of(options);
  setenv("PTL_PEER_TIMEOUT_MS", "60000", 1);  // a busy machine may be slow
  for (const auto& [name, value] : transport.environment) setenv(name, value, 1);
  if (PtlInit() != PTL_OK) _exit(3);
  if (options.processes > 1) {
    run_endpoint(shared, round, process, PTL_IFACE_DEFAULT, transport.lossy);
  } else {
    std::vector<std::thread> endpoints;
    for (int i = 0; i < round.shape.endpoints; ++i) {
      const ptl_interface_t interface = i == 0 ? 0 : *transport.second_interface;
      endpoints.emplace_back([&shared, &round, &transport, i, interface] {
        run_endpoint(shared, round, i, interface, transport.lossy);
      });
    }
    for (std::thread& endpoint : endpoints) endpoint.join();
  }
  PtlFini();
  std::exit(shared.failed.load() != 0 ? 2 : 0);
}

// Kills all processes when one of them has failed, or after a long time without progress.
bool succeeds(const Round& round, const Options& options, Shared& shared) {
  std::cerr.flush();
  const pid_t parent = getpid();
  std::vector<pid_t> running;
  for (int process = 0; process < options.processes; ++process) {
    const pid_t pid = fork();
    if (pid == 0) run_process(shared, round, options, process, parent);
    running.push_back(pid);
  }
  bool good = true;
  uint64_t phases = 0;
  const auto patience = 3 * test::wait_deadline;
  Clock::time_point deadline = Clock::now() + patience;
  while (!running.empty()) {
    for (std::size_t i = 0; i < running.size();) {
      int status = 0;
      if (waitpid(running[i], &status, WNOHANG) == 0) {
        ++i;
        continue;
      }
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        if (WIFSIGNALED(status))
          std::cerr << "a process ended: " << strsignal(WTERMSIG(status)) << "\n";
        if (WIFEXITED(status) && WEXITSTATUS(status) > 2)
          std::cerr << "a process ended with status " << WEXITSTATUS(status) << "\n";
        good = false;
        shared.failed.store(1);
        deadline = std::min(deadline, Clock::now() + std::chrono::seconds(5));
      }
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (shared.phases_done.load() != phases) {
      phases = shared.phases_done.load();
      deadline = Clock::now() + patience;
    }
    if (Clock::now() > deadline) {
      if (good) {
        std::cerr << "nothing moves any more; the threads are at step";
        for (int e = 0; e < round.shape.endpoints; ++e)
          for (int t = 0; t < round.shape.threads; ++t)
            std::cerr
                << (t == 0 ? " | " : " ")
                << shared.at_step[static_cast<std::size_t>(e)][static_cast<std::size_t>(t)].load();
        std::cerr << "\n";
      }
      good = false;
      for (const pid_t pid : running) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
      }
      running.clear();
    }
    usleep(2000);
  }
  return good;
}

std::string command(const Options& options, const Shape& shape, uint64_t phase, int repeat) {
  return "fuzz_tests --transport " + options.transport + " --processes " +
         std::to_string(options.processes) + " --threads " + std::to_string(shape.threads) +
         " --steps " + std::to_string(shape.steps) + " --seed " + std::to_string(shape.seed) +
         " --phase " + std::to_string(phase) + " --repeat " + std::to_string(repeat);
}

// Searches for fewer steps that also fail. The order of threads differs each time, so each number
// of steps is tried often.
void shrink(const Options& options, const Round& failed, uint64_t phase) {
  constexpr int tries = 100;
  int fails = failed.shape.steps;
  int passes = 0;
  while (fails - passes > 1) {
    Round shorter = failed;
    shorter.shape.steps = (fails + passes) / 2;
    shorter.only_phase = phase;
    shorter.repeat = tries;
    const SharedMapping mapping;
    std::cerr << "--- with " << shorter.shape.steps << " steps:\n";
    if (succeeds(shorter, options, *mapping)) {
      std::cerr << "passes\n";
      passes = shorter.shape.steps;
    } else {
      fails = shorter.shape.steps;
    }
  }
  Shape shortest = failed.shape;
  shortest.steps = fails;
  std::cerr << "shortest that failed:\n  " << command(options, shortest, phase, tries) << "\n";
}

int run(Options options) {
  const Transport& transport = transport_of(options);
  if (transport.one_process) options.processes = 1;
  options.shape.unreliable = options.transport != "udp_lossy";
  options.shape.endpoints = options.processes;
  if (options.processes == 1 && transport.second_interface) options.shape.endpoints = 2;
  const auto end = Clock::now() + std::chrono::seconds(options.seconds);
  uint64_t phases = 0;
  uint64_t messages = 0;
  uint64_t checked = 0;
  uint64_t undecided = 0;
  do {
    Round round{options.shape, std::nullopt, options.repeat,
                std::min(end, Clock::now() + std::chrono::seconds(5))};
    if (options.phase >= 0) {
      round.only_phase = static_cast<uint64_t>(options.phase);
      round.repeat = std::max(options.repeat, 1);
    }
    const SharedMapping mapping;
    Shared& shared = *mapping;
    const bool good = succeeds(round, options, shared);
    phases += shared.phases_done.load();
    messages += shared.messages_done.load();
    checked += shared.portals_checked.load();
    undecided += shared.portals_undecided.load();
    if (!good) {
      const uint64_t phase = shared.phase.load();
      std::cerr << "FAILED; to repeat it:\n  " << command(options, round.shape, phase, 100) << "\n";
      if (options.shrink) shrink(options, round, phase);
      return 1;
    }
    ++options.shape.seed;
  } while (options.phase < 0 && Clock::now() < end);
  std::cout << phases << " phases with " << messages << " messages over " << options.transport
            << "; of " << checked << " histories of portals " << undecided
            << " were too ambiguous\n";
  // A model that leaves many histories undecided could miss faults.
  return checked > 1000 && undecided * 100 > checked ? 1 : 0;
}

}  // namespace

}  // namespace lintel::fuzz

int main(int argc, char** argv) {
  using namespace lintel::fuzz;
  CLI::App app("Random programs of all Portals calls against a model of a portal table entry.");
  Options options;
  std::vector<std::string> names;
  for (const Transport& transport : transports()) names.emplace_back(transport.name);
  app.add_option("--seed", options.shape.seed, "of the first round; odd ones address by rank")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds)
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--steps", options.shape.steps, "of each thread in a phase")
      ->check(CLI::Range(1, max_steps - 4))
      ->capture_default_str();
  app.add_option("--processes", options.processes, "1: two endpoints in one process")
      ->check(CLI::Range(1, max_endpoints))
      ->capture_default_str();
  app.add_option("--threads", options.shape.threads, "of each endpoint")
      ->check(CLI::Range(1, max_threads))
      ->capture_default_str();
  app.add_option("--transport", options.transport)
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--phase", options.phase, "only this phase of the round with this seed");
  app.add_option("--repeat", options.repeat, "so often in one set of processes");
  app.add_flag("!--no-shrink", options.shrink, "look for no shorter program");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
