// Messages between processes: connecting, both directions, many peers, sleeping and wake-ups.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "shm_test_support.h"
#include "util/clock.h"

namespace lintel {
namespace {

using test::ChildProcess;
using test::connect_or_fail;
using test::open_transport;
using test::pattern;
using test::put_header;
using test::RecordingSink;
using test::send_message;
using test::Shared;
using test::test_settings;
using test::wait_until;

constexpr size_t lengths[] = {0, 1, 8, 16, 17, 80, 81, 1000, 4096, 8192};

void expect_pattern(const RecordingSink::Received& message, uint64_t number, size_t length) {
  ASSERT_EQ(message.header.match_bits, number);
  ASSERT_EQ(message.payload.size(), length);
  ASSERT_EQ(message.payload, pattern(number, length));
}

// Sends every message back, until `messages` have been received.
int echo(uint32_t pid, uint64_t messages, std::atomic<uint32_t>* ready = nullptr) {
  class Echo final : public MessageSink {
   public:
    explicit Echo(ShmTransport& transport) : transport_(transport) {}
    void* on_new_link(Link&) noexcept override { return this; }
    void on_messages(Link& link, const InboundMessage* messages, unsigned n) noexcept override {
      for (unsigned i = 0; i < n; ++i) {
        std::vector<std::byte> copy(messages[i].payload,
                                    messages[i].payload + messages[i].payload_length);
        const Piece piece{copy.data(), copy.size()};
        if (!wait_until([&] {
              return transport_.send(link, messages[i].header, &piece, 1) == SendStatus::sent;
            })) {
          std::abort();
        }
        ++count;
      }
    }
    void on_peer_failed(Link&) noexcept override { failed = true; }
    void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
    bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return true; }
    uint64_t count = 0;
    bool failed = false;

   private:
    ShmTransport& transport_;
  };
  const auto transport = open_transport(test_settings(pid));
  if (transport == nullptr) return 2;
  if (ready != nullptr) ready->fetch_add(1);
  Echo sink(*transport);
  if (!wait_until([&] {
        transport->poll(sink, 64);
        return sink.count >= messages || sink.failed;
      })) {
    return 3;
  }
  // Polls until the other side has received all.
  return wait_until([&] {
    transport->poll(sink, 64);
    return sink.failed;
  })
             ? 0
             : 4;
}

TEST(ShmTransport, CarriesMessagesBothWaysBetweenProcesses) {
  static_cast<void>(test_settings());  // makes the job key before the fork
  Shared<std::atomic<uint32_t>> ready;
  constexpr uint64_t rounds = 200;
  ChildProcess child([&] { return echo(7, rounds * std::size(lengths), &*ready); });
  ASSERT_TRUE(wait_until([&] { return ready->load() == 1; }));
  auto transport = open_transport(test_settings(8));
  ASSERT_NE(transport, nullptr);
  RecordingSink sink;
  Link* link = connect_or_fail(*transport, {test::test_nid, 7});
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->peer, (ProcessId{test::test_nid, 7}));
  EXPECT_EQ(link->uid, geteuid());
  uint64_t number = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    for (const size_t length : lengths)
      ASSERT_EQ(send_message(*transport, *link, number++, length, sink), SendStatus::sent);
  ASSERT_TRUE(wait_until([&] {
    transport->poll(sink, 64);
    return sink.total == number;
  })) << sink.total;
  ASSERT_EQ(sink.by_link.size(), 1u);
  EXPECT_EQ(sink.by_link.begin()->first, link) << "one link for both directions";
  EXPECT_EQ(sink.new_links.size(), 1u);
  for (uint64_t i = 0; i < number; ++i)
    expect_pattern(sink.by_link[link][i], i, lengths[i % std::size(lengths)]);
  const ShmCounters counters = transport->counters();
  EXPECT_EQ(counters.malformed + counters.links_refused, 0u);
  transport.reset();  // the child sees that this process has closed
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmTransport, SimultaneousConnectGivesOneLinkOnEachSide) {
  const auto a = open_transport();
  const auto b = open_transport();
  RecordingSink at_a;
  RecordingSink at_b;
  Link* to_b = connect_or_fail(*a, b->id());
  Link* to_a = connect_or_fail(*b, a->id());
  ASSERT_EQ(send_message(*a, *to_b, 1, 8, at_a), SendStatus::sent);
  ASSERT_EQ(send_message(*b, *to_a, 2, 8, at_b), SendStatus::sent);
  a->poll(at_a, 16);
  b->poll(at_b, 16);
  ASSERT_EQ(at_a.by_link[to_b].size(), 1u);
  ASSERT_EQ(at_b.by_link[to_a].size(), 1u);
  EXPECT_EQ(at_a.by_link.size(), 1u);
  EXPECT_EQ(at_b.by_link.size(), 1u);
  EXPECT_EQ(a->connect(b->id(), nullptr), to_b);
  EXPECT_EQ(b->connect(a->id(), nullptr), to_a);
}

TEST(ShmTransport, ConnectFindsTheLinkOfAPeerThatMadeContact) {
  const auto a = open_transport();
  const auto b = open_transport();
  RecordingSink sink;
  Link* to_b = connect_or_fail(*a, b->id());
  ASSERT_EQ(send_message(*a, *to_b, 1, 8, sink), SendStatus::sent);
  b->poll(sink, 16);
  ASSERT_EQ(sink.new_links.size(), 1u);
  EXPECT_EQ(sink.new_links[0]->context, &sink);
  EXPECT_EQ(b->connect(a->id(), nullptr), sink.new_links[0]);
}

TEST(ShmTransport, AProcessCanReachItself) {
  const auto transport = open_transport();
  RecordingSink sink;
  Link* link = connect_or_fail(*transport, transport->id());
  ASSERT_EQ(send_message(*transport, *link, 3, 500, sink), SendStatus::sent);
  transport->poll(sink, 16);
  ASSERT_EQ(sink.by_link[link].size(), 1u);
  expect_pattern(sink.by_link[link][0], 3, 500);
}

TEST(ShmTransport, FullLaneIsReportedAndDrains) {
  const auto a = open_transport();
  const auto b = open_transport();
  RecordingSink sink;
  Link* link = connect_or_fail(*a, b->id());
  uint64_t sent = 0;
  while (a->send(*link, put_header(sent), nullptr, 0) == SendStatus::sent) ++sent;
  EXPECT_EQ(a->send(*link, put_header(sent), nullptr, 0), SendStatus::queue_full);
  EXPECT_GE(sent, 16u);
  while (b->poll(sink, 1000) != 0) {
  }
  EXPECT_EQ(sink.total, sent);
  EXPECT_EQ(a->send(*link, put_header(sent), nullptr, 0), SendStatus::sent);
}

TEST(ShmTransport, ALaneGetsItsMemoryWhenItIsUsed) {
  auto settings = test_settings();
  settings.memory_bytes = 16 << 20;
  const auto transport = open_transport(settings);
  RecordingSink sink;
  Link* link = connect_or_fail(*transport, transport->id());
  const auto kib = [&] {
    struct stat status {};
    EXPECT_EQ(stat(transport->segment().path().c_str(), &status), 0);
    return status.st_blocks / 2;
  };
  constexpr uint64_t messages = 200;
  for (uint64_t i = 0; i < messages; ++i) {
    if (i == 7) {
      EXPECT_LE(kib(), 192) << "after few messages";
    }
    ASSERT_EQ(send_message(*transport, *link, i, 4096, sink), SendStatus::sent);
  }
  EXPECT_GE(kib(), 512) << "after many";
  while (transport->poll(sink, 64) != 0) {
  }
  ASSERT_EQ(sink.by_link[link].size(), messages);
  for (uint64_t i = 0; i < messages; ++i) expect_pattern(sink.by_link[link][i], i, 4096);
}

TEST(ShmTransport, BudgetBoundsABurst) {
  const auto a = open_transport();
  const auto b = open_transport();
  RecordingSink sink;
  Link* link = connect_or_fail(*a, b->id());
  for (uint64_t i = 0; i < 20; ++i)
    ASSERT_EQ(a->send(*link, put_header(i), nullptr, 0), SendStatus::sent);
  EXPECT_EQ(b->poll(sink, 3), 3u);
  EXPECT_EQ(sink.total, 3u);
  while (b->poll(sink, 3) != 0) {
  }
  EXPECT_EQ(sink.total, 20u);
}

TEST(ShmTransport, SixtyFourPeersAtOnce) {
  static_cast<void>(test_settings());
  constexpr unsigned peers = 64;
  constexpr uint64_t messages = 50;
  auto settings = test_settings(500);
  settings.memory_bytes = 4 << 20;
  const auto transport = open_transport(settings);
  ASSERT_NE(transport, nullptr);
  std::vector<ChildProcess> children;
  for (unsigned i = 0; i < peers; ++i) {
    children.emplace_back([i] {
      const auto own = open_transport(test_settings(1000 + i));
      if (own == nullptr) return 2;
      RecordingSink sink;
      Link* link = own->connect({test::test_nid, 500}, nullptr);
      if (link == nullptr) return 3;
      for (uint64_t m = 0; m < messages; ++m)
        if (send_message(*own, *link, i * messages + m, lengths[m % 10], sink) != SendStatus::sent)
          return 4;
      // Polls until every message has been answered.
      return wait_until([&] {
        own->poll(sink, 64);
        return sink.total == messages;
      })
                 ? 0
                 : 5;
    });
  }
  RecordingSink sink;
  std::map<Link*, size_t> answered;
  const bool complete = wait_until([&] {
    transport->poll(sink, 64);
    for (auto& [link, messages_of] : sink.by_link)
      for (size_t& n = answered[link]; n < messages_of.size(); ++n)
        if (transport->send(*link, put_header(n), nullptr, 0) != SendStatus::sent) break;
    size_t all = 0;
    for (const auto& [link, n] : answered) all += n;
    return all == peers * messages;
  });
  EXPECT_TRUE(complete) << sink.total;
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(sink.by_link.size(), peers);
  for (auto& [link, messages_of] : sink.by_link) {
    ASSERT_EQ(messages_of.size(), messages);
    const uint64_t first = (link->peer.pid - 1000) * messages;
    for (uint64_t m = 0; m < messages; ++m)
      expect_pattern(messages_of[m], first + m, lengths[m % 10]);
  }
  // They have finished one after the other, and each end was detected.
  EXPECT_TRUE(wait_until([&] {
    transport->poll(sink, 64);
    return sink.failures.size() == peers;
  }));
  EXPECT_EQ(sink.after_failure, 0u);
}

TEST(ShmTransport, TwoThreadsSendToDifferentPeersWhileAThirdPolls) {
  const auto hub = open_transport();
  const auto a = open_transport();
  const auto b = open_transport();
  constexpr uint64_t most_messages = 5000 / test::slowdown;
  constexpr uint64_t least_messages = 200;
  RecordingSink at_hub;
  std::atomic<int> running{2};
  std::atomic<uint64_t> to_hub{0};
  const auto stream = [&](ShmTransport& peer) {
    RecordingSink sink;
    Link* there = hub->connect(peer.id(), nullptr);
    Link* back = peer.connect(hub->id(), nullptr);
    uint64_t forward = 0;
    uint64_t backward = 0;
    uint64_t messages = most_messages;
    const auto end = std::chrono::steady_clock::now() + test::stress_time;
    EXPECT_TRUE(wait_until([&] {
      if (messages == most_messages && std::chrono::steady_clock::now() >= end)
        messages = std::max({forward, backward, least_messages});
      if (forward < messages &&
          hub->send(*there, put_header(forward), nullptr, 0) == SendStatus::sent)
        ++forward;
      if (backward < messages &&
          peer.send(*back, put_header(backward), nullptr, 0) == SendStatus::sent)
        ++backward;
      if (peer.poll(sink, 64) == 0) std::this_thread::yield();
      return forward == messages && backward == messages && sink.total == messages;
    }));
    for (uint64_t i = 0; i < sink.total; ++i) EXPECT_EQ(sink.by_link[back][i].header.match_bits, i);
    to_hub += backward;
    --running;
  };
  std::thread one([&] { stream(*a); });
  std::thread two([&] { stream(*b); });
  while (running != 0 || at_hub.total < to_hub) {
    if (hub->poll(at_hub, 64) == 0) std::this_thread::yield();
    if (running == 0 && hub->poll(at_hub, 64) == 0) break;
  }
  one.join();
  two.join();
  EXPECT_EQ(at_hub.total, to_hub);
}

TEST(ShmTransport, ArmRefusesToSleepOnWork) {
  const auto a = open_transport();
  const auto b = open_transport();
  RecordingSink sink;
  EXPECT_TRUE(b->arm(false));
  b->disarm();
  Link* link = connect_or_fail(*a, b->id());
  EXPECT_FALSE(b->arm(false)) << "a peer made contact";
  b->disarm();
  b->poll(sink, 16);
  EXPECT_TRUE(b->arm(false));
  b->disarm();
  ASSERT_EQ(send_message(*a, *link, 1, 8, sink), SendStatus::sent);
  EXPECT_FALSE(b->arm(false));
  b->disarm();
  b->poll(sink, 16);
  EXPECT_TRUE(b->arm(true)) << "nothing of this transport is blocked";
  b->disarm();
}

TEST(ShmTransport, MessagesWakeASleepingProcess) {
  static_cast<void>(test_settings());
  Shared<std::atomic<uint32_t>> ready;
  constexpr uint64_t messages = 100;
  ChildProcess child([&] {
    const auto own = open_transport(test_settings(9));
    if (own == nullptr) return 2;
    RecordingSink sink;
    ready->store(1);
    // Sleeps whenever there is nothing to do. Only the doorbell or this limit ends the sleep.
    constexpr int64_t limit_ns = 60'000'000'000;
    while (sink.total < messages) {
      while (own->poll(sink, 16) != 0) {
      }
      ready->store(static_cast<uint32_t>(sink.total) + 1);
      const uint32_t seen = own->doorbell()->announce_sleep();
      if (sink.total < messages && own->arm(false)) own->doorbell()->sleep(seen, limit_ns);
      own->doorbell()->sleeping.store(0);
      own->disarm();
    }
    return 0;
  });
  ASSERT_TRUE(wait_until([&] { return ready->load() == 1; }));
  const auto transport = open_transport();
  RecordingSink sink;
  Link* link = connect_or_fail(*transport, {test::test_nid, 9});
  ASSERT_NE(link, nullptr);
  for (uint64_t i = 0; i < messages; ++i) {
    ASSERT_EQ(send_message(*transport, *link, i, 8, sink), SendStatus::sent);
    ASSERT_TRUE(wait_until([&] { return ready->load() == i + 2; })) << i;
  }
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmTransport, RoomWakesASleepingSender) {
  static_cast<void>(test_settings());
  Shared<std::atomic<uint32_t>> progress;
  constexpr uint64_t messages = 5000 / test::slowdown;
  const auto transport = open_transport(test_settings(11));
  ChildProcess child([&] {
    const auto own = open_transport();
    if (own == nullptr) return 2;
    RecordingSink sink;
    Link* link = own->connect({test::test_nid, 11}, nullptr);
    if (link == nullptr) return 3;
    uint32_t slept = 0;
    for (uint64_t i = 0; i < messages;) {
      if (own->send(*link, put_header(i), nullptr, 0) == SendStatus::sent) {
        ++i;
        continue;
      }
      const uint32_t seen = own->doorbell()->announce_sleep();
      if (own->arm(true)) {
        progress->store(++slept);
        own->doorbell()->sleep(seen, 60'000'000'000);
      }
      own->doorbell()->sleeping.store(0);
      own->disarm();
    }
    return slept > 0 ? 0 : 4;
  });
  RecordingSink sink;
  uint32_t slept = 0;
  // Receives a few messages whenever the sender sleeps.
  EXPECT_TRUE(wait_until([&] {
    if (sink.total == 0 || progress->load() != slept || messages - sink.total < 300) {
      slept = progress->load();
      transport->poll(sink, 16);
    }
    transport->poll(sink, 1);
    return sink.total == messages;
  })) << sink.total;
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmTransport, DescribesItself) {
  const auto transport = open_transport(test_settings(77));
  EXPECT_NE(transport->describe().find(".77."), std::string::npos) << transport->describe();
  EXPECT_STREQ(transport->capabilities().name, "shm");
  EXPECT_EQ(transport->capabilities().max_eager_bytes, 8192u);
}

}  // namespace
}  // namespace lintel
