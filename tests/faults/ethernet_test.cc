// Ethernets through DPDK: peers that die and return at another port, foreign frames, two processes
// with the same name, and hosts with shared memory.
#include "support/ethernet.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <portals4_lintel.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <random>
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
constexpr uint16_t ether_type = 0x88b5;

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

int packet_socket(const char* port, std::array<unsigned char, 6>& mac, int& index) {
  const int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ether_type));
  ifreq request{};
  std::strcpy(request.ifr_name, port);
  EXPECT_EQ(ioctl(descriptor, SIOCGIFHWADDR, &request), 0);
  std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  EXPECT_EQ(ioctl(descriptor, SIOCGIFINDEX, &request), 0);
  index = request.ifr_ifindex;
  return descriptor;
}

// Ranks 0 and 1 exchange messages. Rank 2 is at rank 0's end of the cable and sends random frames.
// spec 3.3.7
TEST(EthernetStrangerTest, AFloodOfNonsenseIsCountedAndDoesNoHarm) {
  std::string why;
  if (!is_there(Ethernet::af_packet, why)) GTEST_SKIP() << why;
  run_ranks(3, options(), [&](Rank& rank) {
    std::vector<std::byte> memory(64 * 1024);
    if (rank.index() == 2) {
      enter_host_of(0, Ethernet::af_packet);
      rank.await(1, 1, 1);
      std::array<unsigned char, 6> own_mac{};
      sockaddr_ll to{};
      const int stranger = packet_socket("port0", own_mac, to.sll_ifindex);
      to.sll_family = AF_PACKET;
      to.sll_halen = 6;
      const uint64_t target = rank.flag(1, 1);
      std::mt19937 dice(5);
      std::vector<unsigned char> frame;
      while (rank.flag(0, 0) == 0) {
        frame.resize(14 + dice() % (dice() % 8 == 0 ? 8000 : 200));
        for (unsigned char& byte : frame) byte = static_cast<unsigned char>(dice());
        if (dice() % 4 != 0) std::memcpy(frame.data(), &target, 6);
        if (dice() % 4 == 0) std::memset(frame.data(), 0xff, 6);
        frame[6] = 2;  // from a unicast address
        frame[12] = ether_type >> 8;
        frame[13] = ether_type & 0xff;
        if (frame.size() > 24 && dice() % 2 == 0) {
          const unsigned kind = 1 + dice() % 2;
          const auto word = static_cast<uint16_t>(kind << 14 | (frame.size() - 16));
          std::memcpy(frame.data() + 14, &word, sizeof word);
          frame[16 + 4] = 1;                                        // the version of either kind
          frame[16 + 5] = static_cast<unsigned char>(dice() % 13);  // a type
        }
        sendto(stranger, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to),
               sizeof to);
      }
      close(stranger);
      return;
    }
    join_ethernet(rank.index(), Ethernet::af_packet);
    rank.initialise();
    const ptl_pid_t pid = rank.reserved_pid(rank.index());
    const Interface interface(matching_physical, {.pid = pid});
    const EventQueue events(interface.handle(), 1024);
    ptl_process_t peer{};
    must(PtlGetPhysId(interface.handle(), &peer));
    peer.phys.pid = rank.reserved_pid(1 - rank.index());
    if (rank.index() == 1) {
      fill(memory, 1);
      accept_puts(interface, pt_index, std::span(memory).first(4096), events.handle(),
                  PTL_ME_EVENT_COMM_DISABLE);
      std::array<unsigned char, 6> mac{};
      int ignored = 0;
      close(packet_socket("port1", mac, ignored));
      uint64_t number = 0;
      std::memcpy(&number, mac.data(), mac.size());
      rank.raise(1, number);
      rank.await(0, 0, 1);
      EXPECT_GT(interface.status(PTL_SR_LINTEL_FRAMES_DROPPED), 100);
      EXPECT_EQ(interface.status(PTL_SR_DROP_COUNT), 0);
      expect_pattern(std::span(memory).subspan(4096), 1, 4096);
      rank.raise(2);
    } else {
      rank.await(1, 1, 1);
      const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_SEND_DISABLE,
                                  events.handle());
      const int rounds = long_tests() ? 100'000 : 3'000;
      for (int i = 0; i < rounds; ++i) {
        fill(std::span(memory).first(4096), static_cast<uint32_t>(i));
        EXPECT_EQ(put(events, descriptor, peer, 4096), PTL_NI_OK);
      }
      rank.raise(0);
      rank.await(1, 2, 1);
    }
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
