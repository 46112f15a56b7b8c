// Ethernets through DPDK: peers that die and return at another port, two processes with
// the same name, and hosts with shared memory.
#include "support/ethernet.h"

#include <portals4_lintel.h>

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/hosts_exchange.h"
#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

class EthernetTest : public testing::TestWithParam<Ethernet> {};

std::string ethernet_name(const testing::TestParamInfo<Ethernet>& info) {
  return info.param == Ethernet::memif ? "memif" : "af_packet";
}
INSTANTIATE_TEST_SUITE_P(Ethernets, EthernetTest,
                         testing::Values(Ethernet::memif, Ethernet::af_packet), ethernet_name);

RunOptions options() {
  return {.environment = {{"PTL_PEER_TIMEOUT_MS", "3000"}}, .deadline = 2 * test_deadline};
}

bool is_there(Ethernet ethernet, std::string& why) {
  why = why_no_ethernet(ethernet);
  if (why.empty()) prepare_ethernet(ethernet);
  return why.empty();
}

// Puts to `peer` and returns how the operation ended.
ptl_ni_fail_t put(const EventQueue& events, const Descriptor& descriptor, ptl_process_t peer,
                  ptl_size_t length) {
  must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, peer, pt_index, 0, 0, nullptr, 0));
  for (;;) {
    const ptl_event_t event = events.next();
    if (event.type != PTL_EVENT_SEND || event.ni_fail_type != PTL_NI_OK) return event.ni_fail_type;
  }
}

// Arrivals at such ports wake no thread. Two processes begin to exchange messages while both sleep.
// Afterwards they stay awake, unless other programs use the processors.
// spec 3.13.8
TEST_P(EthernetTest, TwoWhoAnswerEachOtherStayAwake) {
  std::string why;
  if (!is_there(GetParam(), why)) GTEST_SKIP() << why;
  run_ranks(2, options(), [](Rank& rank) {
    constexpr int attempts = 10;
    constexpr int round_trips = 200;
    constexpr ptl_sr_value_t few = 5;
    join_ethernet(rank.index(), GetParam());
    rank.initialise();
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    std::vector<std::byte> memory(64);
    accept_puts(interface, pt_index, memory, events.handle(), PTL_ME_EVENT_LINK_DISABLE);
    const Descriptor descriptor(interface.handle(), memory);
    rank.barrier();
    const ptl_process_t peer = interface.address(1 - rank.index());
    const auto send = [&] {
      must(PtlPut(descriptor.handle(), 0, 8, PTL_NO_ACK_REQ, peer, pt_index, 0, 0, nullptr, 0));
    };
    int awake = 0;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      // Wait until this rank sleeps; both ranks sleep when the first message is sent.
      const ptl_sr_value_t awake_until_now = interface.status(PTL_SR_LINTEL_SLEEPS);
      const auto deadline = std::chrono::steady_clock::now() + wait_deadline;
      while (interface.status(PTL_SR_LINTEL_SLEEPS) == awake_until_now) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        std::this_thread::yield();
      }
      rank.barrier();
      if (rank.index() == 0) send();
      const ptl_sr_value_t before = interface.status(PTL_SR_LINTEL_SLEEPS);
      for (int i = 0; i < round_trips; ++i) {
        events.expect(PTL_EVENT_PUT);
        if (rank.index() == 1 || i + 1 < round_trips) send();
      }
      if (interface.status(PTL_SR_LINTEL_SLEEPS) - before <= few) ++awake;
    }
    EXPECT_GE(awake, attempts / 2);
  });
}

// Rank 2 takes the place of rank 1, which is killed while it receives: the same nid, pid and port.
// spec 3.13.3
TEST_P(EthernetTest, APeerIsKilledAndComesBack) {
  std::string why;
  if (!is_there(GetParam(), why)) GTEST_SKIP() << why;
  run_ranks(3, options(), [&](Rank& rank) {
    constexpr int ready = 0;
    constexpr int gone = 1;
    constexpr int done = 2;
    const ptl_pid_t pid = rank.reserved_pid(rank.index() == 0 ? 0 : 1);
    std::vector<std::byte> memory(200'000);
    if (rank.index() == 2) rank.await(0, gone, 1);
    join_ethernet(rank.index() == 0 ? 0 : 1, GetParam());
    rank.initialise();
    const Interface interface(matching_physical, {.pid = pid});
    const EventQueue events(interface.handle(), 4096);
    if (rank.index() != 0) {
      accept_puts(interface, pt_index, memory, events.handle(), PTL_ME_EVENT_COMM_DISABLE);
      rank.raise(ready);
      rank.await(0, done, 1);
      return;
    }
    ptl_process_t peer{};
    must(PtlGetPhysId(interface.handle(), &peer));
    peer.phys.pid = rank.reserved_pid(1);
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    rank.await(1, ready, 1);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(put(events, descriptor, peer, 100'000), PTL_NI_OK);
    // Rank 1 is killed with messages in progress.
    for (int i = 0; i < 4; ++i)
      must(PtlPut(descriptor.handle(), 0, 100'000, PTL_NO_ACK_REQ, peer, pt_index, 0, 0, nullptr,
                  0));
    rank.kill(1);
    for (int i = 0; i < 4; ++i) {
      const ptl_event_t event = events.next();
      EXPECT_EQ(event.type, PTL_EVENT_SEND) << describe(event);
    }
    EXPECT_EQ(put(events, descriptor, peer, 8), PTL_NI_UNDELIVERABLE);
    rank.raise(gone);
    rank.await(2, ready, 1);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(put(events, descriptor, peer, 100'000), PTL_NI_OK) << i;
    rank.raise(done);
  });
}

// spec 3.6.2
TEST(EthernetNamesTest, APidThatIsInUseElsewhereIsRefused) {
  std::string why;
  if (!is_there(Ethernet::af_packet, why)) GTEST_SKIP() << why;
  run_ranks(2, options(), [&](Rank& rank) {
    setenv("PTL_NID", "10.78.0.9", 1);
    join_ethernet(rank.index(), Ethernet::af_packet);
    rank.initialise();
    if (rank.index() == 0) {
      const Interface interface(matching_physical, {.pid = 77});
      rank.barrier();
      rank.barrier();
      return;
    }
    rank.barrier();
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, 77, nullptr, nullptr,
                        &handle),
              PTL_PID_IN_USE);
    // The port can be opened again, and another pid is available.
    const Interface interface(matching_physical, {.pid = 78});
    rank.barrier();
  });
}

// Four processes, each with a port of its own by its local rank.
// spec 3.15.2
TEST(EthernetHostsTest, SharedMemoryWithinAndPortsBetween) {
  std::string why;
  if (!is_there(Ethernet::hosts, why)) GTEST_SKIP() << why;
  constexpr int ranks = 4;
  run_ranks(ranks, options(), [&](Rank& rank) {
    join_ethernet(rank.index(), Ethernet::hosts);
    put_all_to_all(rank, 0x0a4e0001, 0x0a4e0002);
    // Only two of the four messages of a mebibyte came through the port: none from this host.
    const uint64_t bytes = received_bytes("port" + std::to_string(rank.index()));
    EXPECT_GT(bytes, 2 * largest_exchanged_put);
    EXPECT_LT(bytes, 3 * largest_exchanged_put);
    rank.barrier();
  });
}

// spec 3.15.2
TEST(EthernetHostsTest, MessagesOfAllSizesArriveOverANarrowPath) {
  std::string why;
  if (!is_there(Ethernet::hosts, why)) GTEST_SKIP() << why;
  set_mtu_between_hosts(1500);
  run_ranks(4, {.environment = {}, .deadline = 2 * test_deadline}, [&](Rank& rank) {
    join_ethernet(rank.index(), Ethernet::hosts);
    EXPECT_NE(put_all_to_all(rank, 0x0a4e0001, 0x0a4e0002), 0u);
    rank.barrier();
  });
  set_mtu_between_hosts(9000);
}

}  // namespace
}  // namespace lintel::test
