// Nobody answers for a while, and nobody has died: a link that is down, a job that is suspended as
// a whole.
#include <portals4_lintel.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "support/host_pair.h"
#include "support/hosts_exchange.h"
#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/random_stream.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr auto outage = std::chrono::seconds(2);
constexpr ptl_pt_index_t pt_index = 4;

// Two hosts with a cable. Their kernels give up a neighbour that does not answer after 60 ms, and
// not after 3 s.
class CabledHosts : public HostPair {
 public:
  CabledHosts() : HostPair("outage") {
    join("cable");
    for (int host = 0; host < 2; ++host)
      require(in(host, "address add 10.77.0." + std::to_string(host + 1) + "/24 dev cable") &&
              in(host, "ntable change name arp_cache dev cable retrans 20") &&
              set_link(host, "up"));
  }
  // `state`: up or down.
  [[nodiscard]] bool set_link(int host, const std::string& state) const {
    return in(host, "link set cable " + state);
  }
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

class SuspendedJobTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Progress, SuspendedJobTest, testing::Values("auto", "caller"),
                         [](const auto& tested) { return std::string(tested.param); });

// Two processes put to each other all the time. The third one stops both for longer than the
// time-out, as a batch system does, and continues them one after the other.
// spec 3.13.3
TEST_P(SuspendedJobTest, GoesOn) {
  constexpr int turns_flag = 1;
  constexpr int end_flag = 2;
  constexpr uint64_t turns = 50;
  constexpr auto suspension = std::chrono::milliseconds(2500);
  constexpr auto stagger = std::chrono::milliseconds(200);
  const RunOptions options{
      .environment = {{"PTL_PEER_TIMEOUT_MS", "1000"}, {"PTL_PROGRESS", GetParam()}},
      .deadline = test_deadline};
  run_ranks(3, options, [&](Rank& rank) {
    std::vector<std::byte> memory(64 * 1024);
    const Interface interface(rank, matching_physical);
    accept_puts(interface, pt_index, memory, PTL_EQ_NONE);
    rank.publish(1, getpid());
    rank.barrier();
    if (rank.index() == 2) {
      const std::array<pid_t, 2> job{rank.published<pid_t>(0, 1), rank.published<pid_t>(1, 1)};
      rank.await(0, turns_flag, turns);
      rank.await(1, turns_flag, turns);
      // The one that is stopped last waits for an answer then, and goes on first.
      ASSERT_EQ(::kill(job[0], SIGSTOP), 0);
      std::this_thread::sleep_for(stagger);
      ASSERT_EQ(::kill(job[1], SIGSTOP), 0);
      std::this_thread::sleep_for(suspension);
      const uint64_t before = rank.flag(0, turns_flag);
      ASSERT_EQ(::kill(job[1], SIGCONT), 0);
      std::this_thread::sleep_for(stagger);
      ASSERT_EQ(::kill(job[0], SIGCONT), 0);
      rank.await(0, turns_flag, before + turns);
      rank.raise(end_flag);
    } else {
      const Counter acks(interface.handle());
      const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                                  acks.handle());
      uint64_t turn = 1;
      for (; rank.flag(2, end_flag) == 0; ++turn) {
        const ptl_size_t length = turn % 7 == 0 ? memory.size() : 8;
        must(PtlPut(descriptor.handle(), 0, length, PTL_CT_ACK_REQ,
                    interface.address(1 - rank.index()), pt_index, 0, 0, nullptr, 0));
        acks.expect(turn);
        rank.raise(turns_flag, turn);
      }
      // Answers the other one until that has ended, too.
      rank.raise(end_flag);
      const ptl_handle_ct_t counter = acks.handle();
      ptl_ct_event_t ignored;
      unsigned which = 0;
      while (rank.flag(1 - rank.index(), end_flag) == 0)
        EXPECT_EQ(PtlCTPoll(&counter, &turn, 1, 1, &ignored, &which), PTL_CT_NONE_REACHED);
    }
    EXPECT_EQ(interface.status(PTL_SR_LINTEL_PEERS_FAILED), 0);
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
