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

// Each of these processes only keeps a network namespace alive; 0: not made yet.
std::array<pid_t, 2> cable_ends{};
std::array<pid_t, 3> switched{};  // two hosts and the switch
constexpr int ports_of_host = 2;
// The driver af_packet computes a number from process id and interface index. It must be unique in
// a namespace, and ids of processes that start one after the other are neighbours.
constexpr int far_apart = 16384;

void must_run(const std::string& command) {
  if (!run_command(command)) throw std::runtime_error("failed: " + command);
}

void set_variable(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

std::string memif_port(const char* role) {
  return std::string("net_memif0,id=0,bsize=9216,rsize=9,role=")
      .append(role)
      .append(",socket=lintel-test-")
      .append(std::to_string(getppid()));
}

std::string network_of(pid_t holder) { return "/proc/" + std::to_string(holder) + "/ns/net"; }

pid_t host_of(int index, Ethernet ethernet) {
  return ethernet == Ethernet::af_packet
             ? cable_ends.at(static_cast<std::size_t>(index))
             : switched.at(static_cast<std::size_t>(index / ports_of_host));
}

std::string packet_port(int index) {
  return "net_af_packet0,iface=port" + std::to_string(index) + packet_ring;
}

// Returns when the process has entered its namespace.
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

std::string within(pid_t holder) { return "nsenter --net=" + network_of(holder) + " "; }

void make_cable() {
  for (pid_t& end : cable_ends) end = start_holder();
  must_run(within(cable_ends[0]) +
           "ip link add port0 mtu 9000 type veth peer name port1 mtu 9000 netns " +
           std::to_string(cable_ends[1]));
  must_run(within(cable_ends[0]) + "ip link set port0 up");
  must_run(within(cable_ends[1]) + "ip link set port1 up");
}

// A bridge for each host, and a cable between them.
void make_switch() {
  for (pid_t& holder : switched) holder = start_holder();
  const std::string in_switch = within(switched[2]);
  must_run(in_switch + "ip link add trunk0 mtu 9000 type veth peer name trunk1 mtu 9000");
  for (const std::string host : {"0", "1"}) {
    must_run(in_switch + "ip link add switch" + host + " type bridge");
    must_run(in_switch + "ip link set switch" + host + " mtu 9000 up");
    must_run(in_switch + "ip link set trunk" + host + " master switch" + host + " up");
  }
  for (int index = 0; index < 2 * ports_of_host; ++index) {
    const std::string number = std::to_string(index);
    const pid_t host = host_of(index, Ethernet::hosts);
    must_run(within(host) + "ip link add port" + number + " mtu 9000 index " +
             std::to_string(far_apart * (index % ports_of_host + 1)) +
             " type veth peer name socket" + number + " mtu 9000 netns " +
             std::to_string(switched[2]));
    must_run(in_switch + "ip link set socket" + number + " master switch" +
             std::to_string(index / ports_of_host) + " up");
    must_run(within(host) + "ip link set port" + number + " up");
  }
}

}  // namespace

void set_mtu_between_hosts(unsigned mtu) {
  for (const std::string end : {"trunk0", "trunk1"})
    must_run(within(switched[2]) + "ip link set " + end + " mtu " + std::to_string(mtu));
}

bool run_command(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

bool await_links() {
  return run_command(
      "for i in $(seq 250); do "
      "ip -o link | grep LOWER_UP | grep -qE 'state (LOWERLAYER)?DOWN' || exit 0; "
      "sleep 0.02; done; exit 1");
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
  if (ethernet == Ethernet::af_packet && cable_ends[0] == 0) make_cable();
  if (ethernet == Ethernet::hosts && switched[0] == 0) make_switch();
}

void enter_host_of(int index, Ethernet ethernet) {
  const int network = open(network_of(host_of(index, ethernet)).c_str(), O_RDONLY | O_CLOEXEC);
  if (network < 0 || setns(network, CLONE_NEWNET) != 0) throw std::runtime_error("setns");
  close(network);
}

void join_ethernet(int index, Ethernet ethernet) {
  set_variable("PTL_LOCAL_RANK", std::to_string(index));
  set_variable("PTL_TRANSPORT", ethernet == Ethernet::hosts ? "shm,dpdk" : "dpdk");
  if (ethernet == Ethernet::memif) {
    set_variable("PTL_DPDK_PORTS", memif_port("server") + ";" + memif_port("client"));
    return;
  }
  enter_host_of(index, ethernet);
  if (ethernet == Ethernet::af_packet) {
    // Tests name the other rank by its pid alone. Without IPv4 the nid would be of the port.
    set_variable("PTL_NID", "127.0.0.1");
    set_variable("PTL_DPDK_PORTS", packet_port(0) + ";" + packet_port(1));
    return;
  }
  // What an administrator would configure on each host; local ranks begin at 0 on each.
  const int first = index / ports_of_host * ports_of_host;
  set_variable("PTL_LOCAL_RANK", std::to_string(index - first));
  set_variable("PTL_NID", first == 0 ? "10.78.0.1" : "10.78.0.2");
  set_variable("PTL_DPDK_PORTS", packet_port(first) + " ; " + packet_port(first + 1));
}

}  // namespace lintel::test
