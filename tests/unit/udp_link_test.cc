// The link over UDP sockets: bursts, segments, addresses and ports.
#include "udp/udp_link.h"

#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "reliable/cookie.h"
#include "support/ethernet.h"
#include "udp/udp_address.h"
#include "udp_test_support.h"
#include "util/guarded_memory.h"

namespace lintel::test {
namespace {

void expect_bursts(const std::string& interface) {
  const auto first = open_link(interface);
  const auto second = open_link(interface);
  const Route route = route_between(*first, *second);
  // Equal lengths, which the kernel may divide; different lengths; a mixture. Each frame has two
  // pieces.
  const std::vector<std::vector<size_t>> bursts = {
      {8},
      {1400, 1400, 1400, 1400, 700},
      {100, 200, 300, 50},
      std::vector<size_t>(64, 1000),
      {9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 5},
      {600, 600, 900, 900, 100, 100},
      {60000, 60000, 16, 60000}};
  uint64_t number = 0;
  for (const std::vector<size_t>& lengths : bursts) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::array<Piece, 2>> pieces;
    std::vector<OutboundFrame> frames;
    for (const size_t length : lengths) bytes.push_back(pattern(number++, length));
    for (std::vector<std::byte>& b : bytes)
      pieces.push_back(
          {Piece{b.data(), b.size() / 3}, Piece{b.data() + b.size() / 3, b.size() - b.size() / 3}});
    for (const auto& p : pieces) frames.push_back({&route.address, p.data(), 2});
    ASSERT_EQ(first->send(frames.data(), static_cast<unsigned>(frames.size())), frames.size());
    const std::vector<Arrived> arrived = receive(*second, lengths.size());
    ASSERT_EQ(arrived.size(), lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      EXPECT_EQ(arrived[i].from, first->own_address());
      ASSERT_EQ(arrived[i].bytes, bytes[i]) << i;
    }
  }
  EXPECT_EQ(first->counters().frames_sent, number);
  EXPECT_EQ(second->counters().frames_received, number);
  EXPECT_EQ(first->counters().bytes_sent, second->counters().bytes_received);
}

TEST(UdpLinkTest, BurstsOfAllShapesArriveInOrderAndIntact) { expect_bursts("lo"); }

TEST(UdpLinkTest, BurstsArriveOverIPv6) {
  if (!find_udp_host("::1").is_found()) GTEST_SKIP() << "the loopback has no IPv6 address here";
  expect_bursts("::1");
}

// Such a loss is permitted by LinkProperties::sends_from_anywhere.
TEST(UdpLinkTest, AFrameWhoseMemoryIsGoneIsLostAndNoOther) {
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  constexpr size_t length = 50'000;
  void* const gone = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  std::vector<std::byte> bytes = pattern(1, 1 + length);
  const Piece good_pieces[] = {{bytes.data(), 1}, {bytes.data() + 1, length}};
  const Piece bad_pieces[] = {{bytes.data(), 1}, {static_cast<std::byte*>(gone), length}};
  const OutboundFrame frames[] = {{&route.address, good_pieces, 2},
                                  {&route.address, bad_pieces, 2},
                                  {&route.address, good_pieces, 2}};
  ASSERT_EQ(first->send(frames, 3), 3u);
  for (const Arrived& arrived : receive(*second, 2)) EXPECT_EQ(arrived.bytes, bytes);
  EXPECT_EQ(first->counters().send_errors, 1u);
  munmap(gone, length);
}

// Short frames are joined before the system call, which finds the memory of one of them gone.
TEST(UdpLinkTest, FramesOfOneDatagramAreLostTogetherIfMemoryOfOneIsGone) {
  install_fault_handler();
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  constexpr size_t length = 1000;
  void* const gone = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  const std::vector<std::byte> bytes = pattern(1, length);
  const Piece good{const_cast<std::byte*>(bytes.data()), length};
  const Piece bad[] = {{good.base, 100}, {static_cast<std::byte*>(gone), length - 100}};
  const OutboundFrame frames[] = {
      {&route.address, &good, 1}, {&route.address, bad, 2}, {&route.address, &good, 1}};
  ASSERT_EQ(first->send(frames, 3), 3u);
  EXPECT_EQ(first->counters().send_errors, 3u);
  ASSERT_EQ(first->send(frames + 2, 1), 1u);
  for (const Arrived& arrived : receive(*second, 1)) EXPECT_EQ(arrived.bytes, bytes);
  munmap(gone, length);
}

// After long bursts, the receiver lets the kernel join datagrams; after many short ones, it stops
// that. Neither loses or changes data.
TEST(UdpLinkTest, ShortAndLongFramesTakeTurns) {
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  uint64_t number = 0;
  const auto exchange = [&](unsigned count, size_t length) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<Piece> pieces;
    std::vector<OutboundFrame> frames;
    for (unsigned i = 0; i < count; ++i) bytes.push_back(pattern(number++, length));
    for (std::vector<std::byte>& b : bytes) pieces.push_back({b.data(), b.size()});
    for (const Piece& piece : pieces) frames.push_back({&route.address, &piece, 1});
    ASSERT_EQ(first->send(frames.data(), count), count);
    const std::vector<Arrived> arrived = receive(*second, count);
    ASSERT_EQ(arrived.size(), count);
    for (unsigned i = 0; i < count; ++i) ASSERT_EQ(arrived[i].bytes, bytes[i]) << i;
  };
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 600; ++i) exchange(1, 100);
    for (int i = 0; i < 20; ++i) exchange(8, route.mtu);
  }
  EXPECT_EQ(second->counters().frames_malformed, 0u);
}

TEST(UdpLinkTest, FramesAreAsLongAsTheRouteTakes) {
  const auto first = open_link();
  const auto second = open_link();
  EXPECT_EQ(route_between(*first, *second).mtu, first->mtu()) << "the loopback takes any";
  const auto small = open_link("lo", 1000);
  EXPECT_EQ(small->mtu(), 1000u);
  EXPECT_EQ(route_between(*small, *second).mtu, 1000u);
  EXPECT_EQ(open_link("lo", 1)->mtu(), PacketLink::least_mtu);
}

// Changes a setting of the loopback interface.
bool set_loopback(unsigned long what, ifreq request) {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::strcpy(request.ifr_name, "lo");
  const bool set = ioctl(any, what, &request) == 0;
  close(any);
  return set;
}

// Moves this thread to a network namespace of its own and enables the loopback interface there.
bool have_own_loopback() {
  ifreq request{};
  request.ifr_flags = IFF_UP;
  return unshare(CLONE_NEWNET) == 0 && set_loopback(SIOCSIFFLAGS, request);
}

bool set_loopback_mtu(int bytes) {
  ifreq request{};
  request.ifr_mtu = bytes;
  return set_loopback(SIOCSIFMTU, request);
}

// A connection keeps its frame length, so the kernel has to fragment the frames.
TEST(UdpLinkTest, FramesPassARouteThatHasBecomeNarrower) {
  bool possible = false;
  std::thread([&] {
    possible = have_own_loopback();
    if (!possible) return;
    const auto first = open_link();
    const auto second = open_link();
    const Route route = route_between(*first, *second);
    ASSERT_GT(route.mtu, 20000u);
    ASSERT_TRUE(set_loopback_mtu(1500));
    std::vector<std::byte> bytes = pattern(1, 20000);
    const Piece piece{bytes.data(), bytes.size()};
    // A single frame, and a burst that the kernel would divide.
    for (const unsigned count : {1u, 12u}) {
      const std::vector<OutboundFrame> frames(count, {&route.address, &piece, 1});
      unsigned sent = 0;
      EXPECT_TRUE(wait_until([&] {
        sent += first->send(frames.data() + sent, count - sent);
        return sent == count;
      }));
      for (const Arrived& arrived : receive(*second, count)) EXPECT_EQ(arrived.bytes, bytes);
    }
    EXPECT_EQ(first->counters().send_errors, 0u);
  }).join();
  if (!possible) GTEST_SKIP() << "a network namespace of its own needs root";
}

TEST(UdpLinkTest, APortBelongsToOne) {
  const auto link = open_link();
  UdpSettings settings;
  settings.host = find_udp_host("lo");
  settings.pid = link->id().pid;
  std::unique_ptr<UdpLink> again;
  std::string reason;
  EXPECT_EQ(UdpLink::open(settings, again, reason), OpenStatus::pid_in_use);
  EXPECT_NE(reason.find(std::to_string(port_of_pid(settings.pid))), std::string::npos) << reason;
}

TEST(UdpLinkTest, AForkedChildDoesNotKeepThePortOfItsParent) {
  auto link = open_link();
  UdpSettings settings;
  settings.host = find_udp_host("lo");
  settings.pid = link->id().pid;
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  link.reset();
  // The child may not have closed its copy of the socket yet.
  std::unique_ptr<UdpLink> again;
  std::string reason;
  EXPECT_TRUE(wait_until([&] {
    return UdpLink::open(settings, again, reason) == OpenStatus::opened;
  })) << reason;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(UdpLinkTest, EveryPidHasAPortOfItsOwn) {
  std::set<uint16_t> ports;
  for (uint32_t pid = 0; pid < 65535; ++pid) ports.insert(port_of_pid(pid));
  EXPECT_EQ(ports.size(), 65535u);
  EXPECT_EQ(ports.count(0), 0u);
  EXPECT_EQ(port_of_pid(0), 1024u);
}

TEST(UdpLinkTest, OnlyItsOwnAddressIsBelievedOfAPeer) {
  const auto first = open_link();
  const auto second = open_link();
  Route route;
  EXPECT_TRUE(first->adopt(second->id(), second->own_address(), route));
  EXPECT_EQ(route.address, second->own_address());
  const ProcessId other{second->id().nid, second->id().pid + 1};
  EXPECT_FALSE(first->adopt(other, second->own_address(), route));
}

TEST(UdpLinkTest, TheProcessesOfAHostShareItsAnswers) {
  const NodeIdentity host = find_udp_host("lo");
  AnswerLimit limit(udp_host_mask());
  for (uint64_t i = 0; i < AnswerLimit::at_once; ++i)
    EXPECT_TRUE(limit.admit(udp_address_of(host, {host.nid, static_cast<uint32_t>(1 + i)}), 1));
  EXPECT_FALSE(limit.admit(udp_address_of(host, {host.nid, 30'000}), 1));
}

TEST(UdpLinkTest, IPv6NidsAreTheEndOfTheAddress) {
  const NodeIdentity host = find_udp_host("::1");
  if (!host.is_found()) GTEST_SKIP() << "the loopback has no IPv6 address here";
  EXPECT_TRUE(host.ipv6);
  EXPECT_EQ(host.nid, 1u);
  const auto first = open_link("::1");
  const auto second = open_link("::1");
  const Route route = route_between(*first, *second);
  std::vector<std::byte> bytes = pattern(1, 1200);
  const Piece piece{bytes.data(), bytes.size()};
  const OutboundFrame frame{&route.address, &piece, 1};
  EXPECT_EQ(first->send(&frame, 1), 1u);
  const std::vector<Arrived> arrived = receive(*second, 1);
  EXPECT_EQ(arrived[0].from, first->own_address());
  EXPECT_EQ(arrived[0].bytes, bytes);
  // A different nid changes only the last 32 bits.
  const LinkAddress other = udp_address_of(host, {0x01020304, 5});
  EXPECT_EQ(udp_address_text(other), "[::1.2.3.4]:1029");
}

TEST(UdpLinkTest, WhereNobodyListensIsTold) {
  const auto link = open_link();
  Route nowhere;
  {
    const auto gone = open_link();
    nowhere = route_between(*link, *gone);
  }
  std::byte byte{};
  const Piece piece{&byte, 1};
  const OutboundFrame frame{&nowhere.address, &piece, 1};
  LinkAddress told;
  EXPECT_TRUE(wait_until([&] {
    InboundFrame ignored;
    EXPECT_EQ(link->send(&frame, 1), 1u) << "which does not disturb sending";
    static_cast<void>(link->receive(&ignored, 1));
    return link->take_unreachable(&told, 1) == 1;
  }));
  EXPECT_EQ(told, nowhere.address);
  // Reported addresses that have not been fetched do not prevent sleep.
  pollfd waiting{link->descriptor(), POLLIN, 0};
  EXPECT_TRUE(wait_until([&] {
    static_cast<void>(link->send(&frame, 1));
    return poll(&waiting, 1, 0) == 1;
  }));
  EXPECT_TRUE(wait_until([&] { return link->arm() && poll(&waiting, 1, 0) == 0; }));
}

// The kernel of this node reports a neighbour that does not answer, as while a link is down.
TEST(UdpLinkTest, AHostThatDoesNotAnswerIsNoProofThatAProcessIsGone) {
  bool possible = false;
  std::thread([&] {
    // The neighbour search ends after 60 ms, and not after 3 s.
    possible =
        have_own_loopback() && test::run_command("ip link add near type veth peer name far") &&
        test::run_command("ip address add 10.79.0.1/24 dev near") &&
        test::run_command("ip link set far up") && test::run_command("ip link set near up") &&
        test::run_command("ip ntable change name arp_cache dev near retrans 20");
    if (!possible) return;
    const auto link = open_link("near");
    Route route;
    ASSERT_EQ(link->resolve({0x0a4f0002, 7}, route, nullptr), ResolveStatus::resolved);
    std::byte byte{};
    const Piece piece{&byte, 1};
    const OutboundFrame frame{&route.address, &piece, 1};
    for (unsigned reported = 0; reported < 4; ++reported) {
      pollfd waiting{link->descriptor(), POLLIN, 0};
      ASSERT_TRUE(wait_until([&] {
        return link->send(&frame, 1) == 1 && poll(&waiting, 1, 0) == 1;
      })) << "the kernel reports nothing";
      InboundFrame ignored;
      LinkAddress told;
      static_cast<void>(link->receive(&ignored, 1));
      EXPECT_EQ(link->take_unreachable(&told, 1), 0u);
      static_cast<void>(link->arm());
    }
    // While its own link is down there is no route, which is not for ever either.
    ASSERT_TRUE(test::run_command("ip link set near down"));
    EXPECT_EQ(link->resolve({0x0a4f0002, 7}, route, nullptr), ResolveStatus::no_route);
  }).join();
  if (!possible) GTEST_SKIP() << "a network of its own needs root, and the command ip (iproute2)";
}

}  // namespace
}  // namespace lintel::test
