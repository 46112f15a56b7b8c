// perf_udp_floor: what bare sockets allow, over the loopback or between two network namespaces, as
// JSON on standard output.
//
//   * an 8-byte ping-pong over UDP with sendto() and recvfrom(), one way, the median: with blocking
//     sockets, and with sockets that are polled;
//   * a stream of UDP segments of one size, many to a system call (UDP_SEGMENT, UDP_GRO), as it
//     arrives at the other side: lost ones do not count;
//   * a TCP stream.
// Senders of streams write every byte, and receivers read every byte.
//
// Two processes, pinned to two cores. It does not link the library.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
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

// Where a socket is: the network namespace of that name ("": this one), and its address there.
struct Host {
  std::string name_space;
  in_addr address{htonl(INADDR_LOOPBACK)};
};

struct Options {
  int cpus[2] = {0, 1};
  int duration_ms = 100;
  size_t segment_bytes = 32768;
  Host hosts[2];
};

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

// Sockets that this process makes from now on are in that namespace.
void enter(const Host& host) {
  if (host.name_space.empty()) return;
  const int fd = open(("/run/netns/" + host.name_space).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail(host.name_space.c_str());
  close(fd);
}

// A socket with a port of its own at `host`.
struct Socket {
  int fd = -1;
  sockaddr_in address{};
  explicit Socket(const Host& host, int type = SOCK_DGRAM) {
    enter(host);
    fd = socket(AF_INET, type, 0);
    if (fd < 0) fail("socket");
    address.sin_family = AF_INET;
    address.sin_addr = host.address;
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
    socklen_t length = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    if (type != SOCK_DGRAM) return;
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
  const Socket ours(options.hosts[0]);
  const Socket theirs(options.hosts[1]);
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

constexpr size_t largest_datagram = 65507;

// What arrives of data, read into a place of its own as an application would.
class Sink {
 public:
  explicit Sink(const Options& options) : options_(options) {}
  // receive(buffer, bytes) -> bytes; the time begins after the first hundred.
  template <typename Receive>
  double gib_per_s(Receive&& receive) {
    for (int i = 0; i < 100; ++i) receive(data_.data(), data_.size());
    const auto start = Clock::now();
    double bytes = 0;
    double elapsed = 0;
    do {
      for (int i = 0; i < 20; ++i) {
        const ssize_t got = receive(data_.data(), data_.size());
        if (got <= 0) continue;
        std::memcpy(place_.data(), data_.data(), static_cast<size_t>(got));
        bytes += static_cast<double>(got);
      }
      elapsed = seconds_since(start);
    } while (elapsed * 1000 < options_.duration_ms);
    return bytes / elapsed / (1 << 30);
  }

 private:
  const Options& options_;
  std::vector<char> data_ = std::vector<char>(1 << 16);
  std::vector<char> place_ = std::vector<char>(1 << 16);
};

double stream_gib_per_s(const Options& options) {
  const Socket ours(options.hosts[0]);
  const Socket theirs(options.hosts[1]);
  const int on = 1;
  // As many equal segments as fit into one call.
  const size_t at_once =
      std::max<size_t>(1, std::min<size_t>(64, largest_datagram / options.segment_bytes));
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    pin_to(options.cpus[0]);
    std::vector<char> data(at_once * options.segment_bytes);
    const int segment = static_cast<int>(options.segment_bytes);
    if (at_once > 1 && setsockopt(ours.fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)
      fail("UDP_SEGMENT");
    for (char fill = 0;; ++fill) {
      std::memset(data.data(), fill, data.size());
      ours.send(theirs, data.data(), data.size());
    }
  }
  pin_to(options.cpus[1]);
  if (at_once > 1 && setsockopt(theirs.fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0)
    fail("UDP_GRO");
  const double result = Sink(options).gib_per_s(
      [&](char* data, size_t bytes) { return theirs.receive(data, bytes, true); });
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return result;
}

double tcp_stream_gib_per_s(const Options& options) {
  const Socket listener(options.hosts[1], SOCK_STREAM);
  if (listen(listener.fd, 1) != 0) fail("listen");
  const Socket ours(options.hosts[0], SOCK_STREAM);
  if (connect(ours.fd, reinterpret_cast<const sockaddr*>(&listener.address),
              sizeof listener.address) != 0)
    fail("connect");
  const int accepted = accept(listener.fd, nullptr, nullptr);
  if (accepted < 0) fail("accept");
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    pin_to(options.cpus[0]);
    std::vector<char> data(1 << 16);
    for (char fill = 0;; ++fill) {
      std::memset(data.data(), fill, data.size());
      if (send(ours.fd, data.data(), data.size(), MSG_NOSIGNAL) <= 0) _exit(1);
    }
  }
  pin_to(options.cpus[1]);
  const double result = Sink(options).gib_per_s(
      [&](char* data, size_t bytes) { return recv(accepted, data, bytes, 0); });
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(accepted);
  return result;
}

// NAMESPACE,ADDRESS
bool read_host(const std::string& text, Host& host) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos) return false;
  host.name_space = text.substr(0, comma);
  return inet_pton(AF_INET, text.c_str() + comma + 1, &host.address) == 1;
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
    } else if ((name != "--host-a" || !read_host(argv[i + 1], options.hosts[0])) &&
               (name != "--host-b" || !read_host(argv[i + 1], options.hosts[1]))) {
      std::fprintf(
          stderr,
          "usage: perf_udp_floor [--cpus A,B] [--duration-ms N] [--segment BYTES]\n"
          "                      [--host-a NAMESPACE,ADDRESS --host-b NAMESPACE,ADDRESS]\n");
      return 2;
    }
  }
  if (options.segment_bytes == 0 || options.segment_bytes > largest_datagram) return 2;
  const double waiting = ping_pong_ns(options, false);
  const double asking = ping_pong_ns(options, true);
  const double stream = stream_gib_per_s(options);
  const double tcp = tcp_stream_gib_per_s(options);
  std::printf(
      "{\"one_way_waiting_ns\": %.1f, \"one_way_asking_ns\": %.1f, \"stream_gib_per_s\": %.3f, "
      "\"tcp_stream_gib_per_s\": %.3f}\n",
      waiting, asking, stream, tcp);
}
