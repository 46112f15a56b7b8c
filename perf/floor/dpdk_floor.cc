// perf_dpdk_floor: what bare Ethernet ports allow through DPDK, as JSON on standard output.
//
//   * a ping-pong of frames of 64 bytes, one way, the median;
//   * a windowed stream of frames of one size: at most 256 in flight, every 32nd answered;
//   * the same stream with copies: the sender copies from a buffer of 1 MiB into the frames, the
//     receiver from the frames into one. In the other stream nothing reads the frames.
//
// Usage: perf_dpdk_floor --cpus A,B --ports 'DEVICE;DEVICE' --frame BYTES. Two processes, pinned to
// two cores, each with the port that PTL_DPDK_PORTS would give it. It does not link the library.
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned burst = 32;
constexpr unsigned window = 256;
constexpr unsigned answered = 32;
constexpr size_t short_frame = 64;
constexpr size_t buffer_bytes = 1 << 20;
constexpr auto test_time = std::chrono::milliseconds(150);
constexpr auto link_time = std::chrono::seconds(5);
// So long without an answer means that frames were lost.
constexpr auto silence = std::chrono::milliseconds(2);

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "perf_dpdk_floor: %s\n", what);
  _exit(1);
}

struct Options {
  int cpus[2] = {0, 1};
  std::string ports[2];
  size_t frame_bytes = 9000;
};

// Between the two processes.
struct Shared {
  std::atomic<int> arrived{0};
  std::atomic<bool> over{false};
  double one_way_ns = 0;
  double stream_gib_per_s = 0;
  double delivered_gib_per_s = 0;
};

// What is sent from, or received into, over and over.
class Buffer {
 public:
  // The next part of so many bytes.
  std::byte* next(size_t bytes) {
    if (used_ + bytes > bytes_.size()) used_ = 0;
    used_ += bytes;
    return bytes_.data() + used_ - bytes;
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(buffer_bytes, std::byte{1});
  size_t used_ = 0;
};

void meet(Shared& shared, int number) {
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() < 2 * number) sched_yield();
}

class Port {
 public:
  Port(const Options& options, int side) {
    const std::string core = "--lcores=0@" + std::to_string(options.cpus[side]);
    const std::string prefix = "--file-prefix=floor-" + std::to_string(getpid());
    const std::string device = "--vdev=" + options.ports[side];
    std::vector<std::string> words = {
        "floor",       core, "--no-pci", "--no-telemetry",       "--no-huge",
        "--no-shconf", "-m", "256",      "--log-level=critical", prefix,
        device};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0)
      fail("rte_eal_init");
    rmdir(rte_eal_get_runtime_dir());
    const size_t room = RTE_PKTMBUF_HEADROOM + 9216 + 1024;
    pool_ =
        rte_pktmbuf_pool_create("pool", 2047, 64, 0, static_cast<uint16_t>(room), SOCKET_ID_ANY);
    rte_eth_conf conf{};
    if (pool_ == nullptr || rte_eth_dev_configure(0, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(0, 0, 1024, 0, nullptr, pool_) != 0 ||
        rte_eth_tx_queue_setup(0, 0, 1024, 0, nullptr) != 0)
      fail("the port cannot be set up");
    rte_eth_macaddr_get(0, &own_);
  }

  // A client finds its server only when that has started, and the link is up when both have.
  void start() {
    const auto until = Clock::now() + link_time;
    while (rte_eth_dev_start(0) != 0) {
      if (Clock::now() > until) fail("the port does not start");
      usleep(1000);
    }
  }
  void await_link() {
    const auto until = Clock::now() + link_time;
    rte_eth_link link{};
    while (rte_eth_link_get_nowait(0, &link) != 0 || link.link_status == 0) {
      if (Clock::now() > until) fail("the link does not come up");
      usleep(1000);
    }
  }

  // Sends `count` frames, waiting for room; with a payload from the buffer, if there is one.
  void send(unsigned count, size_t bytes, uint32_t number, Buffer* from = nullptr) {
    rte_mbuf* frames[burst];
    if (rte_pktmbuf_alloc_bulk(pool_, frames, count) != 0) fail("no buffers");
    for (unsigned i = 0; i < count; ++i) {
      auto* header = rte_pktmbuf_mtod(frames[i], rte_ether_hdr*);
      std::memset(&header->dst_addr, 0xff, sizeof header->dst_addr);
      header->src_addr = own_;
      header->ether_type = rte_cpu_to_be_16(0x88b6);
      std::byte* const body = reinterpret_cast<std::byte*>(header + 1);
      std::memcpy(body, &number, sizeof number);
      if (const size_t payload = bytes - overhead; from != nullptr)
        std::memcpy(body + sizeof number, from->next(payload), payload);
      frames[i]->data_len = static_cast<uint16_t>(bytes);
      frames[i]->pkt_len = static_cast<uint32_t>(bytes);
    }
    for (unsigned sent = 0; sent < count;)
      sent += rte_eth_tx_burst(0, 0, frames + sent, static_cast<uint16_t>(count - sent));
  }
  // The frames of this program that arrived, and the number in the last of them. Their payloads go
  // into the buffer, if there is one.
  unsigned receive(uint32_t& number, Buffer* to = nullptr) {
    rte_mbuf* frames[burst];
    const unsigned got = rte_eth_rx_burst(0, 0, frames, burst);
    unsigned ours = 0;
    for (unsigned i = 0; i < got; ++i) {
      const auto* header = rte_pktmbuf_mtod(frames[i], const rte_ether_hdr*);
      if (header->ether_type != rte_cpu_to_be_16(0x88b6)) continue;
      const std::byte* const body = reinterpret_cast<const std::byte*>(header + 1);
      std::memcpy(&number, body, sizeof number);
      if (const size_t payload = frames[i]->data_len - overhead; to != nullptr)
        std::memcpy(to->next(payload), body + sizeof number, payload);
      ++ours;
    }
    rte_pktmbuf_free_bulk(frames, got);
    return ours;
  }

 private:
  static constexpr size_t overhead = sizeof(rte_ether_hdr) + sizeof(uint32_t);
  rte_mempool* pool_ = nullptr;
  rte_ether_addr own_{};
};

void ping(Port& port, Shared& shared) {
  std::vector<double> one_way_ns;
  const auto end = Clock::now() + test_time;
  while (Clock::now() < end) {
    const auto start = Clock::now();
    port.send(1, short_frame, 0);
    uint32_t ignored = 0;
    bool lost = false;
    while (port.receive(ignored) == 0 && !lost) lost = Clock::now() - start > silence;
    if (!lost)
      one_way_ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
                           2);
  }
  shared.over.store(true);
  if (one_way_ns.empty()) fail("no frame came back");
  std::nth_element(one_way_ns.begin(),
                   one_way_ns.begin() + static_cast<long>(one_way_ns.size() / 2), one_way_ns.end());
  shared.one_way_ns = one_way_ns[one_way_ns.size() / 2];
}

void pong(Port& port, Shared& shared) {
  uint32_t ignored = 0;
  while (!shared.over.load(std::memory_order_relaxed))
    if (port.receive(ignored) != 0) port.send(1, short_frame, 0);
}

void stream(Port& port, Shared& shared, size_t bytes, Buffer* from) {
  uint32_t sent = 0;
  uint32_t done = 0;
  const auto end = Clock::now() + test_time;
  auto heard = Clock::now();
  for (auto now = heard; now < end; now = Clock::now()) {
    const unsigned room = window - (sent - done);
    if (room >= answered) {
      port.send(answered, bytes, sent, from);
      sent += answered;
    }
    uint32_t number = 0;
    if (port.receive(number) != 0) {
      done = number;
      heard = now;
    } else if (now - heard > silence) {
      done = sent;
      heard = now;
    }
  }
  shared.over.store(true);
}

// What arrived, in GiB/s.
double sink(Port& port, Shared& shared, size_t bytes, Buffer* to) {
  uint64_t frames = 0;
  uint32_t unanswered = 0;
  auto start = Clock::now();
  while (!shared.over.load(std::memory_order_relaxed)) {
    uint32_t number = 0;
    const unsigned got = port.receive(number, to);
    if (got == 0) continue;
    if (frames == 0) start = Clock::now();
    frames += got;
    unanswered += got;
    if (unanswered < answered) continue;
    unanswered = 0;
    port.send(1, short_frame, number + answered);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return static_cast<double>(frames) * static_cast<double>(bytes) / seconds /
         (1024.0 * 1024 * 1024);
}

// Between two meetings, the first of which has the number `meeting`.
void run_stream(const Options& options, Port& port, Shared& shared, int side, int meeting,
                Buffer* buffer, double& gib_per_s) {
  meet(shared, meeting);
  shared.over.store(false);
  uint32_t ignored = 0;
  while (port.receive(ignored) != 0) {
  }
  meet(shared, meeting + 1);
  if (side == 0)
    stream(port, shared, options.frame_bytes, buffer);
  else
    gib_per_s = sink(port, shared, options.frame_bytes, buffer);
}

void run_side(const Options& options, Shared& shared, int side) {
  if (side == 1) meet(shared, 1);
  Port port(options, side);
  port.start();
  if (side == 0) meet(shared, 1);
  port.await_link();
  meet(shared, 2);
  side == 0 ? ping(port, shared) : pong(port, shared);
  run_stream(options, port, shared, side, 3, nullptr, shared.stream_gib_per_s);
  Buffer buffer;
  run_stream(options, port, shared, side, 5, &buffer, shared.delivered_gib_per_s);
  // Nobody uses the port any more when it goes away.
  meet(shared, 7);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--cpus") {
      if (std::sscanf(argv[i + 1], "%d,%d", &options.cpus[0], &options.cpus[1]) != 2)
        fail("--cpus A,B");
    } else if (name == "--ports") {
      const size_t middle = value.find(';');
      if (middle == std::string::npos) fail("--ports 'DEVICE;DEVICE'");
      options.ports[0] = value.substr(0, middle);
      options.ports[1] = value.substr(middle + 1);
    } else if (name == "--frame") {
      options.frame_bytes = std::strtoul(argv[i + 1], nullptr, 10);
    } else {
      fail("unknown option; see the head of the source");
    }
  }
  if (options.ports[0].empty()) fail("--ports 'DEVICE;DEVICE' is missing");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  auto* const shared = new (memory) Shared;
  const pid_t other = fork();
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_side(options, *shared, 1);
    _exit(0);
  }
  run_side(options, *shared, 0);
  int status = 0;
  waitpid(other, &status, 0);
  if (status != 0) fail("the other side failed");
  std::printf("{\"one_way_ns\": %.1f, \"stream_gib_per_s\": %.3f, \"delivered_gib_per_s\": %.3f}\n",
              shared->one_way_ns, shared->stream_gib_per_s, shared->delivered_gib_per_s);
  std::fflush(stdout);
  _exit(0);
}
