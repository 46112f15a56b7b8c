// perf_udp_floor: what bare UDP sockets over the loopback allow, as JSON on standard output.
//
//   * an 8-byte ping-pong with sendto() and recvfrom(), one way, the median: with blocking sockets,
//     and with sockets that are polled;
//   * a stream of datagrams of one size as fast as sendto() takes them, as it arrives at the other
//     side: lost ones do not count.
//
// Two processes, pinned to two cores. It does not link the library.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "perf_udp_floor: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

struct Options {
  int cpus[2] = {0, 1};
  int duration_ms = 100;
  size_t segment_bytes = 32768;
};

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

// A socket with a port of its own.
struct Socket {
  int fd = -1;
  sockaddr_in address{};
  Socket() {
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0) fail("socket");
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
    socklen_t length = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    const int buffer = 4 << 20;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0)
      setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer) != 0)
      setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  }
  Socket(const Socket&) = delete;
  ~Socket() { close(fd); }
  void send(const Socket& to, const void* data, size_t bytes) const {
    sendto(fd, data, bytes, 0, reinterpret_cast<const sockaddr*>(&to.address), sizeof to.address);
  }
  ssize_t receive(void* data, size_t bytes, bool spins) const {
    for (;;) {
      const ssize_t got = recvfrom(fd, data, bytes, spins ? MSG_DONTWAIT : 0, nullptr, nullptr);
      if (got >= 0 || !spins || errno != EAGAIN) return got;
    }
  }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double ping_pong_ns(const Options& options, bool spins) {
  const Socket ours;
  const Socket theirs;
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    pin_to(options.cpus[1]);
    char data[8];
    for (;;) {
      if (theirs.receive(data, sizeof data, spins) < 0) _exit(1);
      theirs.send(ours, data, sizeof data);
    }
  }
  pin_to(options.cpus[0]);
  char data[8] = {};
  const auto once = [&] {
    ours.send(theirs, data, sizeof data);
    ours.receive(data, sizeof data, spins);
  };
  for (int i = 0; i < 200; ++i) once();
  std::vector<double> samples;
  const auto start = Clock::now();
  auto before = start;
  while (seconds_since(start) * 1000 < options.duration_ms) {
    once();
    const auto after = Clock::now();
    samples.push_back(std::chrono::duration<double, std::nano>(after - before).count() / 2);
    before = Clock::now();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

double stream_gib_per_s(const Options& options) {
  const Socket ours;
  const Socket theirs;
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    pin_to(options.cpus[0]);
    const std::vector<char> data(options.segment_bytes, 'x');
    for (;;) theirs.send(ours, data.data(), data.size());
  }
  pin_to(options.cpus[1]);
  std::vector<char> data(options.segment_bytes);
  for (int i = 0; i < 100; ++i) ours.receive(data.data(), data.size(), true);
  const auto start = Clock::now();
  double bytes = 0;
  double elapsed = 0;
  do {
    for (int i = 0; i < 20; ++i) {
      const ssize_t got = ours.receive(data.data(), data.size(), true);
      if (got > 0) bytes += static_cast<double>(got);
    }
    elapsed = seconds_since(start);
  } while (elapsed * 1000 < options.duration_ms);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return bytes / elapsed / (1 << 30);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--cpus") {
      if (std::sscanf(argv[i + 1], "%d,%d", &options.cpus[0], &options.cpus[1]) != 2) return 2;
    } else if (name == "--duration-ms") {
      options.duration_ms = std::atoi(argv[i + 1]);
    } else if (name == "--segment") {
      options.segment_bytes = static_cast<size_t>(std::atoi(argv[i + 1]));
    } else {
      std::fprintf(stderr,
                   "usage: perf_udp_floor [--cpus A,B] [--duration-ms N] [--segment BYTES]\n");
      return 2;
    }
  }
  const double waiting = ping_pong_ns(options, false);
  const double asking = ping_pong_ns(options, true);
  const double stream = stream_gib_per_s(options);
  std::printf(
      "{\"one_way_waiting_ns\": %.1f, \"one_way_asking_ns\": %.1f, \"stream_gib_per_s\": %.3f}\n",
      waiting, asking, stream);
}
