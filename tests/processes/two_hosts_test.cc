// Two hosts: network namespaces with a cable between them. Without any configuration, messages
// within a host use shared memory, and messages between the hosts use UDP. Needs root.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "support/hosts_exchange.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

// What is between the hosts.
enum class Between {
  cable,
  bridge,  // loses frames that are longer than it takes
  router,  // tells the sender, too
};

struct Mtus {
  int of_first = 1500;
  int of_second = 1500;
  int between = 1500;
};

// Two namespaces joined by veth pairs, perhaps with a third one between them; they end with this
// object.
class TwoHosts {
 public:
  explicit TwoHosts(Between between = Between::cable, const Mtus& mtus = {})
      : name_("lintel-test-" + std::to_string(getpid())) {
    const std::string a = host(0);
    const std::string b = host(1);
    const std::string second = between == Between::router ? "10.78.0.2" : "10.77.0.2";
    ready_ = run_command("ip netns add " + a) && run_command("ip netns add " + b) &&
             (between == Between::cable
                  ? join(a, "cable", b, "cable")
                  : run_command("ip netns add " + middle()) && join(a, "cable", middle(), "p0") &&
                        join(b, "cable", middle(), "p1")) &&
             configure(a, "10.77.0.1", mtus.of_first) && configure(b, second, mtus.of_second);
    if (!ready_ || between == Between::cable) return;
    const std::string ip = "ip -n " + middle() + " ";
    for (const char* port : {"p0", "p1"})
      ready_ = ready_ &&
               run_command(ip + "link set " + port + " up mtu " + std::to_string(mtus.between));
    ready_ = ready_ && (between == Between::bridge ? make_bridge(ip) : make_router(ip));
  }
  TwoHosts(const TwoHosts&) = delete;
  ~TwoHosts() {
    for (const std::string& name : {host(0), host(1), middle()})
      static_cast<void>(run_command("ip netns del " + name));
  }
  [[nodiscard]] bool ready() const { return ready_; }
  // Moves this process, which must have only one thread, to a host.
  void enter(int index) const {
    const int fd = open(("/run/netns/" + host(index)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
    close(fd);
    ASSERT_TRUE(await_links());
  }

 private:
  [[nodiscard]] std::string host(int index) const { return name_ + (index == 0 ? "-a" : "-b"); }
  [[nodiscard]] std::string middle() const { return name_ + "-m"; }
  static bool join(const std::string& host, const std::string& interface, const std::string& other,
                   const std::string& other_interface) {
    return run_command("ip -n " + host + " link add " + interface + " type veth peer name " +
                       other_interface + " netns " + other);
  }
  // Bursts are cut up before they enter the cable, as an interface of hardware does: veth lets
  // those that are not cut up pass, however long their frames are.
  static bool configure(const std::string& host, const std::string& address, int mtu) {
    const std::string ip = "ip -n " + host + " ";
    return run_command(ip + "link set lo up") &&
           run_command(ip + "link set cable gso_max_segs 1 up mtu " + std::to_string(mtu)) &&
           run_command(ip + "address add " + address + "/24 dev cable");
  }
  static bool make_bridge(const std::string& ip) {
    return run_command(ip + "link add bridge type bridge") &&
           run_command(ip + "link set p0 master bridge") &&
           run_command(ip + "link set p1 master bridge") && run_command(ip + "link set bridge up");
  }
  bool make_router(const std::string& ip) const {
    return run_command(ip + "address add 10.77.0.254/24 dev p0") &&
           run_command(ip + "address add 10.78.0.254/24 dev p1") &&
           run_command("ip netns exec " + middle() +
                       " sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'") &&
           run_command("ip -n " + host(0) + " route add default via 10.77.0.254") &&
           run_command("ip -n " + host(1) + " route add default via 10.78.0.254");
  }
  std::string name_;
  bool ready_ = false;
};

std::string why_no_hosts() {
  if (geteuid() != 0) return "network namespaces need root";
  return run_command("ip -V") ? "" : "the command ip (iproute2) is not installed";
}

// spec 3.15.2
TEST(TwoHostsTest, SharedMemoryWithinAndUdpBetween) {
  if (const std::string why = why_no_hosts(); !why.empty()) GTEST_SKIP() << why;
  const TwoHosts hosts;
  if (!hosts.ready())
    GTEST_SKIP() << "this kernel or container does not permit namespaces with veth";
  constexpr int ranks = 4;  // 0 and 1 on the first host, 2 and 3 on the second
  run_ranks(ranks, {.environment = {}, .deadline = 2 * test_deadline}, [&](Rank& rank) {
    hosts.enter(rank.index() / 2);
    put_all_to_all(rank, 0x0a4d0001, 0x0a4d0002);
    // Messages from the other host crossed the cable; messages within the host crossed no network.
    EXPECT_GT(received_bytes("cable"), 4 * largest_exchanged_put);
    EXPECT_LT(received_bytes("lo"), largest_exchanged_put / 16);
    rank.barrier();
  });
}

struct Path {
  const char* name;
  Between between;
  Mtus mtus;
  bool loses;  // frames of the length that both interfaces take
};

class NarrowPath : public testing::TestWithParam<Path> {};

// spec 3.15.2
TEST_P(NarrowPath, MessagesOfAllSizesArrive) {
  if (const std::string why = why_no_hosts(); !why.empty()) GTEST_SKIP() << why;
  const TwoHosts hosts(GetParam().between, GetParam().mtus);
  if (!hosts.ready())
    GTEST_SKIP() << "this kernel or container does not permit namespaces with veth and bridges";
  const ptl_nid_t second = GetParam().between == Between::router ? 0x0a4e0002 : 0x0a4d0002;
  run_ranks(2, {.environment = {}, .deadline = 2 * test_deadline}, [&](Rank& rank) {
    hosts.enter(rank.index());
    const uint64_t narrowed = put_all_to_all(rank, 0x0a4d0001, second);
    EXPECT_EQ(narrowed != 0, GetParam().loses);
    rank.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(
    Hosts, NarrowPath,
    testing::Values(Path{"jumbo_to_standard", Between::cable, {9000, 1500, 0}, false},
                    Path{"standard_to_jumbo", Between::cable, {1500, 9000, 0}, false},
                    Path{"bridge", Between::bridge, {9000, 9000, 1500}, true},
                    Path{"narrow_bridge", Between::bridge, {1500, 1500, 800}, true},
                    Path{"router", Between::router, {9000, 9000, 1500}, true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lintel::test
