// Several messages in one frame, and acknowledgements that wait to be sent together with an answer.
#include <cstring>

#include "reliable/reply_predictor.h"
#include "unit/reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr ProcessId first_id{1, 1};
constexpr ProcessId second_id{2, 2};

MessageHeader acknowledgement(uint64_t number) {
  MessageHeader header = numbered_put(number);
  header.kind = MessageKind::ack;
  return header;
}

class ReliableBundle : public testing::Test {
 protected:
  explicit ReliableBundle(const ReliableSettings& settings = {})
      : first_(network_, first_id, settings), second_(network_, second_id, settings) {}

  void SetUp() override {
    to_second_ = first_.connect(second_id);
    send_surely(first_, to_second_, all_, numbered_put(0), {});
    ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 1; }));
    to_first_ = second_.last_link;
    run_for(all_, 1'000'000);
    network_.frames_carried = 0;
  }
  void send(uint64_t number, size_t bytes) {
    ASSERT_EQ(first_.send(to_second_, numbered_put(number), numbered_bytes(number, bytes)),
              SendStatus::sent);
  }
  // The first process sends a message, which the second one acknowledges at once.
  void acknowledged_message(uint64_t number) {
    const size_t before = second_.messages.size();
    send(number, 8);
    ASSERT_TRUE(run_until({&second_}, [&] { return second_.messages.size() > before; }));
    ASSERT_EQ(second_.send(to_first_, acknowledgement(number)), SendStatus::sent);
  }
  void answer(uint64_t number) {
    ASSERT_EQ(second_.send(to_first_, numbered_put(number), numbered_bytes(number, 8)),
              SendStatus::sent);
    ASSERT_TRUE(run_until(all_, [&] {
      return !first_.messages.empty() && first_.messages.back().header.kind == MessageKind::put &&
             first_.messages.back().header.match_bits == number;
    }));
  }
  // Exchanges enough messages that are answered at once, so that acknowledgements are delayed.
  void learn() {
    for (uint64_t i = 1; i <= ReplyPredictor::least_run; ++i) {
      acknowledged_message(i);
      answer(i);
    }
    run_for(all_, 1'000'000);
    network_.frames_carried = 0;
    first_.messages.clear();
  }

  MemoryNetwork network_;
  MemoryProcess first_;
  MemoryProcess second_;
  std::vector<MemoryProcess*> all_{&first_, &second_};
  Link* to_second_ = nullptr;
  Link* to_first_ = nullptr;
};

TEST_F(ReliableBundle, AnAnswerTakesTheAcknowledgementAlong) {
  learn();
  acknowledged_message(100);
  EXPECT_EQ(network_.frames_carried, 1u) << "only the message itself";
  second_.poll();
  EXPECT_EQ(network_.frames_carried, 1u) << "nor when the application looks once more";
  answer(100);
  EXPECT_EQ(network_.frames_carried, 2u);
  ASSERT_EQ(first_.messages.size(), 2u);
  EXPECT_EQ(first_.messages[0].header.kind, MessageKind::ack);
  EXPECT_EQ(first_.messages[1].payload, numbered_bytes(100, 8));
}

TEST_F(ReliableBundle, WithoutAnAnswerTheAcknowledgementGoesSoon) {
  learn();
  acknowledged_message(100);
  const uint64_t before = virtual_now_ns;
  ASSERT_TRUE(run_until(all_, [&] { return first_.messages.size() == 1; }));
  EXPECT_LT(virtual_now_ns - before, network_.latency_ns + 20'000);  // steps of run_until() grow
  // The next acknowledgement is not delayed.
  first_.messages.clear();
  run_for(all_, 1'000'000);
  network_.frames_carried = 0;
  acknowledged_message(101);
  EXPECT_EQ(network_.frames_carried, 2u);
}

TEST_F(ReliableBundle, AThreadThatGoesToSleepSendsItBefore) {
  learn();
  acknowledged_message(100);
  EXPECT_EQ(network_.frames_carried, 1u);
  static_cast<void>(second_.transport().arm(false));
  EXPECT_EQ(network_.frames_carried, 2u);
}

// The settings for processes in which no other thread could send it later.
class ReliableBundleUnheld : public ReliableBundle {
 protected:
  ReliableBundleUnheld() : ReliableBundle(settings()) {}

 private:
  static ReliableSettings settings() {
    ReliableSettings settings;
    settings.holds_acknowledgements = false;
    return settings;
  }
};

TEST_F(ReliableBundleUnheld, AcknowledgementsGoAtOnce) {
  learn();
  acknowledged_message(100);
  EXPECT_EQ(network_.frames_carried, 2u);
}

// A peer that sends a bundle of two messages of 8 bytes each, modified by `change`.
class HostileBundle {
 public:
  void inject(const std::function<void(std::vector<std::byte>&)>& change) {
    ASSERT_TRUE(fake_.connect(target));
    std::vector<std::byte> body;
    for (uint64_t i = 0; i < 2; ++i) {
      MessageHeader header = numbered_put(i);
      header.link_word = 8;
      const auto* bytes = reinterpret_cast<const std::byte*>(&header);
      body.insert(body.end(), bytes, bytes + sizeof header);
      body.insert(body.end(), 8, std::byte{9});
    }
    change(body);
    FrameHeader header{};
    header.type = FrameType::data;
    header.flags = frame_first | frame_last;
    header.sequence = 1;
    fake_.inject(fake_.connected_frame(header, body));
    target.poll();
  }

 private:
  MemoryNetwork network_;

 public:
  MemoryProcess target{network_, first_id};

 private:
  FakePeer fake_{network_, second_id, first_id};
};

// A connection over which such a frame arrives fails.
TEST(ReliableBundleOfAnybody, NothingOfOneWhoseEndMakesNoSenseIsDelivered) {
  constexpr size_t first = sizeof(MessageHeader) + 8;
  const std::vector<std::function<void(std::vector<std::byte>&)>> changes = {
      [](auto& body) { body.pop_back(); },
      [](auto& body) { body.push_back(std::byte{0}); },
      [](auto& body) { body.insert(body.end(), sizeof(MessageHeader) - 1, std::byte{0}); },
      [](auto& body) { body.erase(body.begin() + first + 1, body.end()); },
      [](auto& body) { body.erase(body.begin() + first + sizeof(MessageHeader) - 1, body.end()); },
      [](auto& body) { body[first + offsetof(MessageHeader, kind)] = std::byte{0}; },
      [](auto& body) { body[first + offsetof(MessageHeader, link_word)] = std::byte{7}; },
      [](auto& body) { body[offsetof(MessageHeader, link_word)] = std::byte{0xff}; },
      [](auto& body) {
        const std::vector<std::byte> one(body.begin(), body.begin() + first);
        for (unsigned i = 2; i <= most_bundled; ++i)
          body.insert(body.end(), one.begin(), one.end());
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    HostileBundle bundle;
    bundle.inject(changes[i]);
    EXPECT_TRUE(bundle.target.messages.empty()) << i;
    EXPECT_EQ(bundle.target.transport().counters().connections_failed, 1u) << i;
  }
}

// If sending takes long, a separate acknowledgement delays the following answer. That time must not
// be counted as the application's.
TEST(ReplyPredictor, SendingTheAcknowledgementIsNotTheApplicationsTime) {
  constexpr uint64_t slow_call_ns = 9'000;
  ReplyPredictor predictor;
  const uint64_t at_first = predictor.hold_ns();
  uint64_t now = 1'000'000;
  for (uint32_t i = 0; i < 4 * ReplyPredictor::least_run; ++i) {
    predictor.acknowledged(now);
    now += slow_call_ns;
    predictor.acknowledgement_went(now);
    predictor.sent(now + 3'000);
    now += slow_call_ns;
  }
  EXPECT_TRUE(predictor.expects_reply());
  EXPECT_GT(predictor.hold_ns(), at_first);
  EXPECT_LE(predictor.hold_ns(), 2 * slow_call_ns);
}

TEST(ReplyPredictor, TakesARunOfPromptAnswersAndForgetsSlowly) {
  ReplyPredictor predictor;
  uint64_t now = 1'000'000;
  const auto round_trips = [&](uint32_t count, uint64_t pause_ns) {
    for (uint32_t i = 0; i < count; ++i) {
      predictor.acknowledged(now);
      predictor.sent(now + pause_ns);
      now += 10'000;
    }
  };
  round_trips(ReplyPredictor::least_run - 1, 500);
  EXPECT_FALSE(predictor.expects_reply());
  round_trips(1, 500);
  EXPECT_TRUE(predictor.expects_reply());
  round_trips(1, ReplyPredictor::prompt_ns + 1);
  EXPECT_FALSE(predictor.expects_reply()) << "one late answer is enough at first";

  round_trips(ReplyPredictor::least_run, 500);
  predictor.hold_expired(false);
  EXPECT_FALSE(predictor.expects_reply());
  round_trips(100 * ReplyPredictor::least_run, 500);
  round_trips(1, ReplyPredictor::prompt_ns + 1);
  EXPECT_TRUE(predictor.expects_reply()) << "not after a long run";
  predictor.hold_expired(false);
  EXPECT_TRUE(predictor.expects_reply());
  for (uint32_t i = 0; i < ReplyPredictor::runs_until_trusted; ++i) predictor.hold_expired(false);
  EXPECT_FALSE(predictor.expects_reply()) << "one failure after the other is enough";
  round_trips(ReplyPredictor::least_run, 500);
  EXPECT_TRUE(predictor.expects_reply());
  predictor.hold_expired(true);
  round_trips(ReplyPredictor::least_run * 4 - 1, 500);
  EXPECT_FALSE(predictor.expects_reply()) << "it costs trust";
  round_trips(1, 500);
  EXPECT_TRUE(predictor.expects_reply());
  for (int i = 0; i < 100; ++i) predictor.hold_expired(true);
  round_trips(ReplyPredictor::longest_run, 500);
  EXPECT_TRUE(predictor.expects_reply()) << "which can be earned again";
  predictor.acknowledged(now);
  predictor.acknowledged(now);
  EXPECT_FALSE(predictor.expects_reply()) << "two acknowledgements and no message between them";
}

}  // namespace
}  // namespace lintel::test
