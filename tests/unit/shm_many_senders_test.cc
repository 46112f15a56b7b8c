// More senders to a process than its segment has lanes: they take turns in using them.
#include <signal.h>

#include <atomic>

#include <gtest/gtest.h>

#include "shm_test_support.h"

namespace lintel::test {
namespace {

// A segment with room for a few lanes.
std::unique_ptr<ShmTransport> open_small_hub(uint32_t pid) {
  auto settings = test_settings(pid);
  settings.memory_bytes = 160 << 10;
  return open_transport(settings);
}

uint32_t lanes_of(const ShmTransport& hub) { return hub.segment().geometry().lane_count; }

size_t length_of(uint64_t number) { return number * 97 % 3000; }

// A process, or one of several in this process, that sends numbered messages.
class Sender {
 public:
  explicit Sender(ProcessId hub, const ShmSettings& settings = test_settings())
      : transport_(open_transport(settings)) {
    std::string reason;
    link_ = transport_->connect(hub, &reason);
    EXPECT_NE(link_, nullptr) << reason;
  }
  // Sends until `count` messages have been sent or no more can be sent now. Returns the last
  // status.
  SendStatus send_up_to(uint64_t count) {
    SendStatus status = SendStatus::sent;
    while (sent_ < count && status == SendStatus::sent) {
      std::vector<std::byte> payload = test::pattern(sent_, length_of(sent_));
      const Piece piece{payload.data(), payload.size()};
      status = transport_->send(*link_, put_header(sent_), &piece, 1);
      if (status == SendStatus::sent) ++sent_;
    }
    return status;
  }
  void poll() {
    transport_->poll(sink_, 16);
    EXPECT_TRUE(sink_.failures.empty());
  }
  [[nodiscard]] uint64_t sent() const { return sent_; }
  [[nodiscard]] ProcessId id() const { return transport_->id(); }
  [[nodiscard]] ShmTransport& transport() { return *transport_; }
  [[nodiscard]] Link& link() { return *link_; }
  [[nodiscard]] RecordingSink& sink() { return sink_; }

 private:
  std::unique_ptr<ShmTransport> transport_;
  Link* link_ = nullptr;
  RecordingSink sink_;
  uint64_t sent_ = 0;
};

void expect_all_in_order(const RecordingSink& sink, size_t senders, uint64_t count) {
  EXPECT_TRUE(sink.failures.empty());
  ASSERT_EQ(sink.by_link.size(), senders);
  for (const auto& [link, messages] : sink.by_link) {
    ASSERT_EQ(messages.size(), count);
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(messages[i].header.match_bits, i);
      ASSERT_EQ(messages[i].payload, test::pattern(i, length_of(i)));
    }
  }
}

// All `senders` send in turn, until each has sent `count` messages and the hub has received all.
void exchange(ShmTransport& hub, RecordingSink& sink, std::vector<std::unique_ptr<Sender>>& senders,
              uint64_t count, test::Milliseconds limit = test::test_deadline / 2) {
  ASSERT_TRUE(wait_until(
      [&] {
        bool all = true;
        for (const auto& sender : senders) {
          const SendStatus status = sender->send_up_to(count);
          EXPECT_NE(status, SendStatus::peer_failed);
          sender->poll();
          all &= sender->sent() == count;
        }
        hub.poll(sink, 64);
        return all && sink.total >= senders.size() * count;
      },
      limit));
}

TEST(ShmManySenders, ShareTheLanes) {
  const auto hub = open_small_hub(300);
  const size_t count = lanes_of(*hub) * 12;
  RecordingSink sink;
  std::vector<std::unique_ptr<Sender>> senders;
  for (size_t i = 0; i < count; ++i) senders.push_back(std::make_unique<Sender>(hub->id()));
  exchange(*hub, sink, senders, 100);
  expect_all_in_order(sink, count, 100);
}

// One process per core of a large node; the segment of the hub has the default size.
TEST(ShmManySenders, FourThousandShareTheDefaultSegment) {
  if (!test::long_tests()) GTEST_SKIP() << "set LINTEL_TEST_LONG=1";
  auto settings = test_settings(301);
  settings.memory_bytes = 16 << 20;
  const auto hub = open_transport(settings);
  constexpr size_t count = 4096;
  RecordingSink sink;
  std::vector<std::unique_ptr<Sender>> senders;
  for (size_t i = 0; i < count; ++i) senders.push_back(std::make_unique<Sender>(hub->id()));
  exchange(*hub, sink, senders, 20, std::chrono::minutes(10));
  expect_all_in_order(sink, count, 20);
}

// A sender that holds a lane and does nothing does not prevent others from using returned lanes.
TEST(ShmManySenders, StoppedSendersKeepOnlyTheirOwnLanes) {
  const auto hub = open_small_hub(302);
  const uint32_t lanes = lanes_of(*hub);
  RecordingSink sink;
  std::vector<std::unique_ptr<Sender>> stopped;
  for (uint32_t i = 0; i + 1 < lanes; ++i) {
    stopped.push_back(std::make_unique<Sender>(hub->id()));
    EXPECT_EQ(stopped.back()->send_up_to(1), SendStatus::sent);
  }
  std::vector<std::unique_ptr<Sender>> senders;
  for (uint32_t i = 0; i < 5; ++i) senders.push_back(std::make_unique<Sender>(hub->id()));
  exchange(*hub, sink, senders, 50);
  // They continue with their next message.
  for (const auto& sender : stopped) EXPECT_EQ(sender->send_up_to(2), SendStatus::sent);
  for (auto& sender : stopped) senders.push_back(std::move(sender));
  exchange(*hub, sink, senders, 50);
  expect_all_in_order(sink, senders.size(), 50);
}

// All lanes belong to stopped processes: a sender waits until one of them continues or dies.
TEST(ShmManySenders, WaitForStoppedAndDeadProcesses) {
  const auto hub = open_small_hub(303);
  RecordingSink sink;
  Shared<std::atomic<uint32_t>> ready;
  std::vector<ChildProcess> children;
  for (uint32_t i = 0; i < lanes_of(*hub); ++i) {
    children.emplace_back([&] {
      Sender sender(hub->id(), test_settings(310 + i));
      if (sender.send_up_to(1) != SendStatus::sent) return 2;
      ready->fetch_add(1);
      for (;;) sender.poll();
    });
  }
  ASSERT_TRUE(wait_until([&] { return ready->load() == children.size(); }));
  for (const ChildProcess& child : children) {
    ASSERT_EQ(kill(child.pid(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child.pid(), &status, WUNTRACED), child.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  Sender sender(hub->id(), test_settings(320));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(sender.send_up_to(1), SendStatus::connecting);
    sender.poll();
    hub->poll(sink, 16);
  }
  // One process dies.
  children.back().kill_and_wait();
  children.pop_back();
  ASSERT_TRUE(wait_until([&] {
    hub->poll(sink, 16);
    hub->check_peers(sink, nullptr, 0);
    sender.poll();
    return sender.send_up_to(1) == SendStatus::sent;
  }));
  // Another one continues and returns its lane, which the next sender gets.
  Sender next(hub->id(), test_settings(321));
  ASSERT_EQ(kill(children.back().pid(), SIGCONT), 0);
  ASSERT_TRUE(wait_until([&] {
    hub->poll(sink, 16);
    next.poll();
    return next.send_up_to(10) == SendStatus::sent;
  }));
  ASSERT_TRUE(wait_until([&] {
    hub->poll(sink, 16);
    return sink.total == lanes_of(*hub) + 11;
  }));
}

// Answers are sent in the other direction while lanes change their owners.
TEST(ShmManySenders, GetAnswers) {
  const auto hub = open_small_hub(305);
  RecordingSink sink;
  std::vector<std::unique_ptr<Sender>> senders;
  for (uint32_t i = 0; i < 4 * lanes_of(*hub); ++i)
    senders.push_back(std::make_unique<Sender>(hub->id()));
  exchange(*hub, sink, senders, 10);
  for (Link* const link : sink.new_links)
    EXPECT_EQ(test::send_message(*hub, *link, 7, 100, sink), SendStatus::sent);
  for (const auto& sender : senders) {
    ASSERT_TRUE(wait_until([&] {
      sender->poll();
      return sender->sink().total == 1;
    }));
  }
}

}  // namespace
}  // namespace lintel::test
