// Nobody answers for a while, and nobody has died.
#include <fcntl.h>
#include <portals4_lintel.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "support/hosts_exchange.h"
#include "support/interface.h"
#include "support/random_stream.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr auto outage = std::chrono::seconds(2);

// Two hosts, which are network namespaces with a cable; removed with this object. Their kernels
// give up a neighbour that does not answer after 60 ms, and not after 3 s.
class CabledHosts {
 public:
  CabledHosts() {
    ready_ = run_command("ip netns add " + name(0)) && run_command("ip netns add " + name(1)) &&
             in(0, "link add cable type veth peer name cable netns " + name(1));
    for (int host = 0; host < 2; ++host)
      ready_ = ready_ && in(host, "link set lo up") &&
               in(host, "address add 10.77.0." + std::to_string(host + 1) + "/24 dev cable") &&
               in(host, "ntable change name arp_cache dev cable retrans 20") &&
               set_link(host, "up");
  }
  CabledHosts(const CabledHosts&) = delete;
  ~CabledHosts() {
    for (int host = 0; host < 2; ++host)
      static_cast<void>(run_command("ip netns del " + name(host)));
  }
  [[nodiscard]] bool ready() const { return ready_; }
  void enter(int host) const {
    const int fd = open(("/run/netns/" + name(host)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
    close(fd);
  }
  // `state`: up or down.
  [[nodiscard]] bool set_link(int host, const std::string& state) const {
    return in(host, "link set cable " + state);
  }

 private:
  [[nodiscard]] std::string name(int host) const {
    return "lintel-outage-" + std::to_string(owner_) + "-" + std::to_string(host);
  }
  [[nodiscard]] bool in(int host, const std::string& command) const {
    return run_command("ip -n " + name(host) + " " + command);
  }

  const pid_t owner_ = getpid();
  bool ready_ = false;
};

// First the end of the target is down, so that the kernel of the initiator finds nobody there; then
// that of the initiator, which then has no route.
// spec 3.15.2
TEST(OutageNetwork, AStreamSurvivesALinkThatIsDownForAWhile) {
  if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  if (!run_command("ip -V")) GTEST_SKIP() << "the command ip (iproute2) is not installed";
  const CabledHosts hosts;
  if (!hosts.ready())
    GTEST_SKIP() << "this kernel or container does not permit namespaces with veth";
  const RunOptions options{.environment = {{"PTL_TRANSPORT", "udp"},
                                           {"PTL_UDP_OPEN", "1"},
                                           {"PTL_PEER_TIMEOUT_MS", "120000"}},
                           .deadline = 2 * test_deadline};
  run_ranks(2, options, [&](Rank& rank) {
    hosts.enter(rank.index());
    const Interface interface(rank, matching_physical);
    std::array<std::thread, 2> up_again;
    RandomStream stream{.messages = 300, .largest = 50'000};
    stream.before = [&](uint64_t message) {
      if (message % 100 != 0 || message == 0) return;
      const auto host = static_cast<int>(message == 100);
      EXPECT_TRUE(hosts.set_link(host, "down"));
      up_again.at(static_cast<size_t>(host)) = start_thread([&hosts, host] {
        std::this_thread::sleep_for(outage);
        EXPECT_TRUE(hosts.set_link(host, "up"));
      });
    };
    exchange(stream, rank, interface);
    for (std::thread& thread : up_again)
      if (thread.joinable()) thread.join();
    EXPECT_EQ(interface.status(PTL_SR_LINTEL_PEERS_FAILED), 0);
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
