// Making the ports of a test. Set-up path.
#include "support/ethernet.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace lintel::test {

namespace {

constexpr const char* packet_ring = ",qdisc_bypass=1,blocksz=36864,framesz=9216,framecnt=512";

// Processes that do nothing but have a network namespace each; 0: not made yet.
std::array<pid_t, 2> holders{};

void must_run(const std::string& command) {
  if (!run_command(command)) throw std::runtime_error("failed: " + command);
}

void set_variable(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

std::string memif_port(const char* role) {
  return std::string("net_memif0,id=0,bsize=9216,rsize=9,role=").append(role)
      .append(",socket=lintel-test-").append(std::to_string(getppid()));
}

std::string network_of(int index) {
  return "/proc/" + std::to_string(holders[static_cast<std::size_t>(index)]) + "/ns/net";
}

// Returns when the process has its namespace.
pid_t start_holder() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || unshare(CLONE_NEWNET) != 0) _exit(1);
    close(ready[1]);
    close(ready[0]);
    for (;;) pause();
  }
  close(ready[1]);
  char end = 0;
  static_cast<void>(!read(ready[0], &end, 1));
  close(ready[0]);
  if (pid < 0) throw std::runtime_error("fork");
  return pid;
}

void make_cable() {
  const std::string into_first = "nsenter --net=" + network_of(0) + " ";
  const std::string into_second = "nsenter --net=" + network_of(1) + " ";
  must_run(into_first + "ip link add port0 mtu 9000 type veth peer name port1 mtu 9000 netns " +
           std::to_string(holders[1]));
  must_run(into_first + "ip link set port0 up");
  must_run(into_second + "ip link set port1 up");
}

}  // namespace

bool run_command(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

std::string why_no_ethernet(Ethernet ethernet) {
#ifdef LINTEL_HAS_DPDK
  if (ethernet == Ethernet::memif) return "";
  if (geteuid() != 0) return "network namespaces and packet sockets need root";
  if (!run_command("ip -V")) return "the command ip (iproute2) is not installed";
  static const bool has_veth =
      run_command("unshare -n ip link add port0 type veth peer name port1");
  return has_veth ? "" : "this kernel or container does not permit namespaces with veth";
#else
  static_cast<void>(ethernet);
  return "built without DPDK (libdpdk-dev)";
#endif
}

void prepare_ethernet(Ethernet ethernet) {
  if (ethernet != Ethernet::af_packet || holders[0] != 0) return;
  for (pid_t& holder : holders) holder = start_holder();
  make_cable();
}

void join_ethernet(const Rank& rank, Ethernet ethernet) {
  set_variable("PTL_TRANSPORT", "dpdk");
  set_variable("PTL_LOCAL_RANK", std::to_string(rank.index()));
  if (ethernet == Ethernet::memif) {
    set_variable("PTL_DPDK_PORTS", memif_port("server") + ";" + memif_port("client"));
    return;
  }
  const int network = open(network_of(rank.index()).c_str(), O_RDONLY | O_CLOEXEC);
  if (network < 0 || setns(network, CLONE_NEWNET) != 0) throw std::runtime_error("setns");
  close(network);
  set_variable("PTL_DPDK_PORTS", std::string("net_af_packet0,iface=port0").append(packet_ring) +
                                     ";net_af_packet0,iface=port1" + packet_ring);
}

}  // namespace lintel::test
