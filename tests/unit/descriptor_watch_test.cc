// The thread that watches sockets, and the rule for which links it watches.
#include "util/descriptor_watch.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "reliable/quiet_link.h"
#include "udp_test_support.h"

namespace lintel::test {
namespace {

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
  const OutboundFrame frame{&route.address, &piece, 1};
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
  PollerWakeup wakeup;
  ConnectionTimers timers(wakeup);
  Doorbell doorbell;
  QuietLink quiet(*second, settings, wakeup, timers);
  quiet.watch(doorbell);
  for (unsigned turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(quiet.arm());
    EXPECT_EQ(watches_of(second->descriptor()), 1u);
    for (unsigned i = 0; i < 2 * QuietLink::polls_until_detached; ++i) quiet.asked(1, i);
    EXPECT_EQ(watches_of(second->descriptor()), 1u) << "another thread may sleep";
    const Route route = route_between(*first, *second);
    std::byte byte{};
    const Piece piece{&byte, 1};
    const OutboundFrame frame{&route.address, &piece, 1};
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

}  // namespace
}  // namespace lintel::test
