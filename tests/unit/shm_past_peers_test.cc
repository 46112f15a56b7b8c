// A process does not grow with the peers that it had, also if they were killed.
#include <malloc.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>

#include <gtest/gtest.h>

#include "shm_test_support.h"

namespace lintel::test {
namespace {

// Counts what it is told; RecordingSink would keep it.
class CountingSink final : public test::QuietSink {
 public:
  void on_messages(Link&, const InboundMessage*, unsigned count) noexcept override {
    messages += count;
  }
  void on_peer_failed(Link&) noexcept override { ++failures; }

  unsigned messages = 0;
  unsigned failures = 0;
};

struct Held {
  unsigned mapped_segments = 0;
  uint64_t shared_kib = 0;  // of the own segment
  uint64_t heap_bytes = 0;
};

Held held_by(const ShmTransport& transport) {
  Held held;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(segment_root()) != std::string::npos) ++held.mapped_segments;
  struct stat status;
  if (stat(transport.segment().path().c_str(), &status) == 0)
    held.shared_kib = static_cast<uint64_t>(status.st_blocks) / 2;
  held.heap_bytes = mallinfo2().uordblks;
  return held;
}

// A process that connects, sends a message and is killed. `connects_back`: this one sends to it.
void meet_one(ShmTransport& server, uint32_t pid, CountingSink& sink, bool connects_back) {
  Shared<std::atomic<int>> ready;
  ChildProcess client([&]() -> int {
    const auto transport = open_transport(test_settings(pid));
    RecordingSink none;
    Link* const link = test::connect_or_fail(*transport, server.id());
    if (link == nullptr || test::send_message(*transport, *link, 1, 5000, none) != SendStatus::sent)
      return 1;
    ready->store(1);
    for (;;) pause();
  });
  ASSERT_TRUE(wait_until([&] { return ready->load() != 0; }));
  if (connects_back) {
    EXPECT_NE(server.connect({test::test_nid, pid}, nullptr), nullptr);
  }
  client.kill_and_wait();
  const unsigned before = sink.messages;
  ASSERT_TRUE(wait_until([&] {
    server.poll(sink, 16);
    return sink.messages > before;
  }));
}

// Nobody calls check_peers(): as fast as they come.
TEST(ShmPastPeers, TakeNothingAfterTheyWereKilled) {
  constexpr uint32_t addresses = 40;
  constexpr unsigned peers = 160;
  const auto server = open_transport(test_settings(5));
  ASSERT_NE(server, nullptr);
  CountingSink sink;
  Held after_few;
  Held most;
  for (unsigned i = 0; i < peers; ++i) {
    meet_one(*server, 100 + i % addresses, sink, i % 3 == 0);
    const Held now = held_by(*server);
    if (i == peers / 2) after_few = now;
    most.mapped_segments = std::max(most.mapped_segments, now.mapped_segments);
    most.shared_kib = std::max(most.shared_kib, now.shared_kib);
    if (HasFatalFailure()) return;
  }
  const Held end = held_by(*server);
  EXPECT_LE(most.mapped_segments, 5u);
  EXPECT_LE(most.shared_kib, 512u);
  EXPECT_LE(end.heap_bytes, after_few.heap_bytes + 16 * 1024);
  EXPECT_EQ(sink.messages, peers);
  EXPECT_GE(sink.failures + 4, peers);
}

// A link of a process that is gone serves the next one with its address.
TEST(ShmPastPeers, TheNextOneWithTheAddressIsReached) {
  const auto server = open_transport(test_settings(5));
  ASSERT_NE(server, nullptr);
  CountingSink sink;
  for (int i = 0; i < 3; ++i) meet_one(*server, 100, sink, true);
  const auto last = open_transport(test_settings(100));
  ASSERT_NE(last, nullptr);
  RecordingSink arrived;
  ASSERT_TRUE(wait_until([&] {
    server->check_peers(sink, nullptr, 0);
    return sink.failures == 3;
  }));
  Link* const link = test::connect_or_fail(*server, last->id());
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->context, nullptr);
  EXPECT_EQ(test::send_message(*server, *link, 7, 100, sink), SendStatus::sent);
  ASSERT_TRUE(wait_until([&] { return last->poll(arrived, 16) != 0; }));
  EXPECT_EQ(arrived.by_link.begin()->second.front().payload, test::pattern(7, 100));
}

}  // namespace
}  // namespace lintel::test
