// An endurance run: mixed traffic between the processes of a node, with kills, restarts, stops,
// losses, and shortages of every resource. At the end the servers must have the same memory and
// descriptors as before, and no segment may remain in /dev/shm. scripts/soak builds and starts it.
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "soak/hardships.h"
#include "soak/runner.h"

namespace lintel::soak {
namespace {

constexpr uint64_t shared_memory_bytes = uint64_t{1} << 30;
constexpr const char* lossy = "drop=0.02,dup=0.02,reorder=0.02,corrupt=0.01";

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limits{value, value};
  setrlimit(resource, &limits);
}

std::vector<Scene> scenes(bool owns_shared_memory) {
  std::vector<Scene> all;
  all.push_back(
      {.name = "shared memory, kills", .clients = 4, .transport = "local,shm,udp", .kills = true});
  all.push_back(
      {.name = "shared memory, stops", .clients = 4, .transport = "local,shm,udp", .stops = true});
  all.push_back({.name = "many killed clients",
                 .clients = 24,
                 .transport = "local,shm,udp",
                 .kills_all = true});
  all.push_back({.name = "UDP, kills", .clients = 4, .transport = "local,udp", .kills = true});
  all.push_back({.name = "UDP, losses and stops",
                 .clients = 4,
                 .transport = "local,udp",
                 .faults = lossy,
                 .stops = true});
  all.push_back({.name = "no membarrier",
                 .clients = 4,
                 .transport = "local,shm,udp",
                 .kills = true,
                 .hardship = [] {
                   if (!forbid_calls({SYS_membarrier})) std::exit(had_no_means);
                 }});
  all.push_back(
      {.name = "no access to other memory",
       .clients = 4,
       .transport = "local,shm,udp",
       .hardship = [] {
         if (!forbid_calls({SYS_process_vm_readv, SYS_process_vm_writev, SYS_userfaultfd}))
           std::exit(had_no_means);
       }});
  all.push_back({.name = "few descriptors",
                 .clients = 3,
                 .transport = "local,shm,udp",
                 .may_fail = true,
                 .hardship = [] { limit(RLIMIT_NOFILE, 10); }});
  all.push_back({.name = "little address space",
                 .clients = 3,
                 .transport = "local,shm,udp",
                 .may_fail = true,
                 .hardship = [] {
                   // The limits range from too little for anything to enough. Each process with too
                   // little reports that.
                   constexpr rlim_t gibibytes[] = {1, 8, 32, 128};
                   limit(RLIMIT_AS, gibibytes[getpid() % std::size(gibibytes)] << 30);
                   if (std::freopen("/dev/null", "w", stderr) == nullptr) std::exit(failed);
                 }});
  all.push_back({.name = "no locked memory, no files",
                 .clients = 3,
                 .transport = "local,shm,udp",
                 .may_fail = true,
                 .hardship = [] {
                   limit(RLIMIT_MEMLOCK, 0);
                   limit(RLIMIT_FSIZE, 4096);
                 }});
  if (owns_shared_memory) {
    all.push_back({.name = "full /dev/shm",
                   .clients = 3,
                   .transport = "local,shm,udp",
                   .may_fail = true,
                   .begin = fill_shared_memory,
                   .end = free_shared_memory});
  }
  all.push_back(
      {.name = "128 processes", .clients = most_clients - 3, .transport = "local,shm,udp"});
  return all;
}

}  // namespace
}  // namespace lintel::soak

int main(int argc, char** argv) {
  using namespace lintel::soak;
  double seconds = 300;
  uint64_t seed = 1;
  CLI::App options("Mixed traffic with kills, stops, losses and too little of everything");
  options.add_option("--seconds", seconds, "How long; 300 if not given");
  options.add_option("--seed", seed, "Of what happens to whom");
  std::string chosen;
  options.add_option("--scene", chosen, "Only scenes whose names contain this");
  CLI11_PARSE(options, argc, argv);

  const bool owns = own_shared_memory(shared_memory_bytes);
  if (!owns) std::printf("no right to mount a file system: without a full /dev/shm\n");
  setenv("PTL_LOG_LEVEL", "error", 1);
  setenv("PTL_TRANSPORT", "local,shm,udp", 1);
  Runner runner(seed, owns);
  runner.start_servers();
  if (runner.problems() != 0) return 1;
  std::vector<Scene> all = scenes(owns);
  std::erase_if(all, [&chosen](const Scene& scene) {
    return std::string_view(scene.name).find(chosen) == std::string_view::npos;
  });
  if (all.empty()) {
    std::fprintf(stderr, "no scene has '%s' in its name\n", chosen.c_str());
    return 2;
  }
  // Every scene is played twice: growth shows in the second round.
  for (unsigned round = 0; round < 2; ++round) {
    for (const Scene& scene : all)
      runner.play(scene, seconds / (2.0 * static_cast<double>(all.size())));
    if (round == 0) runner.take_base();
  }
  runner.finish();
  std::printf(runner.problems() == 0 ? "No problems\n" : "%u problems\n", runner.problems());
  return runner.problems() == 0 ? 0 : 1;
}
