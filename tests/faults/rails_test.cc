// Several network ports on a node: a stream takes all of them, and goes on when one is lost.
#include <portals4_lintel.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "support/host_pair.h"
#include "support/hosts_exchange.h"
#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/pauses.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
constexpr ptl_pt_index_t pt_index = 4;

// Two hosts with a switch between them, and cables to it of that rate, in Mbit/s, for each rail.
class RailedHosts : public HostPair {
 public:
  explicit RailedHosts(const std::vector<int>& rates) : HostPair("rails") {
    require(run_command("ip netns add " + name(switches)));
    for (size_t rail = 0; rail < rates.size(); ++rail) add_rail(rail, rates[rail]);
  }
  // The networks of the hosts differ on that rail, and a router joins them instead of the switch.
  void route(size_t rail) {
    const std::string cable = "rail" + std::to_string(rail);
    require(run_command("ip netns exec " + name(switches) +
                        " sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'"));
    for (int host = 0; host < 2; ++host) {
      const std::string own = "10.9" + std::to_string(host) + ".0.";
      const std::string other = "10.9" + std::to_string(1 - host) + ".0.0/24";
      const std::string port = "port" + std::to_string(rail) + "-" + std::to_string(host);
      require(in(host, "address flush dev " + cable) &&
              in(host, "address add " + own + "1/24 dev " + cable) &&
              in(host, "route add " + other + " via " + own + "254 dev " + cable) &&
              in(switches, "link set " + port + " nomaster") &&
              in(switches, "address add " + own + "254/24 dev " + port));
    }
  }
  // Both rails are one network.
  void join_rails() {
    require(in(switches, "link add trunk0 type veth peer name trunk1") &&
            in(switches, "link set trunk0 master rail0 up") &&
            in(switches, "link set trunk1 master rail1 up"));
  }
  ~RailedHosts() { static_cast<void>(run_command("ip netns del " + name(switches))); }
  // The nid of the second host is its address on its second rail.
  void cross() { first_of_second_ = 1; }
  void use_ipv6() { ipv6_ = true; }
  void enter(int host) const {
    HostPair::enter(host);
    setenv("PTL_NID", address(host, host == 0 ? 0 : first_of_second_, ipv6_).c_str(), 1);
  }
  [[nodiscard]] bool set_link(int host, size_t rail, const std::string& state) const {
    return in(host, "link set rail" + std::to_string(rail) + " " + state);
  }
  [[nodiscard]] bool remove_address(int host, size_t rail) const {
    return in(host, "address flush dev rail" + std::to_string(rail));
  }

  // In place of a host. Without its switch a rail loses every frame, and no host is told.
  static constexpr int switches = 2;

 private:
  static std::string address(int host, size_t rail, bool ipv6) {
    const std::string end = std::to_string(host + 1);
    return ipv6 ? "fd7" + std::to_string(rail) + "::" + end
                : "10.7" + std::to_string(rail) + ".0." + end;
  }
  // Bursts are cut up before they enter the cable, as an interface of hardware does.
  void add_rail(size_t rail, int rate) {
    const std::string cable = "rail" + std::to_string(rail);
    require(in(switches, "link add " + cable + " type bridge") &&
            in(switches, "link set " + cable + " up"));
    for (int host = 0; host < 2; ++host) {
      const std::string port = "port" + std::to_string(rail) + "-" + std::to_string(host);
      require(
          in(host,
             "link add " + cable + " type veth peer name " + port + " netns " + name(switches)) &&
          in(switches, "link set " + port + " master " + cable + " up") &&
          in(host, "address add " + address(host, rail, false) + "/24 dev " + cable) &&
          in(host, "address add " + address(host, rail, true) + "/64 dev " + cable + " nodad") &&
          in(host, "link set " + cable + " gso_max_segs 1 up") &&
          run_command("tc -n " + name(host) + " qdisc add dev " + cable + " root tbf rate " +
                      std::to_string(rate) + "mbit burst 16kb latency 20ms"));
    }
  }

  bool ipv6_ = false;
  size_t first_of_second_ = 0;
};

// What the target saw of a stream. In memory that the ranks share.
struct Seen {
  std::atomic<double> seconds{0};
  std::atomic<double> longest_gap_s{0};  // without Pauses
  std::atomic<uint64_t> late_bytes{0};   // of the last sixth of the messages, by `Stream::watched`
  std::atomic<uint64_t> sent_bytes[PTL_LINTEL_RAILS]{};  // in frames, by each port of the initiator
};

struct Stream {
  int puts = 0;
  size_t bytes = 0;
  int in_flight = 4;
  std::string watched = "rail1";
};

void expect_stream(const Interface& interface, Rank& rank, const Stream& stream, Seen& seen) {
  std::vector<std::byte> memory(stream.bytes);
  const EventQueue events(interface.handle(), 4096);
  accept_puts(interface, pt_index, memory, events.handle());
  const Pauses pauses;
  rank.barrier();
  Clock::time_point first{};
  Clock::time_point last{};
  uint64_t before_bytes = 0;
  for (int i = 0; i < stream.puts; ++i) {
    // Each message once, in order.
    EXPECT_EQ(events.expect(PTL_EVENT_PUT).hdr_data, static_cast<ptl_hdr_data_t>(i));
    const Clock::time_point now = Clock::now();
    if (i == 0) first = last = now;
    seen.longest_gap_s = std::max(seen.longest_gap_s.load(), Seconds(now - last).count());
    last = now;
    if (i == stream.puts * 5 / 6) before_bytes = received_bytes(stream.watched);
  }
  seen.late_bytes = received_bytes(stream.watched) - before_bytes;
  seen.seconds = Seconds(last - first).count();
  seen.longest_gap_s = std::max(0.0, seen.longest_gap_s - pauses.longest_s());
  rank.barrier();
  events.expect_empty();
}

template <typename Before>
void send_stream(const Interface& interface, Rank& rank, const Stream& stream, const Before& before,
                 Seen& seen) {
  std::vector<std::byte> memory(stream.bytes);
  const Counter acks(interface.handle());
  const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                              acks.handle());
  rank.barrier();
  ptl_ct_event_t ignored;
  for (int i = 0; i < stream.puts; ++i) {
    before(i);
    if (i >= stream.in_flight)
      must(PtlCTWait(acks.handle(), static_cast<ptl_size_t>(i - stream.in_flight + 1), &ignored));
    must(PtlPut(descriptor.handle(), 0, stream.bytes, PTL_ACK_REQ, interface.address(1), pt_index,
                0, 0, nullptr, static_cast<ptl_hdr_data_t>(i)));
  }
  acks.expect(static_cast<ptl_size_t>(stream.puts));
  EXPECT_EQ(interface.status(PTL_SR_LINTEL_PEERS_FAILED), 0);
  for (unsigned i = 0; i < PTL_LINTEL_RAILS; ++i)
    seen.sent_bytes[i] = static_cast<uint64_t>(interface.status(PTL_SR_LINTEL_RAIL_BYTES + i));
  rank.barrier();
}

class RailsTest : public testing::Test {
 protected:
  RailsTest() {
    void* const memory =
        mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    seen_ = new (memory) Seen;
  }
  ~RailsTest() override { munmap(seen_, sizeof(Seen)); }

  static std::string why_not() {
    if (geteuid() != 0) return "network namespaces need root";
    return run_command("ip -V") && run_command("tc -V") ? ""
                                                        : "ip and tc (iproute2) are not installed";
  }
  // `prepare`: called with each rank on its host.
  template <typename Prepare, typename Before>
  void run_on(const RailedHosts& hosts, const Prepare& prepare, const Stream& stream,
              const Before& before) {
    new (seen_) Seen;
    const RunOptions options{.environment = {{"PTL_UDP_OPEN", "1"}}, .deadline = 2 * test_deadline};
    run_ranks(2, options, [&](Rank& rank) {
      hosts.enter(rank.index());
      prepare(rank.index());
      const Interface interface(rank, matching_physical);
      if (rank.index() == 0)
        send_stream(interface, rank, stream, before, *seen_);
      else
        expect_stream(interface, rank, stream, *seen_);
    });
  }

  // Cuts a rail after some messages, and heals it 2 s later.
  template <typename Prepare>
  void expect_survival(const RailedHosts& hosts, const Prepare& prepare, size_t rail, int host) {
    const Stream stream{
        .puts = 1200, .bytes = 64 * 1024, .in_flight = 8, .watched = "rail" + std::to_string(rail)};
    run_on(hosts, prepare, stream, [&](int message) {
      if (message != 300) return;
      EXPECT_TRUE(hosts.set_link(host, rail, "down"));
      std::thread([&hosts, host, rail] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        EXPECT_TRUE(hosts.set_link(host, rail, "up"));
      }).detach();
    });
    RecordProperty("longest_gap_s", std::to_string(seen_->longest_gap_s));
    EXPECT_LT(seen_->longest_gap_s, 1.5);
    // It is back.
    EXPECT_GT(seen_->late_bytes, stream.puts / 6 * stream.bytes / 8);
  }

  Seen* seen_;
};

class RailsNetwork : public RailsTest {
 protected:
  static auto over_udp(const std::string& rails) {
    return [rails](int) {
      setenv("PTL_TRANSPORT", "udp", 1);
      setenv("PTL_RAILS", rails.c_str(), 1);
    };
  }
  template <typename Before>
  void run(const RailedHosts& hosts, const std::string& rails, const Stream& stream,
           const Before& before) {
    run_on(hosts, over_udp(rails), stream, before);
  }
};

// spec 3.15.2
TEST_F(RailsNetwork, AStreamTakesTheSumOfTheRails) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  const RailedHosts hosts({100, 100});
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  const Stream stream{.puts = 24, .bytes = 1 << 20};
  const auto nothing = [](int) {};
  run(hosts, "1", stream, nothing);
  const double one_s = seen_->seconds;
  run(hosts, "auto", stream, nothing);
  const double both_s = seen_->seconds;
  RecordProperty("gain", std::to_string(one_s / both_s));
  // Two rails give about 1.9 times the rate; a busy machine may spoil part of that.
  EXPECT_GT(one_s, 1.3 * both_s);
  EXPECT_GT(seen_->late_bytes, stream.puts / 6 * stream.bytes / 4);
}

// spec 3.15.2
TEST_F(RailsNetwork, ARailIsUsedThroughARouter) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  RailedHosts hosts({100, 100});
  hosts.route(1);
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  const Stream stream{.puts = 24, .bytes = 1 << 20};
  run(hosts, "auto", stream, [](int) {});
  EXPECT_GT(seen_->late_bytes, stream.puts / 6 * stream.bytes / 4);
}

// The first address of each is in the network of the second rail of the other.
// spec 3.15.2
TEST_F(RailsNetwork, CrossedNetworksArePaired) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  RailedHosts hosts({100, 100});
  hosts.cross();
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  const Stream stream{.puts = 24, .bytes = 1 << 20, .watched = "rail0"};
  run(hosts, "auto", stream, [](int) {});
  EXPECT_GT(seen_->late_bytes, stream.puts / 6 * stream.bytes / 4);
}

// spec 3.15.2
TEST_F(RailsNetwork, AStreamTakesTheRailsOverIpv6) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  RailedHosts hosts({100, 100});
  hosts.use_ipv6();
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  const Stream stream{.puts = 24, .bytes = 1 << 20};
  run(hosts, "auto", stream, [](int) {});
  EXPECT_GT(seen_->late_bytes, stream.puts / 6 * stream.bytes / 4);
}

// Without a rail that host has no link; see RailedHosts::switches.
struct Cut {
  size_t rail;
  int host;
};
void PrintTo(const Cut& cut, std::ostream* out) {
  *out << "rail " << cut.rail << " of host " << cut.host;
}

class RailsNetworkStart : public RailsNetwork, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Host, RailsNetworkStart, testing::Values(0, 1, RailedHosts::switches));

// spec 3.15.2
TEST_P(RailsNetworkStart, TheFirstMessageNeedsNoFirstRail) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  const RailedHosts hosts({100, 100});
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  run(hosts, "auto", {.puts = 40, .bytes = 64 * 1024}, [&](int message) {
    if (message != 0) return;
    EXPECT_TRUE(hosts.set_link(GetParam(), 0, "down"));
  });
}

// spec 3.15.2
TEST_F(RailsNetwork, TheFirstMessageReachesAHostWithoutItsFirstAddress) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  const RailedHosts hosts({100, 100});
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  run(hosts, "auto", {.puts = 40, .bytes = 64 * 1024}, [&](int message) {
    if (message != 0) return;
    EXPECT_TRUE(hosts.remove_address(1, 0));
  });
}

class RailsNetworkLoss : public RailsNetwork, public testing::WithParamInterface<Cut> {};
INSTANTIATE_TEST_SUITE_P(Rail, RailsNetworkLoss,
                         testing::Values(Cut{0, 1}, Cut{1, 1}, Cut{0, RailedHosts::switches},
                                         Cut{1, RailedHosts::switches}));

// spec 3.13.3
TEST_P(RailsNetworkLoss, AStreamGoesOnWithoutOneRail) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  const RailedHosts hosts({100, 100});
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  const auto [rail, host] = GetParam();
  expect_survival(hosts, over_udp("auto"), rail, host);
}

// Ports of DPDK in place of network interfaces.
class EthernetRailsTest : public RailsTest {
 protected:
  static std::string why_not() {
    const std::string why = RailsTest::why_not();
    return why.empty() ? why_no_ethernet(Ethernet::af_packet) : why;
  }
  // Joins these rails, for host 1 in reverse order if `crossed`.
  static auto over_ports(std::vector<size_t> rails, bool crossed = false) {
    return [rails, crossed](int host) {
      std::string ports;
      for (const size_t rail : rails)
        ports +=
            (ports.empty() ? "" : "+") + port(crossed && host == 1 ? rails.back() - rail : rail);
      setenv("PTL_TRANSPORT", "dpdk", 1);
      setenv("PTL_LOCAL_RANK", "0", 1);
      setenv("PTL_DPDK_PORTS", ports.c_str(), 1);
    };
  }
  void expect_sum(const RailedHosts& hosts, bool crossed) {
    const Stream stream{.puts = 24, .bytes = 1 << 20};
    run_on(hosts, over_ports({0, 1}, crossed), stream, [](int) {});
    EXPECT_GT(seen_->late_bytes, stream.puts / 6 * stream.bytes / 4);
    EXPECT_LT(seen_->late_bytes, stream.puts / 6 * stream.bytes * 3 / 4);
    for (unsigned i = 0; i < PTL_LINTEL_RAILS; ++i)
      EXPECT_EQ(seen_->sent_bytes[i] > stream.puts * stream.bytes / 4, i < 2) << i;
  }

 private:
  static std::string port(size_t rail) {
    const std::string number = std::to_string(rail);
    return "net_af_packet" + number + ",iface=rail" + number +
           ",qdisc_bypass=0,blocksz=4096,framesz=2048,framecnt=512";
  }
};

// spec 3.15.2
TEST_F(EthernetRailsTest, AStreamTakesAllPorts) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  const RailedHosts hosts({100, 100});
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  expect_sum(hosts, false);
}

// Which ports are joined is found out.
// spec 3.15.2
TEST_F(EthernetRailsTest, CrossedPortsArePaired) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  const RailedHosts hosts({100, 100});
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  expect_sum(hosts, true);
}

// All ports hear all questions of Discovery.
// spec 3.15.2
TEST_F(EthernetRailsTest, PortsOfOneEthernetArePaired) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  RailedHosts hosts({100, 100});
  hosts.join_rails();
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  expect_sum(hosts, false);
}

class EthernetRailsLossTest : public EthernetRailsTest, public testing::WithParamInterface<Cut> {};
INSTANTIATE_TEST_SUITE_P(Port, EthernetRailsLossTest,
                         testing::Values(Cut{1, 1}, Cut{0, RailedHosts::switches}));

// spec 3.13.3
TEST_P(EthernetRailsLossTest, AStreamGoesOnWithoutOnePort) {
  if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  const RailedHosts hosts({100, 100});
  if (!hosts.ready()) GTEST_SKIP() << "this kernel or container does not permit veth and tbf";
  expect_survival(hosts, over_ports({0, 1}), GetParam().rail, GetParam().host);
}

}  // namespace
}  // namespace lintel::test
