// Messages between processes: connecting, both directions, many peers, sleeping and wake-ups.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "shm_test_support.h"
#include "util/clock.h"

namespace lintel::test {
namespace {

constexpr size_t lengths[] = {0, 1, 8, 16, 17, 80, 81, 1000, 4096, 8192};

void expect_pattern(const RecordingSink::Received& message, uint64_t number, size_t length) {
  ASSERT_EQ(message.header.match_bits, number);
  ASSERT_EQ(message.payload.size(), length);
  ASSERT_EQ(message.payload, pattern(number, length));
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

// The sink hands a put in place on as a message.
TEST(ShmTransport, MessagesMayBeWrittenInPlaceUntilTheLaneIsFull) {
  const auto a = open_transport();
  const auto b = open_transport();
  RecordingSink sink;
  Link* const to_b = connect_or_fail(*a, b->id());
  EXPECT_EQ(to_b->next_cell, nullptr) << "the first message is sent";
  ASSERT_EQ(send_message(*a, *to_b, 0, 8, sink), SendStatus::sent);
  uint64_t written = 0;
  const auto write = [&] {
    MessageCell* const cell = to_b->next_cell;
    if (cell == nullptr) return false;
    ++written;
    cell->header.set_rest(0, 0, 0, 8, written, 0, 0);
    const auto payload = pattern(written, 8);
    std::memcpy(cell->payload, payload.data(), payload.size());
    a->publish(*to_b, MessageHeader::first_word(MessageKind::put, 0, PTL_MIN, 0), 8);
    return true;
  };
  while (write() && written < 10'000) {
  }
  EXPECT_LT(written, 10'000u);
  const auto count = [&] {
    while (b->poll(sink, 32) != 0) {
    }
    return sink.new_links.empty() ? 0 : sink.by_link[sink.new_links[0]].size();
  };
  EXPECT_EQ(count(), written + 1);
  EXPECT_EQ(send_message(*a, *to_b, ++written, 8, sink), SendStatus::sent);
  EXPECT_TRUE(write());
  ASSERT_EQ(count(), written + 1);
  for (uint64_t i = 0; i <= written; ++i) expect_pattern(sink.by_link[sink.new_links[0]][i], i, 8);
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

}  // namespace
}  // namespace lintel::test
