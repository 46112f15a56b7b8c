// Peers that finish, die or start again: none of their messages is lost, and none of their
// resources remains in use.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <random>

#include <gtest/gtest.h>

#include "shm_test_support.h"
#include "util/clock.h"

namespace lintel::test {
namespace {

// Sends numbered messages to `pid` until it is killed; `sent` is their number.
int stream_forever(uint32_t own_pid, uint32_t pid, std::atomic<uint64_t>& sent) {
  const auto own = open_transport(test_settings(own_pid));
  if (own == nullptr) return 2;
  RecordingSink sink;
  Link* link = own->connect({test::test_nid, pid}, nullptr);
  if (link == nullptr) return 3;
  for (uint64_t i = 0;; ++i) {
    if (send_message(*own, *link, i, i * 97 % 5000, sink) != SendStatus::sent) return 4;
    sent.store(i + 1);
  }
}

void expect_unbroken(const std::vector<RecordingSink::Received>& messages) {
  for (uint64_t i = 0; i < messages.size(); ++i) {
    ASSERT_EQ(messages[i].header.match_bits, i);
    ASSERT_EQ(messages[i].payload, test::pattern(i, i * 97 % 5000));
  }
}

// More rounds than there are lanes, so the lanes of dead processes must be reused.
TEST(ShmLiveness, KilledPeersAreDrainedReportedAndReclaimed) {
  static_cast<void>(test_settings());
  const auto transport = open_transport(test_settings(100));
  const uint32_t lanes = transport->segment().geometry().lane_count;
  const uint32_t rounds = test::slowdown == 1 ? lanes + 20 : 10;
  std::mt19937 random(1);
  for (uint32_t round = 0; round < rounds; ++round) {
    Shared<std::atomic<uint64_t>> sent;
    RecordingSink sink;
    ChildProcess child([&] { return stream_forever(200 + round, 100, *sent); });
    const uint64_t enough = random() % 200;
    ASSERT_TRUE(wait_until([&] {
      if (random() % 3 == 0) transport->poll(sink, 1 + random() % 20);
      return sent->load() > enough;
    }));
    child.kill_and_wait();
    const uint64_t complete = sent->load();
    if (sink.new_links.empty()) transport->poll(sink, 1);
    ASSERT_EQ(sink.new_links.size(), 1u);
    Link* link = sink.new_links[0];
    ASSERT_TRUE(wait_until([&] {
      transport->poll(sink, 16);
      transport->check_peers(sink, &link, sink.failures.empty() ? 1 : 0);
      return !sink.failures.empty();
    }));
    EXPECT_EQ(sink.failures[link], 1);
    EXPECT_EQ(sink.after_failure, 0u);
    EXPECT_GE(sink.total, complete) << "what was sent arrives";
    EXPECT_LE(sink.total, complete + 1);
    expect_unbroken(sink.by_link[link]);
    if (HasFatalFailure()) return;
    EXPECT_EQ(transport->send(*link, put_header(0), nullptr, 0), SendStatus::peer_failed);
    EXPECT_EQ(transport->connect(link->peer, nullptr), nullptr);
    transport->poll(sink, 16);
    EXPECT_EQ(sink.failures[link], 1) << "reported once";
  }
  EXPECT_EQ(transport->counters().peers_failed, rounds);
  EXPECT_EQ(transport->counters().malformed, 0u);
}

TEST(ShmLiveness, DeathWhileWeSendIsReported) {
  static_cast<void>(test_settings());
  for (uint32_t round = 0; round < 10; ++round) {
    Shared<std::atomic<int>> ready;
    const uint32_t pid = 300 + round;
    ChildProcess child([&]() -> int {
      const auto own = open_transport(test_settings(pid));
      RecordingSink sink;
      ready->store(1);
      for (;;) own->poll(sink, 16);
    });
    ASSERT_TRUE(wait_until([&] { return ready->load() == 1; }));
    const auto transport = open_transport();
    RecordingSink sink;
    Link* link = connect_or_fail(*transport, {test::test_nid, pid});
    ASSERT_NE(link, nullptr);
    for (uint64_t i = 0; i < 100 * round; ++i)
      ASSERT_EQ(send_message(*transport, *link, i, 100, sink), SendStatus::sent);
    transport->check_peers(sink, &link, 1);
    ASSERT_TRUE(sink.failures.empty()) << "the peer is alive";
    child.kill_and_wait();
    // Sends until the lane is full: only check_peers() detects the death.
    while (transport->send(*link, put_header(1), nullptr, 0) == SendStatus::sent) {
    }
    transport->check_peers(sink, &link, 1);
    EXPECT_EQ(sink.failures[link], 1);
    EXPECT_EQ(transport->send(*link, put_header(1), nullptr, 0), SendStatus::peer_failed);
    EXPECT_TRUE(transport->arm(true)) << "a dead peer's full lane must not prevent sleep";
    transport->disarm();
  }
}

TEST(ShmLiveness, MessagesOfAProcessThatFinishedBeforeWeLookedArrive) {
  static_cast<void>(test_settings());
  const auto transport = open_transport(test_settings(100));
  ChildProcess child([] {
    const auto own = open_transport(test_settings(101));
    RecordingSink sink;
    Link* link = own->connect({test::test_nid, 100}, nullptr);
    if (link == nullptr) return 3;
    for (uint64_t i = 0; i < 10; ++i)
      if (send_message(*own, *link, i, i * 97 % 5000, sink) != SendStatus::sent) return 4;
    return 0;
  });
  ASSERT_EQ(child.wait(), 0);
  RecordingSink sink;
  transport->poll(sink, 16);
  ASSERT_EQ(sink.new_links.size(), 1u);
  Link* link = sink.new_links[0];
  EXPECT_EQ(link->peer.pid, 101u);
  EXPECT_EQ(link->uid, geteuid());
  EXPECT_EQ(sink.by_link[link].size(), 10u);
  expect_unbroken(sink.by_link[link]);
  EXPECT_EQ(sink.failures[link], 1);
  EXPECT_EQ(sink.after_failure, 0u);
  EXPECT_EQ(transport->send(*link, put_header(0), nullptr, 0), SendStatus::peer_failed);
}

TEST(ShmLiveness, ANewPeerReplacesAKilledOneUnderTheSamePid) {
  static_cast<void>(test_settings());
  const auto transport = open_transport(test_settings(100));
  Shared<std::atomic<uint64_t>> sent;
  RecordingSink sink;
  {
    ChildProcess child([&] { return stream_forever(160, 100, *sent); });
    ASSERT_TRUE(wait_until([&] { return sent->load() > 5; }));
    transport->poll(sink, 3);
    child.kill_and_wait();
  }
  ASSERT_EQ(sink.new_links.size(), 1u);
  Link* old_link = sink.new_links[0];
  const uint64_t old_sent = sent->load();
  const auto again = open_transport(test_settings(160));
  ASSERT_NE(again, nullptr);
  RecordingSink at_again;
  Link* link = connect_or_fail(*again, transport->id());
  ASSERT_EQ(send_message(*again, *link, 7, 8, at_again), SendStatus::sent);
  // While a lane brings messages, claims are looked at in every sixteenth poll.
  for (int i = 0; i < 16; ++i) transport->poll(sink, 1);
  EXPECT_EQ(sink.failures[old_link], 1);
  EXPECT_GE(sink.by_link[old_link].size(), old_sent)
      << "its last messages are delivered before its end";
  ASSERT_EQ(sink.new_links.size(), 2u);
  EXPECT_EQ(sink.by_link[sink.new_links[1]].size(), 1u);
}

TEST(ShmLiveness, ShortageOfDescriptorsRefusesNobody) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors to look at an object's type";
#endif
  static_cast<void>(test_settings());
  const auto transport = open_transport(test_settings(100));
  Shared<std::atomic<uint64_t>> sent;
  ChildProcess child([&] { return stream_forever(180, 100, *sent); });
  ASSERT_TRUE(wait_until([&] { return sent->load() > 0; }));
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  RecordingSink sink;
  transport->poll(sink, 16);
  transport->check_peers(sink, nullptr, 0);
  std::string reason;
  EXPECT_EQ(transport->connect({test::test_nid, 180}, &reason), nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(sink.total, 0u);
  EXPECT_NE(reason.find("open files"), std::string::npos) << reason;
  EXPECT_EQ(transport->counters().links_refused, 0u);
  transport->check_peers(sink, nullptr, 0);
  transport->poll(sink, 16);
  EXPECT_GT(sink.total, 0u);
}

TEST(ShmLiveness, ALivePeerSurvivesTheLossOfItsName) {
  // As if the system had cleaned up /dev/shm at logout.
  const auto a = open_transport();
  const auto b = open_transport();
  RecordingSink sink;
  Link* link = connect_or_fail(*a, b->id());
  ASSERT_EQ(send_message(*a, *link, 1, 8, sink), SendStatus::sent);
  b->poll(sink, 16);
  unlink(b->segment().path().c_str());
  unlink(a->segment().path().c_str());
  a->check_peers(sink, &link, 1);
  EXPECT_TRUE(sink.failures.empty());
  ASSERT_EQ(send_message(*a, *link, 2, 8, sink), SendStatus::sent);
  b->poll(sink, 16);
  EXPECT_EQ(sink.total, 2u);
}

}  // namespace
}  // namespace lintel::test
