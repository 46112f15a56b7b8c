// RDMA devices: few queue pairs for many peers, networks that are interrupted for a while or for
// good. Over queue pairs, and with datagrams only.
#include "support/rdma.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/ethernet.h"
#include "support/hosts_exchange.h"
#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/pauses.h"
#include "support/random_stream.h"
#include "support/ranks.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

using Environment = std::vector<std::pair<std::string, std::string>>;

class RdmaTest : public testing::TestWithParam<Rdma> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
  }
  static void run(int count, Environment environment, const std::function<void(Rank&)>& body) {
    run_ranks(count, {.environment = std::move(environment), .deadline = 4 * test_deadline},
              [&](Rank& rank) {
                join_rdma(rank.index(), GetParam());
                body(rank);
              });
  }
};

std::string rdma_name(const testing::TestParamInfo<Rdma>& info) {
  return info.param == Rdma::connected ? "verbs" : "verbs_ud";
}
INSTANTIATE_TEST_SUITE_P(Devices, RdmaTest, testing::Values(Rdma::connected, Rdma::datagrams),
                         rdma_name);

// spec 3.15.2
TEST_P(RdmaTest, ALongStreamOfAllSizesArrivesByteForByte) {
  // With datagrams an emulated machine moves a megabyte a second.
  const bool slow = machine_slowdown() > 1 && GetParam() == Rdma::datagrams;
  const uint64_t messages = !long_tests() ? 300 : slow ? 2'000 : 20'000;
  run(2, {{"PTL_PEER_TIMEOUT_MS", rdma_timeout_ms()}}, [messages](Rank& rank) {
    const Interface interface(rank, matching_physical);
    exchange({.messages = messages, .largest = 300'000}, rank, interface);
  });
}

// The network interface of a software device at one end of a cable; empty if this device has none.
std::string cable_end_of(const std::string& device) {
  std::string name;
  std::getline(std::ifstream("/sys/class/infiniband/" + device + "/parent"), name);
  return name;
}

class RdmaLinkTest : public RdmaTest {
 protected:
  void SetUp() override {
    RdmaTest::SetUp();
    if (IsSkipped()) return;
    const std::vector<std::string> devices = rdma_devices();
    if (devices.size() >= 2) cable_end_ = cable_end_of(devices[0]);
    if (cable_end_.empty())
      GTEST_SKIP() << "needs two software devices with a cable between them (tests/vm)";
  }
  void TearDown() override {
    if (!cable_end_.empty()) set_link("up");
  }
  void set_link(const std::string& state) { set_link(cable_end_, state); }
  static void set_link(const std::string& cable_end, const std::string& state) {
    const std::string command = "ip link set " + cable_end + " " + state;
    if (!run_command(command)) ADD_FAILURE() << "failed: " << command;
  }

 private:
  std::string cable_end_;
};
INSTANTIATE_TEST_SUITE_P(Devices, RdmaLinkTest, testing::Values(Rdma::connected, Rdma::datagrams),
                         rdma_name);

// spec 3.15.2, 3.13.3
TEST_P(RdmaLinkTest, AStreamSurvivesAnInterruption) {
  // Longer than the interruption and the recovery.
  run(2, {{"PTL_PEER_TIMEOUT_MS", std::to_string(10'000 * machine_slowdown())}},
      [this](Rank& rank) {
        const Interface interface(rank, matching_physical);
        std::thread up_again;
        RandomStream stream{.messages = 500, .largest = 100'000};
        stream.before = [&](uint64_t message) {
          if (message != 200) return;
          set_link("down");
          up_again = start_thread([this] {
            std::this_thread::sleep_for(std::chrono::seconds(1));  // length of the outage
            set_link("up");
          });
        };
        exchange(stream, rank, interface);
        if (up_again.joinable()) up_again.join();
      });
}

// Each rank has a port at each of two cables. The first one is cut for a while: messages, and what
// was read and written over it, go by the other one.
// spec 3.15.2, 3.13.3
TEST_P(RdmaLinkTest, AStreamGoesOnByASecondCable) {
  if (!std::filesystem::exists("/sys/class/infiniband/rail0"))
    GTEST_SKIP() << "needs two cables (tests/vm)";
  const std::string timeout_ms = std::to_string(20'000 * machine_slowdown());
  run(2, {{"PTL_PEER_TIMEOUT_MS", timeout_ms}}, [this](Rank& rank) {
    const std::string rail = std::to_string(rank.index());
    setenv("PTL_VERBS_DEVICE", ("rxe" + rail + "+rail" + rail).c_str(), 1);
    const Interface interface(rank, matching_physical);
    RandomStream stream{.messages = 600, .largest = 100'000};
    stream.before = [this](uint64_t message) {
      // Until the last third has gone.
      if (message == 200) set_link("down");
      if (message == 400) set_link("up");
    };
    exchange(stream, rank, interface);
  });
}

// Parts of what is read and written go by the second cable, until it is cut and after. The target
// takes the time between messages.
// spec 3.15.2, 3.13.3
TEST_P(RdmaLinkTest, LongMessagesGoOnByTheFirstCable) {
  if (GetParam() == Rdma::datagrams) GTEST_SKIP() << "all goes as datagrams";
  if (!std::filesystem::exists("/sys/class/infiniband/rail0"))
    GTEST_SKIP() << "needs two cables (tests/vm)";
  const std::string timeout_ms = std::to_string(20'000 * machine_slowdown());
  run(2, {{"PTL_PEER_TIMEOUT_MS", timeout_ms}}, [](Rank& rank) {
    const std::string rail = std::to_string(rank.index());
    setenv("PTL_VERBS_DEVICE", ("rxe" + rail + "+rail" + rail).c_str(), 1);
    const std::string second = cable_end_of("rail" + rail);
    const Interface interface(rank, matching_physical);
    RandomStream stream{.messages = 240, .largest = 3'000'000};
    // Beside the stream: the command takes a while.
    std::vector<std::thread> changes;
    stream.before = [&](uint64_t message) {
      if (message == 80) changes.push_back(start_thread([&] { set_link(second, "down"); }));
      if (message == 160) changes.push_back(start_thread([&] { set_link(second, "up"); }));
    };
    using Clock = std::chrono::steady_clock;
    Clock::time_point last = Clock::time_point::max();
    Clock::duration longest{};
    const Pauses pauses;
    stream.arrived = [&] {
      const Clock::time_point now = Clock::now();
      if (now > last) longest = std::max(longest, now - last);
      last = now;
    };
    exchange(stream, rank, interface);
    for (std::thread& change : changes) change.join();
    const double gap_s =
        std::max(0.0, std::chrono::duration<double>(longest).count() - pauses.longest_s());
    if (rank.index() == 1) std::fprintf(stderr, "longest gap: %.3f s\n", gap_s);
    EXPECT_LT(gap_s, 1.5 * machine_slowdown());
  });
}

// spec 3.13.3
TEST_P(RdmaLinkTest, OperationsEndWhenItStaysDown) {
  run(2, {{"PTL_PEER_TIMEOUT_MS", "2000"}}, [this](Rank& rank) {
    std::vector<std::byte> memory(1u << 20u);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle(), 1024);
    accept_puts(interface, pt_index, memory, PTL_EQ_NONE);
    rank.barrier();
    if (rank.index() == 0) {
      const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
      const auto put = [&](ptl_size_t length) {
        must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, interface.address(1), pt_index, 0,
                    0, nullptr, 0));
      };
      put(8);
      events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
      set_link("down");
      constexpr int count = 20;
      for (int i = 0; i < count; ++i) put(i % 2 == 0 ? 8 : memory.size());
      for (int ended = 0; ended < count; ++ended) {
        // After a successful send, the acknowledgment reports the failure.
        ptl_event_t event = events.next();
        while (event.type == PTL_EVENT_SEND && event.ni_fail_type == PTL_NI_OK)
          event = events.next();
        EXPECT_EQ(event.ni_fail_type, PTL_NI_UNDELIVERABLE) << "operation " << ended;
      }
      set_link("up");
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test
