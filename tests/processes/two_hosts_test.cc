// Two hosts: network namespaces with a cable between them. Without any configuration, messages
// within a host use shared memory, and messages between the hosts use UDP. Needs root.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "support/hosts_exchange.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

bool run_command(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

// Two namespaces joined by a veth pair; both end with this object.
class TwoHosts {
 public:
  TwoHosts() : name_("lintel-test-" + std::to_string(getpid())) {
    const std::string a = host(0);
    const std::string b = host(1);
    ready_ = run_command("ip netns add " + a) && run_command("ip netns add " + b) &&
             run_command("ip -n " + a + " link add cable type veth peer name cable netns " + b) &&
             configure(a, "10.77.0.1") && configure(b, "10.77.0.2");
  }
  TwoHosts(const TwoHosts&) = delete;
  ~TwoHosts() {
    run_command("ip netns del " + host(0));
    run_command("ip netns del " + host(1));
  }
  [[nodiscard]] bool ready() const { return ready_; }
  // Moves this process, which must have only one thread, to a host.
  void enter(int index) const {
    const int fd = open(("/run/netns/" + host(index)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
    close(fd);
  }

 private:
  [[nodiscard]] std::string host(int index) const { return name_ + (index == 0 ? "-a" : "-b"); }
  static bool configure(const std::string& host, const std::string& address) {
    const std::string ip = "ip -n " + host + " ";
    return run_command(ip + "link set lo up") && run_command(ip + "link set cable up") &&
           run_command(ip + "address add " + address + "/24 dev cable");
  }
  std::string name_;
  bool ready_ = false;
};

// spec 3.15.2
TEST(TwoHostsTest, SharedMemoryWithinAndUdpBetween) {
  if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  if (!run_command("ip -V")) GTEST_SKIP() << "the command ip (iproute2) is not installed";
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

}  // namespace
}  // namespace lintel::test
