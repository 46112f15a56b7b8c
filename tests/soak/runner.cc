#include "soak/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace lintel::soak {

namespace {

constexpr unsigned steady_servers = 2;
constexpr double progress_s = 5;
constexpr double patience_s = 90;  // for processes that were asked to end
// Growth that is not a leak: caches of the memory allocator, and pages in use for the first time.
constexpr uint64_t allowed_growth_kib = 2048;
// The same, in addresses: segments of peers whose end is not yet noticed, and thread arenas.
constexpr uint64_t allowed_address_growth_kib = 1 << 20;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void pause_ms(unsigned ms) { usleep(ms * 1000); }

Resources resources_of(pid_t process) {
  Resources found;
  const std::string directory = "/proc/" + std::to_string(process);
  std::ifstream status(directory + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:"))
      found.memory_kib = std::strtoull(line.c_str() + 8, nullptr, 10);
    if (line.starts_with("VmSize:"))
      found.address_kib = std::strtoull(line.c_str() + 7, nullptr, 10);
  }
  std::error_code ignored;
  for (auto entry = std::filesystem::directory_iterator(directory + "/fd", ignored);
       entry != std::filesystem::directory_iterator(); entry.increment(ignored))
    ++found.descriptors;
  return found;
}

}  // namespace

Runner::Runner(uint64_t seed, bool owns_shared_memory)
    : state_(seed),
      owns_shared_memory_(owns_shared_memory),
      tallies_(
          static_cast<Tally*>(mmap(nullptr, most_clients * sizeof(Tally), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

Runner::~Runner() {
  for (const auto& [process, client] : clients_) kill(process, SIGKILL);
  for (const pid_t process : servers_) kill(process, SIGKILL);
  if (volatile_server_ != 0) kill(volatile_server_, SIGKILL);
  munmap(tallies_, most_clients * sizeof(Tally));
}

// SplitMix64.
uint64_t Runner::roll() noexcept {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void Runner::problem(const std::string& text) {
  ++problems_;
  std::printf("PROBLEM: %s\n", text.c_str());
  std::fflush(stdout);
}

pid_t Runner::start(const std::function<int()>& body) {
  std::fflush(nullptr);
  // SIGTERM may be sent to the process before it has installed a handler.
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  const pid_t process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::exit(body());
  }
  sigprocmask(SIG_UNBLOCK, &end, nullptr);
  if (process < 0) problem("fork failed");
  return process;
}

void Runner::start_servers() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return problem("no pipe");
  for (unsigned number = 0; number < steady_servers; ++number)
    servers_.push_back(start([&] { return serve(number, ready[1]); }));
  close(ready[1]);
  char byte = 0;
  for (unsigned number = 0; number < steady_servers; ++number)
    if (read(ready[0], &byte, 1) != 1) problem("a server does not start");
  close(ready[0]);
  start_volatile_server();
}

void Runner::start_volatile_server() {
  volatile_server_ = start([] { return serve(steady_servers, -1); });
}

void Runner::start_client(const Scene& scene, unsigned slot) {
  ++starts_;
  ClientOrder order;
  order.slot = slot;
  order.servers = steady_servers;
  order.to_volatile = scene.kills;
  order.may_fail = scene.may_fail;
  order.seed = roll();
  const pid_t process = start([&] {
    setenv("PTL_TRANSPORT", scene.transport, 1);
    setenv("PTL_FAULTS", scene.faults, 1);
    if (scene.hardship) scene.hardship();
    return work(order, tallies_[order.slot]);
  });
  if (process > 0) clients_[process] = {slot, false};
}

void Runner::play(const Scene& scene, double seconds) {
  if (scene.begin) scene.begin();
  for (unsigned slot = 0; slot < scene.clients; ++slot) start_client(scene, slot);
  const double end = now_s() + seconds;
  double report = now_s() + progress_s;
  while (now_s() < end) {
    pause_ms(50);
    disturb(scene);
    reap(scene, true);
    if (now_s() < report) continue;
    report += progress_s;
    progress(scene.name);
  }
  end_clients(scene);
  if (scene.end) scene.end();
  progress(scene.name);
}

void Runner::disturb(const Scene& scene) {
  for (auto stopped = stopped_until_s_.begin(); stopped != stopped_until_s_.end();) {
    if (now_s() >= stopped->second) {
      kill(stopped->first, SIGCONT);
      stopped = stopped_until_s_.erase(stopped);
    } else {
      ++stopped;
    }
  }
  if (clients_.empty()) return;
  for (auto& [process, client] : clients_) {
    if (!scene.kills_all) break;
    ++kills_;
    client.killed = true;
    kill(process, SIGKILL);
  }
  auto client = clients_.begin();
  std::advance(client, static_cast<long>(roll() % clients_.size()));
  if (scene.kills && roll() % 4 == 0) {
    ++kills_;
    if (roll() % 8 == 0) {
      kill(volatile_server_, SIGKILL);
      waitpid(volatile_server_, nullptr, 0);
      start_volatile_server();
    } else {
      client->second.killed = true;
      kill(client->first, SIGKILL);
    }
  }
  if (scene.stops && roll() % 6 == 0) {
    ++stops_;
    const pid_t which = roll() % 3 == 0 ? servers_[roll() % servers_.size()] : client->first;
    kill(which, SIGSTOP);
    stopped_until_s_[which] = now_s() + static_cast<double>(roll() % 500) / 1000;
  }
}

void Runner::reap(const Scene& scene, bool restart) {
  for (auto client = clients_.begin(); client != clients_.end();) {
    int status = 0;
    if (waitpid(client->first, &status, WNOHANG) != client->first) {
      ++client;
      continue;
    }
    const auto [slot, killed] = client->second;
    stopped_until_s_.erase(client->first);
    client = clients_.erase(client);
    const bool no_means = WIFEXITED(status) && WEXITSTATUS(status) == had_no_means;
    if (no_means) ++without_means_;
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == ended_well;
    if (!well && !killed && !(no_means && scene.may_fail))
      problem(std::string(scene.name) + ": client " + std::to_string(slot) + " ended with " +
              (WIFEXITED(status) ? "code " + std::to_string(WEXITSTATUS(status))
                                 : "signal " + std::to_string(WTERMSIG(status))));
    if (restart) start_client(scene, slot);
  }
  for (const pid_t server : servers_)
    if (waitpid(server, nullptr, WNOHANG) != 0) problem("a server has ended");
}

void Runner::end_clients(const Scene& scene) {
  for (const auto& [process, until] : stopped_until_s_) kill(process, SIGCONT);
  stopped_until_s_.clear();
  for (const auto& [process, client] : clients_) kill(process, SIGTERM);
  const double deadline = now_s() + patience_s;
  while (!clients_.empty() && now_s() < deadline) {
    pause_ms(20);
    reap(scene, false);
  }
  for (auto& [process, client] : clients_) {
    problem(std::string(scene.name) + ": client " + std::to_string(client.slot) + " does not end");
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  clients_.clear();
}

Resources Runner::of_servers() const {
  Resources sum;
  for (const pid_t server : servers_) {
    const Resources one = resources_of(server);
    sum.memory_kib += one.memory_kib;
    sum.address_kib += one.address_kib;
    sum.descriptors += one.descriptors;
  }
  return sum;
}

void Runner::progress(const char* scene) {
  static const double began = now_s();
  Tally sum;
  for (unsigned slot = 0; slot < most_clients; ++slot) {
    sum.good += tallies_[slot].good;
    sum.undelivered += tallies_[slot].undelivered;
  }
  const Resources now = of_servers();
  std::printf(
      "%7.0f s  %-28s %9llu operations, %llu undelivered; %u starts (%u without means), %u kills, "
      "%u stops; servers: %llu KiB, %llu MiB of addresses, %u descriptors\n",
      now_s() - began, scene, static_cast<unsigned long long>(sum.good),
      static_cast<unsigned long long>(sum.undelivered), starts_, without_means_, kills_, stops_,
      static_cast<unsigned long long>(now.memory_kib),
      static_cast<unsigned long long>(now.address_kib / 1024), now.descriptors);
  std::fflush(stdout);
}

void Runner::take_base() { base_ = of_servers(); }

void Runner::finish() {
  const Resources now = of_servers();
  if (now.memory_kib > base_.memory_kib + base_.memory_kib / 10 + allowed_growth_kib)
    problem("the memory of the servers grew from " + std::to_string(base_.memory_kib) + " to " +
            std::to_string(now.memory_kib) + " KiB");
  if (now.address_kib > base_.address_kib + allowed_address_growth_kib)
    problem("the address space of the servers grew from " + std::to_string(base_.address_kib) +
            " to " + std::to_string(now.address_kib) + " KiB");
  if (now.descriptors > base_.descriptors)
    problem("the descriptors of the servers grew from " + std::to_string(base_.descriptors) +
            " to " + std::to_string(now.descriptors));
  Tally sum;
  for (unsigned slot = 0; slot < most_clients; ++slot) sum.good += tallies_[slot].good;
  if (sum.good == 0) problem("not a single operation ended well");
  servers_.push_back(std::exchange(volatile_server_, 0));
  for (const pid_t server : servers_) kill(server, SIGTERM);
  for (const pid_t server : servers_) {
    int status = 0;
    waitpid(server, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != ended_well)
      problem("a server did not end well: status " + std::to_string(status));
  }
  servers_.clear();
  if (!owns_shared_memory_) return;
  // Each starting process removes what dead ones left, and leaves nothing itself.
  const pid_t last = start([] {
    ClientOrder order;
    order.servers = 1;
    order.may_fail = true;
    order.operations = 1;
    Tally ignored;
    return work(order, ignored);
  });
  waitpid(last, nullptr, 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator("/dev/shm")) {
    // Segments are named <nid>.<pid>.<nonce>; the secret of the node remains.
    const std::string name = entry.path().filename();
    const bool segment = entry.is_regular_file() && name.find('.') != name.rfind('.');
    if (segment) problem(entry.path().string() + " is left behind");
  }
}

}  // namespace lintel::soak
