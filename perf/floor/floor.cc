// perf_floor: what this machine itself allows, as JSON on standard output.
//
//   * cache-line ping-pong between two processes pinned to two cores, one way;
//   * memcpy within one process;
//   * process_vm_readv from the other process.
//
// "Hot" copies one source to one destination again and again; "cold" walks through a region larger
// than the caches at hand, so that neither side is found there. It links nothing of the library:
// it is the yardstick, not the thing measured.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

struct Options {
  int cpus[2] = {0, 1};
  int duration_ms = 60;                // of each single measurement
  std::size_t cold_bytes = 256 * mib;  // region walked by the cold copies
  bool only_ping_pong = false;
};

// What the two processes share. Each word has its cache line (two, because of the adjacent-line
// prefetcher) to itself.
struct Shared {
  alignas(128) std::atomic<std::uint64_t> ping{0};
  alignas(128) std::atomic<std::uint64_t> pong{0};
  alignas(128) std::atomic<std::uint64_t> buffer_address{0};
  alignas(128) std::atomic<bool> finished{false};
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "perf_floor: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    fail("cannot pin to the requested core (--cpus)");
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

char* allocate(std::size_t length_bytes) {
  void* memory =
      mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("cannot allocate a buffer");
  std::memset(memory, 1, length_bytes);
  return static_cast<char*>(memory);
}

// The partner answers every new value of `ping` with the same value in `pong`, until told to stop.
void answer_pings(Shared& shared) {
  std::uint64_t seen = 0;
  while (!shared.finished.load(std::memory_order_relaxed)) {
    const std::uint64_t now = shared.ping.load(std::memory_order_acquire);
    if (now != seen) {
      seen = now;
      shared.pong.store(now, std::memory_order_release);
    }
  }
}

struct PingPong {
  double average_ns;
  double minimum_ns;  // of the averages of short batches
  double maximum_ns;
};

PingPong measure_ping_pong(Shared& shared, int duration_ms) {
  constexpr int round_trips_per_batch = 1000;
  std::uint64_t value = shared.ping.load();
  std::vector<double> batches;
  const auto start = Clock::now();
  do {
    const auto batch_start = Clock::now();
    for (int i = 0; i < round_trips_per_batch; ++i) {
      shared.ping.store(++value, std::memory_order_release);
      while (shared.pong.load(std::memory_order_acquire) != value) {
      }
    }
    batches.push_back(seconds_since(batch_start) / round_trips_per_batch / 2 * 1e9);
  } while (seconds_since(start) * 1e3 < duration_ms);
  double sum = 0;
  for (double batch : batches) sum += batch;
  const auto [low, high] = std::minmax_element(batches.begin(), batches.end());
  return {sum / static_cast<double>(batches.size()), *low, *high};
}

// Repeats `copy(destination, source)` for the given time. `region_bytes` == `length_bytes` is hot.
template <class Copy>
double gib_per_second(char* destination, char* source, std::size_t length_bytes,
                      std::size_t region_bytes, int duration_ms, Copy copy) {
  const std::size_t pieces = std::max<std::size_t>(1, region_bytes / length_bytes);
  std::size_t piece = 0;
  std::uint64_t copies = 0;
  // Looking at the clock costs as much as a small copy does.
  const std::uint64_t copies_per_look = std::max<std::size_t>(1, mib / length_bytes);
  copy(destination, source);
  const auto start = Clock::now();
  double elapsed = 0;
  do {
    for (std::uint64_t i = 0; i < copies_per_look; ++i) {
      copy(destination + piece * length_bytes, source + piece * length_bytes);
      piece = piece + 1 == pieces ? 0 : piece + 1;
    }
    copies += copies_per_look;
    elapsed = seconds_since(start);
  } while (elapsed * 1e3 < duration_ms);
  return static_cast<double>(copies) * static_cast<double>(length_bytes) / elapsed / (1024.0 * mib);
}

struct Throughput {
  std::size_t length_bytes;
  double hot;
  double cold;
};

template <class Copy>
std::vector<Throughput> measure_sizes(char* destination, char* source, const Options& options,
                                      Copy copy) {
  std::vector<Throughput> results;
  for (std::size_t length : {4 * kib, 64 * kib, mib, 64 * mib}) {
    const auto sized_copy = [&](char* to, char* from) { copy(to, from, length); };
    Throughput row{length, 0, 0};
    row.hot = gib_per_second(destination, source, length, length, options.duration_ms, sized_copy);
    row.cold = gib_per_second(destination, source, length, options.cold_bytes, options.duration_ms,
                              sized_copy);
    results.push_back(row);
  }
  return results;
}

void print_throughputs(const char* name, const std::vector<Throughput>& rows) {
  std::printf("  \"%s\": [", name);
  const char* separator = "\n";
  for (const Throughput& row : rows) {
    std::printf("%s    {\"bytes\": %zu, \"hot_gib_per_s\": %.3f, \"cold_gib_per_s\": %.3f}",
                separator, row.length_bytes, row.hot, row.cold);
    separator = ",\n";
  }
  std::printf("\n  ],\n");
}

// Empty where the kernel forbids reading the other process.
std::vector<Throughput> measure_remote_read(char* destination, std::uint64_t source_address,
                                            pid_t peer, const Options& options) {
  auto* source = reinterpret_cast<char*>(source_address);
  const auto read_peer = [peer](char* to, char* from, std::size_t length) {
    const iovec local{to, length};
    const iovec remote{from, length};
    return process_vm_readv(peer, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(length);
  };
  if (!read_peer(destination, source, 4 * kib)) {
    std::fprintf(stderr, "perf_floor: process_vm_readv is not possible here: %s\n",
                 std::strerror(errno));
    return {};
  }
  return measure_sizes(destination, source, options, [&](char* to, char* from, std::size_t length) {
    if (!read_peer(to, from, length)) fail("process_vm_readv");
  });
}

void usage(std::FILE* out) {
  std::fputs(
      "usage: perf_floor [--cpus A,B] [--duration-ms N] [--cold-mib N] [--ping-pong]\n"
      "  --cpus A,B       the two cores that the two processes are pinned to (0,1)\n"
      "  --duration-ms N  length of each single measurement (60)\n"
      "  --cold-mib N     region that the cold copies walk through (256)\n"
      "  --ping-pong      measure the cache line only\n",
      out);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--help") {
      usage(stdout);
      std::exit(0);
    }
    if (name == "--ping-pong") {
      options.only_ping_pong = true;
      continue;
    }
    int cold_mib = 0;
    if (name == "--cpus" && std::sscanf(value, "%d,%d", &options.cpus[0], &options.cpus[1]) == 2) {
      ++i;
    } else if (name == "--duration-ms" && std::sscanf(value, "%d", &options.duration_ms) == 1) {
      ++i;
    } else if (name == "--cold-mib" && std::sscanf(value, "%d", &cold_mib) == 1 && cold_mib >= 64) {
      options.cold_bytes = static_cast<std::size_t>(cold_mib) * mib;
      ++i;
    } else {
      std::fprintf(stderr, "perf_floor: cannot use '%s %s'\n", name.c_str(), value);
      usage(stderr);
      std::exit(2);
    }
  }
  return options;
}

// The second process: answers pings and lends its buffer.
[[noreturn]] void run_partner(Shared& shared, const Options& options, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(parent), 0, 0, 0);
  pin_to(options.cpus[1]);
  char* buffer = options.only_ping_pong ? nullptr : allocate(options.cold_bytes);
  shared.buffer_address.store(reinterpret_cast<std::uint64_t>(buffer));
  shared.pong.store(1);
  answer_pings(shared);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("cannot map shared memory");
  auto& shared = *new (memory) Shared;
  shared.ping.store(1);

  const pid_t parent = getpid();
  const pid_t partner = fork();
  if (partner < 0) fail("fork");
  if (partner == 0) run_partner(shared, options, parent);
  pin_to(options.cpus[0]);
  while (shared.pong.load(std::memory_order_acquire) == 0) {
    if (waitpid(partner, nullptr, WNOHANG) == partner) return 1;  // it said why
  }

  const PingPong line = measure_ping_pong(shared, options.duration_ms);
  std::printf("{\n");
  if (!options.only_ping_pong) {
    char* destination = allocate(options.cold_bytes);
    print_throughputs(
        "process_vm_readv",
        measure_remote_read(destination, shared.buffer_address.load(), partner, options));
    shared.finished.store(true);  // memcpy runs with the other core at rest
    char* source = allocate(options.cold_bytes);
    print_throughputs("memcpy", measure_sizes(destination, source, options,
                                              [](char* to, char* from, std::size_t length) {
                                                std::memcpy(to, from, length);
                                                asm volatile("" ::: "memory");
                                              }));
  }
  shared.finished.store(true);
  std::printf(
      "  \"cache_line_one_way_ns\": {\"average\": %.1f, \"minimum\": %.1f, \"maximum\": %.1f},\n",
      line.average_ns, line.minimum_ns, line.maximum_ns);
  std::printf("  \"cpus\": [%d, %d]\n}\n", options.cpus[0], options.cpus[1]);
  waitpid(partner, nullptr, 0);
  return 0;
}
