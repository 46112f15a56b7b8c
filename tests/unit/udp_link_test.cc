// The link over UDP sockets: bursts, segments, addresses, ports, and the thread that watches them.
#include "udp/udp_link.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "reliable/answer_limit.h"
#include "reliable/faulty_link.h"
#include "reliable/quiet_link.h"
#include "shm_test_support.h"
#include "util/descriptor_watch.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {
namespace {

using test::pattern;
using test::wait_until;

// Tries pids until one has a free port.
std::unique_ptr<UdpLink> open_link(const std::string& interface = "lo", uint32_t frame_bytes = 0) {
  static uint32_t next = 20000 + static_cast<uint32_t>(getpid()) % 10000;
  UdpSettings settings;
  settings.host = find_udp_host(interface);
  settings.frame_bytes = frame_bytes;
  std::unique_ptr<UdpLink> link;
  std::string reason;
  for (unsigned tries = 0; tries < 1000; ++tries) {
    settings.pid = next++;
    const OpenStatus status = UdpLink::open(settings, link, reason);
    if (status != OpenStatus::pid_in_use) break;
  }
  EXPECT_NE(link, nullptr) << reason;
  return link;
}

struct Arrived {
  LinkAddress from;
  std::vector<std::byte> bytes;
};

std::vector<Arrived> receive(UdpLink& link, size_t count) {
  std::vector<Arrived> all;
  EXPECT_TRUE(wait_until([&] {
    InboundFrame frames[32];
    const unsigned got = link.receive(frames, 32);
    for (unsigned i = 0; i < got; ++i)
      all.push_back({*frames[i].from, {frames[i].data, frames[i].data + frames[i].length}});
    return all.size() >= count;
  }));
  return all;
}

Route route_between(UdpLink& from, const UdpLink& to) {
  Route route;
  std::string reason;
  EXPECT_EQ(from.resolve(to.id(), route, &reason), ResolveStatus::resolved) << reason;
  EXPECT_EQ(route.address, to.own_address());
  return route;
}

TEST(UdpLinkTest, BurstsOfAllShapesArriveInOrderAndIntact) {
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  // Equal lengths, which the kernel may divide; different lengths; a mixture. Each frame has two
  // pieces.
  const std::vector<std::vector<size_t>> bursts = {
      {8},
      {1400, 1400, 1400, 1400, 700},
      {100, 200, 300, 50},
      std::vector<size_t>(64, 1000),
      {9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 5},
      {600, 600, 900, 900, 100, 100}};
  uint64_t number = 0;
  for (const std::vector<size_t>& lengths : bursts) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::array<Piece, 2>> pieces;
    std::vector<OutboundFrame> frames;
    for (const size_t length : lengths) bytes.push_back(pattern(number++, length));
    for (std::vector<std::byte>& b : bytes)
      pieces.push_back(
          {Piece{b.data(), b.size() / 3}, Piece{b.data() + b.size() / 3, b.size() - b.size() / 3}});
    for (const auto& p : pieces) frames.push_back({&route.address, p.data(), 2, false});
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

// Anonymous memory that contains a pattern.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    data_ = static_cast<std::byte*>(memory);
    const std::vector<std::byte> content = pattern(7, bytes);
    std::copy(content.begin(), content.end(), data_);
  }
  Pages(const Pages&) = delete;
  ~Pages() { munmap(data_, bytes_); }
  [[nodiscard]] std::byte* data() const { return data_; }
  void forbid() const { EXPECT_EQ(mprotect(data_, bytes_, PROT_NONE), 0); }

 private:
  size_t bytes_;
  std::byte* data_ = nullptr;
};

constexpr size_t long_payload = 15 * 4096;

bool sends_in_place(const UdpLink& link) {
  return link.describe().find("no copies of long payloads") != std::string::npos;
}

void expect_payloads_that_stay(const std::string& interface) {
  const auto first = open_link(interface);
  const auto second = open_link(interface);
  const Route route = route_between(*first, *second);
  const Pages pages(2 * long_payload);
  std::vector<std::byte> header = pattern(1, 96);
  std::vector<std::byte> tag = pattern(2, 16);
  uint64_t frames_sent = 0;
  for (const size_t length : {size_t{16}, size_t{16384}, size_t{20001}, long_payload}) {
    for (const size_t offset : {0, 1, 2000, 4095, 4096}) {
      for (const unsigned count : {2u, 3u}) {
        const std::array<Piece, 3> pieces = {Piece{header.data(), header.size()},
                                             Piece{pages.data() + offset, length},
                                             Piece{tag.data(), tag.size()}};
        const Piece alone{tag.data(), tag.size()};
        const OutboundFrame frames[] = {{&route.address, pieces.data(), count, true},
                                        {&route.address, pieces.data(), count, true},
                                        {&route.address, &alone, 1, false},
                                        {&route.address, pieces.data(), count, true}};
        std::vector<std::byte> expected = header;
        expected.insert(expected.end(), pages.data() + offset, pages.data() + offset + length);
        if (count == 3) expected.insert(expected.end(), tag.begin(), tag.end());
        ASSERT_EQ(first->send(frames, 4), 4u);
        frames_sent += 4;
        const std::vector<Arrived> arrived = receive(*second, 4);
        ASSERT_EQ(arrived.size(), 4u);
        for (size_t i = 0; i < 4; ++i) {
          EXPECT_EQ(arrived[i].from, first->own_address());
          ASSERT_EQ(arrived[i].bytes, i == 2 ? tag : expected) << length << " at " << offset;
        }
      }
    }
  }
  EXPECT_EQ(first->counters().frames_sent, frames_sent);
  EXPECT_EQ(first->counters().bytes_sent, second->counters().bytes_received);
  EXPECT_EQ(first->counters().send_errors, 0u);
  EXPECT_EQ(sends_in_place(*first), sends_in_place(*second)) << "it did not give up";
}

TEST(UdpLinkTest, PayloadsThatStayArriveInOrderAndIntact) { expect_payloads_that_stay("lo"); }

TEST(UdpLinkTest, PayloadsThatStayArriveOverIPv6) {
  if (!find_udp_host("::1").found) GTEST_SKIP() << "the loopback has no IPv6 address here";
  expect_payloads_that_stay("::1");
}

TEST(UdpLinkTest, ALongPayloadThatStaysIsNotCopied) {
  const auto first = open_link();
  const auto second = open_link();
  if (!sends_in_place(*first)) GTEST_SKIP() << "the kernel does not send pages by reference";
  const Route route = route_between(*first, *second);
  const Pages pages(long_payload);
  std::byte header{};
  const Piece pieces[] = {{&header, 1}, {pages.data(), long_payload}};
  for (const bool stays : {false, true}) {
    const OutboundFrame frame{&route.address, pieces, 2, stays};
    const std::byte before = pages.data()[5000];
    ASSERT_EQ(first->send(&frame, 1), 1u);
    pages.data()[5000] = ~before;
    EXPECT_EQ(receive(*second, 1)[0].bytes[1 + 5000], stays ? ~before : before);
  }
}

TEST(UdpLinkTest, AFrameOfOnePieceThatStaysIsNotCopied) {
  for (const size_t length : {size_t{16384}, size_t{50'000}, long_payload + 96}) {
    const auto first = open_link();
    const auto second = open_link();
    if (!sends_in_place(*first)) GTEST_SKIP() << "the kernel does not send pages by reference";
    EXPECT_LE(first->least_referred_bytes(), length);
    const Route route = route_between(*first, *second);
    const Pages pages(16 * 4096);
    const std::vector<std::byte> content(pages.data(), pages.data() + length);
    const Piece piece{pages.data(), length};
    for (const bool stays : {false, true}) {
      const OutboundFrame frame{&route.address, &piece, 1, stays};
      const OutboundFrame frames[] = {frame, frame, frame};
      for (const unsigned count : {1u, 3u}) {
        ASSERT_EQ(first->send(frames, count), count);
        const std::byte before = pages.data()[5000];
        pages.data()[5000] = ~before;
        for (Arrived& arrived : receive(*second, count)) {
          EXPECT_EQ(arrived.from, first->own_address());
          ASSERT_EQ(arrived.bytes.size(), length);
          EXPECT_EQ(arrived.bytes[5000], stays ? ~before : before);
          arrived.bytes[5000] = before;
          EXPECT_EQ(arrived.bytes, content);
        }
        pages.data()[5000] = before;
      }
    }
    EXPECT_EQ(first->counters().send_errors, 0u);
    EXPECT_TRUE(sends_in_place(*first));
  }
}

// What the kernel copies fills one page after the other. A piece that begins in one and ends in the
// next makes one fragment more, which may be too many for that frame.
TEST(UdpLinkTest, ManyPayloadsThatStayAreInFlight) {
  const auto first = open_link();
  const auto second = open_link();
  const bool in_place = sends_in_place(*first);
  const Route route = route_between(*first, *second);
  const Pages pages(2 * long_payload);
  std::vector<std::byte> header = pattern(1, 80);
  std::vector<std::byte> tag = pattern(2, 16);
  constexpr size_t in_flight = 20;
  for (const size_t offset : {0, 100}) {
    for (const unsigned count : {2u, 3u}) {
      const Piece pieces[] = {{header.data(), header.size()},
                              {pages.data() + offset, long_payload},
                              {tag.data(), tag.size()}};
      const OutboundFrame frame{&route.address, pieces, count, true};
      std::vector<std::byte> expected = header;
      expected.insert(expected.end(), pages.data() + offset, pages.data() + offset + long_payload);
      if (count == 3) expected.insert(expected.end(), tag.begin(), tag.end());
      size_t sent = 0;
      size_t received = 0;
      while (sent < 1000) {
        sent += first->send(&frame, 1);
        if (sent - received < in_flight) continue;
        for (const Arrived& arrived : receive(*second, 1)) {
          ++received;
          ASSERT_TRUE(arrived.bytes == expected) << offset << ", " << count << " pieces";
        }
      }
      receive(*second, sent - received);
    }
  }
  EXPECT_EQ(first->counters().send_errors, 0u);
  EXPECT_EQ(sends_in_place(*first), in_place) << "it did not give up";
}

// From now on the kernel refuses splice() to this thread. False: it has no such filters.
bool refuse_splice() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_splice, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(UdpLinkTest, FramesAreCopiedIfTheKernelRefusesAndThatIsReportedOnce) {
  bool possible = false;
  set_log_level(LogLevel::warn);
  testing::internal::CaptureStderr();
  std::thread([&] {
    const auto first = open_link();
    const auto second = open_link();
    possible = sends_in_place(*first) && refuse_splice();
    if (!possible) return;
    const Route route = route_between(*first, *second);
    const Pages pages(long_payload);
    std::byte header{};
    const Piece pieces[] = {{&header, 1}, {pages.data(), long_payload}};
    for (unsigned i = 0; i < 2 * UdpSplicer::most_refusals; ++i) {
      const bool is_whole = i % 2 != 0;
      const OutboundFrame frame{&route.address, is_whole ? &pieces[1] : pieces, is_whole ? 1u : 2u,
                                true};
      ASSERT_EQ(sends_in_place(*first), i < UdpSplicer::most_refusals);
      ASSERT_EQ(first->send(&frame, 1), 1u);
      const Arrived arrived = receive(*second, 1)[0];
      ASSERT_EQ(arrived.bytes.size(), frame_bytes(frame));
      EXPECT_TRUE(
          std::equal(arrived.bytes.end() - long_payload, arrived.bytes.end(), pages.data()));
    }
    EXPECT_NE(first->describe().find("are copied (splice: Operation not permitted)"),
              std::string::npos)
        << first->describe();
    EXPECT_EQ(first->counters().send_errors, 0u);
  }).join();
  const std::string log = testing::internal::GetCapturedStderr();
  if (!possible) GTEST_SKIP() << "no pages by reference here, or no filters of system calls";
  EXPECT_NE(log.find("the kernel does not send by reference (splice: Operation not permitted)"),
            std::string::npos)
      << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

// Such a loss is permitted by PacketLink::sends_from_anywhere().
TEST(UdpLinkTest, AFrameWhoseMemoryIsGoneIsLostAndNoOther) {
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  const Pages good(long_payload);
  const Pages gone(long_payload);
  gone.forbid();
  std::byte header{};
  const Piece bad_pieces[] = {{&header, 1}, {gone.data(), long_payload}};
  const Piece good_pieces[] = {{&header, 1}, {good.data(), long_payload}};
  const OutboundFrame frames[] = {{&route.address, good_pieces, 2, true},
                                  {&route.address, bad_pieces, 2, true},
                                  {&route.address, good_pieces, 2, true}};
  const bool in_place = sends_in_place(*first);
  ASSERT_EQ(first->send(frames, 3), 3u);
  for (const Arrived& arrived : receive(*second, 2)) {
    ASSERT_EQ(arrived.bytes.size(), 1 + long_payload);
    EXPECT_TRUE(std::equal(arrived.bytes.begin() + 1, arrived.bytes.end(), good.data()));
  }
  EXPECT_EQ(first->counters().send_errors, 1u);
  EXPECT_EQ(sends_in_place(*first), in_place);
}

TEST(UdpLinkTest, ThreadsSendPayloadsThatStayAtTheSameTime) {
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  const Pages pages(long_payload);
  constexpr unsigned senders = 3;
  constexpr unsigned each = 16;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < senders; ++i)
    threads.emplace_back([&, i] {
      std::byte header{static_cast<unsigned char>(i)};
      const Piece pieces[] = {{&header, 1}, {pages.data(), long_payload}};
      const OutboundFrame frame{&route.address, pieces, 2, true};
      for (unsigned sent = 0; sent < each;) sent += first->send(&frame, 1);
    });
  unsigned of[senders] = {};
  for (const Arrived& arrived : receive(*second, size_t{senders} * each)) {
    ASSERT_EQ(arrived.bytes.size(), 1 + long_payload);
    ++of[static_cast<unsigned>(arrived.bytes[0])];
    ASSERT_TRUE(std::equal(arrived.bytes.begin() + 1, arrived.bytes.end(), pages.data()));
  }
  for (std::thread& thread : threads) thread.join();
  for (const unsigned count : of) EXPECT_EQ(count, each);
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
    for (const Piece& piece : pieces) frames.push_back({&route.address, &piece, 1, false});
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

// Sockets connected to peers are only used for sending.
TEST(UdpLinkTest, ManyProcessesOfANodeSendToEachOther) {
  std::vector<std::unique_ptr<UdpLink>> links;
  for (unsigned i = 0; i < UdpPeerSockets::most + 8; ++i) links.push_back(open_link());
  const auto first = open_link();
  UdpLink& hub = *first;
  std::byte byte{};
  const Piece piece{&byte, 1};
  for (const auto& link : links) {
    const Route there = route_between(*link, hub);
    const Route back = route_between(hub, *link);
    for (unsigned turn = 0; turn < 3; ++turn) {
      const OutboundFrame request{&there.address, &piece, 1, false};
      ASSERT_EQ(link->send(&request, 1), 1u);
      EXPECT_EQ(receive(hub, 1)[0].from, link->own_address());
      const OutboundFrame answer{&back.address, &piece, 1, false};
      ASSERT_EQ(hub.send(&answer, 1), 1u);
      EXPECT_EQ(receive(*link, 1)[0].from, hub.own_address());
    }
  }
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
      const std::vector<OutboundFrame> frames(count, {&route.address, &piece, 1, false});
      unsigned sent = 0;
      EXPECT_TRUE(wait_until([&] {
        sent += first->send(frames.data() + sent, count - sent);
        return sent == count;
      }));
      for (const Arrived& arrived : receive(*second, count)) EXPECT_EQ(arrived.bytes, bytes);
    }
    // Sent without a copy.
    const Piece pieces[] = {{bytes.data(), 100}, {bytes.data() + 100, bytes.size() - 100}};
    const OutboundFrame frame{&route.address, pieces, 2, true};
    EXPECT_EQ(first->send(&frame, 1), 1u);
    EXPECT_EQ(receive(*second, 1)[0].bytes, bytes);
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
  const UdpHost host = find_udp_host("lo");
  AnswerLimit limit(udp_host_mask());
  for (uint64_t i = 0; i < AnswerLimit::at_once; ++i)
    EXPECT_TRUE(limit.admit(udp_address_of(host, {host.nid, static_cast<uint32_t>(1 + i)}), 1));
  EXPECT_FALSE(limit.admit(udp_address_of(host, {host.nid, 30'000}), 1));
}

TEST(UdpLinkTest, AnInterfaceIsFoundByNameAndByAddress) {
  const UdpHost by_name = find_udp_host("lo");
  ASSERT_TRUE(by_name.found);
  EXPECT_EQ(by_name.nid, 0x7f000001u);
  const UdpHost by_address = find_udp_host("127.0.0.1");
  EXPECT_EQ(by_address.nid, by_name.nid);
  const UdpHost none = find_udp_host("no-such-interface");
  EXPECT_FALSE(none.found);
  EXPECT_NE(none.reason.find("no-such-interface"), std::string::npos);
  EXPECT_TRUE(find_udp_host("").found);
}

TEST(UdpLinkTest, IPv6NidsAreTheEndOfTheAddress) {
  const UdpHost host = find_udp_host("::1");
  if (!host.found) GTEST_SKIP() << "the loopback has no IPv6 address here";
  EXPECT_TRUE(host.ipv6);
  EXPECT_EQ(host.nid, 1u);
  const auto first = open_link("::1");
  const auto second = open_link("::1");
  const Route route = route_between(*first, *second);
  std::vector<std::byte> bytes = pattern(1, 1200);
  const Piece piece{bytes.data(), bytes.size()};
  const OutboundFrame frame{&route.address, &piece, 1, false};
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
  const OutboundFrame frame{&nowhere.address, &piece, 1, false};
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

TEST(DescriptorWatchTest, NoticesWhatArrivesOnceWhileEnabled) {
  const auto first = open_link();
  const auto second = open_link();
  const Route route = route_between(*first, *second);
  std::atomic<bool> noticed{false};
  Doorbell doorbell;
  DescriptorWatch watch;
  std::string reason;
  ASSERT_TRUE(watch.start(second->descriptor(), noticed, doorbell, reason)) << reason;
  std::byte byte{};
  const Piece piece{&byte, 1};
  const OutboundFrame frame{&route.address, &piece, 1, false};
  // Data that arrived before enable() are reported, too.
  ASSERT_EQ(first->send(&frame, 1), 1u);
  const uint32_t seen = doorbell.announce_sleep();
  EXPECT_FALSE(noticed.load());
  watch.enable();
  EXPECT_TRUE(wait_until([&] { return noticed.load() && doorbell.rings.load() != seen; }));
  receive(*second, 1);
  noticed = false;
  EXPECT_TRUE(watch.is_idle());
  watch.enable();
  EXPECT_FALSE(watch.is_idle());
  ASSERT_EQ(first->send(&frame, 1), 1u);
  EXPECT_TRUE(wait_until([&] { return noticed.load(); }));
  // After detach(), the watch can be enabled again.
  receive(*second, 1);
  noticed = false;
  watch.detach();
  EXPECT_FALSE(watch.is_idle());
  ASSERT_EQ(first->send(&frame, 1), 1u);
  receive(*second, 1);
  EXPECT_FALSE(noticed.load());
  watch.enable();
  ASSERT_EQ(first->send(&frame, 1), 1u);
  EXPECT_TRUE(wait_until([&] { return noticed.load(); }));
  watch.stop();
  EXPECT_FALSE(watch.running());
}

// How many epoll descriptors of this process watch this descriptor.
unsigned watches_of(int descriptor) {
  unsigned count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    int watched = 0;
    for (std::string word; file >> word;)
      if (word == "tfd:" && file >> watched && watched == descriptor) ++count;
  }
  return count;
}

// An arrival then costs the sender less.
TEST(QuietUdpLinkTest, IsNotWatchedWhileItIsAskedOften) {
  const auto first = open_link();
  const auto second = open_link();
  const ReliableSettings settings;
  ReliableCounters counters;
  PollerWakeup wakeup;
  ConnectionTimers timers(wakeup);
  Doorbell doorbell;
  QuietLink quiet({*second, settings, counters}, wakeup, timers);
  quiet.watch(doorbell);
  for (unsigned turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(quiet.arm());
    EXPECT_EQ(watches_of(second->descriptor()), 1u);
    for (unsigned i = 0; i < 2 * QuietLink::polls_until_detached; ++i) quiet.asked(1, i);
    EXPECT_EQ(watches_of(second->descriptor()), 1u) << "another thread may sleep";
    const Route route = route_between(*first, *second);
    std::byte byte{};
    const Piece piece{&byte, 1};
    const OutboundFrame frame{&route.address, &piece, 1, false};
    ASSERT_EQ(first->send(&frame, 1), 1u);
    EXPECT_TRUE(wait_until([&] { return wakeup.is_set(); }));
    receive(*second, 1);
    for (unsigned i = 0; i < QuietLink::polls_until_detached; ++i) {
      EXPECT_EQ(watches_of(second->descriptor()), 1u);
      quiet.asked(1, i);
    }
    EXPECT_EQ(watches_of(second->descriptor()), 0u);
  }
  quiet.stop();
}

TEST(FaultsTest, AreReadOrRefused) {
  Faults faults;
  std::string reason;
  EXPECT_TRUE(Faults::parse("drop=0.01,dup=0.02,reorder=0.03,corrupt=0.5,seed=7", faults, reason));
  EXPECT_EQ(faults.drop, 0.01);
  EXPECT_EQ(faults.dup, 0.02);
  EXPECT_EQ(faults.reorder, 0.03);
  EXPECT_EQ(faults.corrupt, 0.5);
  EXPECT_EQ(faults.seed, 7u);
  EXPECT_TRUE(Faults::parse("", faults, reason));
  EXPECT_FALSE(faults.any());
  for (const char* wrong :
       {"drop=2", "drop=-1", "drop=x", "drop", "lose=0.1", "seed=-1", "drop=0.1x"}) {
    EXPECT_FALSE(Faults::parse(wrong, faults, reason)) << wrong;
    EXPECT_EQ(reason, wrong);
  }
}

TEST(FaultsTest, TheSameSeedGivesTheSameFaults) {
  const auto run = [](uint64_t seed) {
    FaultyLink link(open_link(),
                    {.drop = 0.2, .dup = 0.1, .reorder = 0.1, .corrupt = 0.1, .seed = seed});
    const LinkAddress self = link.own_address();
    std::vector<std::byte> bytes = pattern(1, 100);
    const Piece piece{bytes.data(), bytes.size()};
    const OutboundFrame frame{&self, &piece, 1, false};
    for (unsigned i = 0; i < 1000; ++i) {
      EXPECT_EQ(link.send(&frame, 1), 1u);
      InboundFrame arrived[8];
      while (link.receive(arrived, 8) != 0) {
      }
    }
    return link.fault_counters();
  };
  const FaultCounters once = run(5);
  const FaultCounters again = run(5);
  const FaultCounters other = run(6);
  EXPECT_EQ(once.dropped, again.dropped);
  EXPECT_EQ(once.doubled, again.doubled);
  EXPECT_EQ(once.reordered, again.reordered);
  EXPECT_EQ(once.corrupted, again.corrupted);
  EXPECT_NEAR(static_cast<double>(once.dropped), 200, 60);
  EXPECT_NE(std::tie(once.dropped, once.doubled, once.reordered),
            std::tie(other.dropped, other.doubled, other.reordered));
}

}  // namespace
}  // namespace lintel
