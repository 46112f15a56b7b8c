// UDP where a filter denies system calls, as the seccomp profiles of some containers do.
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/system_calls.h"
#include "udp/udp_socket.h"
#include "udp_test_support.h"
#include "util/log.h"

namespace lintel::test {
namespace {

// To find the host takes some of the calls.
const NodeIdentity& loopback() {
  static const NodeIdentity host = find_udp_host("lo");
  return host;
}

// What `body` logs in a thread whose calls are answered so.
template <typename Body>
std::string logged_with(std::initializer_list<CallAnswer> answers, const Body& body) {
  set_log_level(LogLevel::warn);
  static_cast<void>(loopback());
  testing::internal::CaptureStderr();
  bool possible = false;
  std::thread([&] {
    possible = answer_calls(answers);
    if (possible) body();
  }).join();
  const std::string log = testing::internal::GetCapturedStderr();
  return possible ? log : "no filters";
}

OpenStatus open_on_loopback(std::unique_ptr<UdpLink>& link, std::string& reason) {
  static uint32_t next = 31'000 + static_cast<uint32_t>(getpid()) % 10'000;
  UdpSettings settings;
  settings.host = loopback();
  for (unsigned tries = 0; tries < 100; ++tries) {
    settings.pid = next++;
    const OpenStatus status = UdpLink::open(settings, link, reason);
    if (status != OpenStatus::pid_in_use) return status;
  }
  return OpenStatus::pid_in_use;
}

void exchange_bursts() {
  std::unique_ptr<UdpLink> first;
  std::unique_ptr<UdpLink> second;
  std::string reason;
  ASSERT_EQ(open_on_loopback(first, reason), OpenStatus::opened) << reason;
  ASSERT_EQ(open_on_loopback(second, reason), OpenStatus::opened) << reason;
  const Route route = route_between(*first, *second);
  for (const size_t length : {100, 1400, 9000}) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<Piece> pieces;
    std::vector<OutboundFrame> frames;
    for (unsigned i = 0; i < 12; ++i) bytes.push_back(pattern(i, length + i % 2));
    for (std::vector<std::byte>& b : bytes) pieces.push_back({b.data(), b.size()});
    for (const Piece& piece : pieces) frames.push_back({&route.address, &piece, 1});
    ASSERT_EQ(first->send(frames.data(), 12), 12u);
    const std::vector<Arrived> arrived = receive(*second, 12);
    ASSERT_EQ(arrived.size(), 12u);
    for (unsigned i = 0; i < 12; ++i) EXPECT_EQ(arrived[i].bytes, bytes[i]) << i;
  }
  EXPECT_EQ(first->counters().send_errors, 0u);
  EXPECT_EQ(second->counters().frames_malformed, 0u);
}

TEST(UdpCallsTest, WithoutCallsForSeveralDatagramsTheyGoOneByOne) {
  for (const int error : {EPERM, ENOSYS}) {
    const std::string log =
        logged_with({{SYS_recvmmsg, error}, {SYS_sendmmsg, error}}, exchange_bursts);
    if (log == "no filters") GTEST_SKIP() << log;
    EXPECT_NE(log.find("recvmmsg is denied"), std::string::npos) << log;
    EXPECT_NE(log.find("sendmmsg is denied"), std::string::npos) << log;
  }
}

TEST(UdpCallsTest, OtherCallsReceiveWhereOneIsDenied) {
  const std::string log =
      logged_with({{SYS_recvfrom, EPERM}, {SYS_sendto, EPERM}}, exchange_bursts);
  if (log == "no filters") GTEST_SKIP() << log;
  EXPECT_EQ(log, "");
}

TEST(UdpCallsTest, WhereNothingCanBeSentOrReceivedTheTransportSaysSo) {
  const std::vector<std::pair<std::vector<long>, const char*>> cases = {
      {{SYS_recvmmsg, SYS_recvfrom}, "recvfrom, like recvmmsg, is denied"},
      {{SYS_sendmsg, SYS_sendmsg}, "sendmsg is denied"}};
  for (const auto& [calls, expected] : cases) {
    std::string reason;
    OpenStatus status = OpenStatus::opened;
    const std::string log = logged_with({{calls[0], EPERM}, {calls[1], EPERM}}, [&] {
      std::unique_ptr<UdpLink> link;
      status = open_on_loopback(link, reason);
    });
    if (log == "no filters") GTEST_SKIP() << log;
    EXPECT_EQ(status, OpenStatus::failed);
    EXPECT_NE(reason.find(expected), std::string::npos) << reason;
    EXPECT_NE(reason.find("seccomp profile"), std::string::npos) << reason;
  }
}

// As under emulators.
TEST(UdpCallsTest, WhereTheLengthOfARouteIsNotToldFramesAreShort) {
  std::unique_ptr<UdpLink> first;
  std::unique_ptr<UdpLink> second;
  std::string reason;
  ASSERT_EQ(open_on_loopback(first, reason), OpenStatus::opened) << reason;
  ASSERT_EQ(open_on_loopback(second, reason), OpenStatus::opened) << reason;
  Route usual = route_between(*first, *second);
  EXPECT_GT(usual.mtu, 1252u);
  Route route;
  const std::string log =
      logged_with({{SYS_getsockopt, ENOPROTOOPT}}, [&] { route = route_between(*first, *second); });
  if (log == "no filters") GTEST_SKIP() << log;
  EXPECT_EQ(route.mtu, 1252u);  // 1,280 bytes less the headers of IPv4 and UDP
  ResolveStatus status = ResolveStatus::resolved;
  static_cast<void>(logged_with({{SYS_getsockopt, EPERM}},
                                [&] { status = first->resolve(second->id(), route, &reason); }));
  EXPECT_EQ(status, ResolveStatus::no_route);
}

}  // namespace
}  // namespace lintel::test
