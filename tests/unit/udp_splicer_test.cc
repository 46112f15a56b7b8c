// Payloads that pass over UDP sockets by reference.
#include "udp/udp_splicer.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "support/system_calls.h"
#include "udp_test_support.h"
#include "util/descriptor.h"
#include "util/log.h"

namespace lintel {
namespace {

using test::Arrived;
using test::open_link;
using test::pattern;
using test::receive;
using test::route_between;
using test::wait_until;

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

TEST(UdpSplicerTest, PayloadsThatStayArriveInOrderAndIntact) { expect_payloads_that_stay("lo"); }

TEST(UdpSplicerTest, PayloadsThatStayArriveOverIPv6) {
  if (!find_udp_host("::1").found) GTEST_SKIP() << "the loopback has no IPv6 address here";
  expect_payloads_that_stay("::1");
}

TEST(UdpSplicerTest, ALongPayloadThatStaysIsNotCopied) {
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

TEST(UdpSplicerTest, AFrameOfOnePieceThatStaysIsNotCopied) {
  for (const size_t length : {size_t{16384}, size_t{50'000}, long_payload + 96}) {
    const auto first = open_link();
    const auto second = open_link();
    if (!sends_in_place(*first)) GTEST_SKIP() << "the kernel does not send pages by reference";
    EXPECT_LE(first->properties().least_referred_bytes, length);
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
TEST(UdpSplicerTest, ManyPayloadsThatStayAreInFlight) {
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

TEST(UdpSplicerTest, FramesAreCopiedIfTheKernelRefusesAndThatIsReportedOnce) {
  bool possible = false;
  set_log_level(LogLevel::warn);
  testing::internal::CaptureStderr();
  std::thread([&] {
    const auto first = open_link();
    const auto second = open_link();
    possible = sends_in_place(*first) && test::answer_calls({{SYS_splice, EPERM}});
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

// From now on the calling thread is an ordinary user that has opened so many pipes that the kernel
// makes further ones short (fs.pipe-user-pages-soft). False: they do not become short here. The
// kernel counts pipes by real user, so no other process may be this user: it could close some.
bool use_up_pipes(std::vector<Descriptor>& pipes) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2]{};
  // Raw system calls change this thread only.
  const uid_t user = 1'000'000 + static_cast<uid_t>(getpid());
  if (syscall(SYS_setresuid, user, user, -1) != 0 && geteuid() == 0) return false;
  if (syscall(SYS_capset, &header, none) != 0) return false;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  for (rlim_t i = 0; i + 100 < files.rlim_cur / 2; ++i) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    pipes.emplace_back(ends[0]);
    pipes.emplace_back(ends[1]);
    if (fcntl(ends[0], F_GETPIPE_SZ) < 65536) return true;
  }
  return false;
}

TEST(UdpSplicerTest, PipesThatAreTooShortAreReported) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlimit before = files;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  bool possible = false;
  std::thread([&] {
    std::vector<Descriptor> pipes;
    possible = UdpSplicer::why_not() == nullptr && use_up_pipes(pipes);
    if (!possible) return;
    const auto link = open_link();
    EXPECT_NE(link->describe().find("fs.pipe-user-pages-soft"), std::string::npos)
        << link->describe();
  }).join();
  setrlimit(RLIMIT_NOFILE, &before);
  if (!possible) GTEST_SKIP() << "pipes are not limited here, or the kernel is too old";
}

// Such a loss is permitted by LinkProperties::sends_from_anywhere.
TEST(UdpSplicerTest, AFrameWhoseMemoryIsGoneIsLostAndNoOther) {
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

TEST(UdpSplicerTest, ThreadsSendPayloadsThatStayAtTheSameTime) {
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

}  // namespace
}  // namespace lintel
