// Discovery of the nid and pid of processes on an Ethernet: accepted and rejected answers, claims,
// strangers.
#include "dpdk/discovery.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lintel {
namespace {

constexpr ProcessId us{0x0a000001, 7};
constexpr ProcessId peer{0x0a000002, 9};
constexpr MacAddress our_mac{2, 0, 0, 0, 0, 1};
constexpr MacAddress peer_mac{2, 0, 0, 0, 0, 2};
constexpr MacAddress other_mac{2, 0, 0, 0, 0, 3};
constexpr uint64_t second_ns = 1'000'000'000;

class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryTest() {
    here_.settle();
    there_.settle();
  }

  // Delivers a message of `from` to `to` and returns the answer.
  DiscoveryMessage pass(const DiscoveryMessage& message, const MacAddress& from, Discovery& to) {
    DiscoveryMessage answer;
    EXPECT_TRUE(to.handle(from, reinterpret_cast<const std::byte*>(&message.body),
                          sizeof message.body, now_, answer));
    return answer;
  }
  ResolveStatus resolve(DiscoveryMessage& question) {
    question = {};
    return here_.resolve(peer, now_, mac_, question);
  }

  Discovery here_{us, our_mac, 1, 1};
  Discovery there_{peer, peer_mac, 2, 2};
  MacAddress mac_{};
  uint64_t now_ = second_ns;
};

TEST_F(DiscoveryTest, AQuestionToAllIsAnsweredByItsOwner) {
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  ASSERT_TRUE(question.wanted);
  EXPECT_EQ(question.to, broadcast_mac);
  const DiscoveryMessage answer = pass(question, our_mac, there_);
  ASSERT_TRUE(answer.wanted);
  EXPECT_EQ(answer.to, our_mac);
  EXPECT_FALSE(pass(answer, peer_mac, here_).wanted);
  EXPECT_EQ(resolve(question), ResolveStatus::resolved);
  EXPECT_EQ(mac_, peer_mac);
}

TEST_F(DiscoveryTest, QuestionsAreRepeatedButNotAllTheTime) {
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  EXPECT_TRUE(question.wanted);
  const uint64_t number = question.body.number;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  EXPECT_FALSE(question.wanted);
  now_ += Discovery::question_gap_ns;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  ASSERT_TRUE(question.wanted);
  EXPECT_EQ(question.body.number, number);
}

TEST_F(DiscoveryTest, NobodyAnswersForAnother) {
  Discovery third({0x0a000003, 9}, other_mac, 3, 3);
  third.settle();
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  EXPECT_FALSE(pass(question, our_mac, third).wanted);
}

TEST_F(DiscoveryTest, AnAnswerWithoutItsQuestionIsNotBelieved) {
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  const DiscoveryMessage answer = pass(question, our_mac, there_);
  // Another process answers a query of a third one.
  Discovery liar(peer, other_mac, 5, 5);
  liar.settle();
  DiscoveryMessage own_question;
  Discovery elsewhere(us, our_mac, 99, 99);
  EXPECT_EQ(elsewhere.resolve(peer, now_, mac_, own_question), ResolveStatus::pending);
  pass(pass(own_question, our_mac, liar), other_mac, here_);
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  pass(answer, peer_mac, here_);
  EXPECT_EQ(resolve(question), ResolveStatus::resolved);
  EXPECT_EQ(mac_, peer_mac);
}

TEST_F(DiscoveryTest, TwoWhoAnswerAreNotBelieved) {
  Discovery twin(peer, other_mac, 5, 5);
  twin.settle();
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  pass(pass(question, our_mac, there_), peer_mac, here_);
  pass(pass(question, our_mac, twin), other_mac, here_);
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  EXPECT_TRUE(question.wanted);
}

// Both hear the question.
TEST_F(DiscoveryTest, SeveralPortsOfAProcessAnswer) {
  Discovery second_port(peer, other_mac, 2, 5);
  second_port.settle();
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  pass(pass(question, our_mac, there_), peer_mac, here_);
  pass(pass(question, our_mac, second_port), other_mac, here_);
  EXPECT_EQ(resolve(question), ResolveStatus::resolved);
  EXPECT_EQ(mac_, peer_mac);
  for (const MacAddress& mac : {peer_mac, other_mac})
    EXPECT_TRUE(here_.adopt(peer, mac, now_, question));
  pass(second_port.claim(), other_mac, here_);
  EXPECT_EQ(resolve(question), ResolveStatus::resolved) << "it did not move";
  EXPECT_FALSE(pass(second_port.claim(), other_mac, there_).wanted);
  EXPECT_FALSE(there_.disputed());
}

TEST_F(DiscoveryTest, WhatIsKnownGrowsOld) {
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  pass(pass(question, our_mac, there_), peer_mac, here_);
  now_ += Discovery::fresh_ns;
  EXPECT_EQ(resolve(question), ResolveStatus::resolved);
  now_ += 1;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  EXPECT_TRUE(question.wanted);
}

TEST_F(DiscoveryTest, APeerThatMovedIsBelievedOnlyAfterItWasAsked) {
  DiscoveryMessage question;
  EXPECT_TRUE(here_.adopt(peer, peer_mac, now_, question));
  EXPECT_FALSE(question.wanted);
  EXPECT_TRUE(here_.adopt(peer, peer_mac, now_, question));
  EXPECT_FALSE(here_.adopt(peer, other_mac, now_, question));
  ASSERT_TRUE(question.wanted);
  Discovery moved(peer, other_mac, 5, 5);
  moved.settle();
  pass(pass(question, our_mac, moved), other_mac, here_);
  EXPECT_TRUE(here_.adopt(peer, other_mac, now_, question));
}

TEST_F(DiscoveryTest, AClaimFromElsewhereMakesWhatIsKnownOld) {
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  pass(pass(question, our_mac, there_), peer_mac, here_);
  Discovery moved(peer, other_mac, 5, 5);
  pass(moved.claim(), other_mac, here_);
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
}

// spec 3.6.2: a pid that is in use is refused.
TEST_F(DiscoveryTest, AnOwnerDefendsItsNidAndPid) {
  Discovery late(us, other_mac, 5, 5);
  const DiscoveryMessage defence = pass(late.claim(), other_mac, here_);
  ASSERT_TRUE(defence.wanted);
  EXPECT_EQ(defence.to, other_mac);
  EXPECT_FALSE(late.disputed());
  pass(defence, our_mac, late);
  EXPECT_TRUE(late.disputed());
  EXPECT_FALSE(here_.disputed());
}

TEST_F(DiscoveryTest, OfTwoThatClaimAtOnceOneGoesOn) {
  Discovery low(us, our_mac, 5, 5);
  Discovery high(us, other_mac, 6, 6);
  const DiscoveryMessage of_low = low.claim();
  const DiscoveryMessage of_high = high.claim();
  const DiscoveryMessage to_high = pass(of_high, other_mac, low);
  const DiscoveryMessage to_low = pass(of_low, our_mac, high);
  ASSERT_TRUE(to_high.wanted);
  EXPECT_FALSE(to_low.wanted);
  pass(to_high, our_mac, high);
  EXPECT_TRUE(high.disputed());
  EXPECT_FALSE(low.disputed());
}

TEST_F(DiscoveryTest, NobodyIsAnsweredBeforeTheClaimIsSettled) {
  Discovery unsettled(peer, peer_mac, 5, 5);
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  EXPECT_FALSE(pass(question, our_mac, unsettled).wanted);
}

// Random frames, and valid ones with one changed bit: all are rejected, and nothing is stored.
TEST_F(DiscoveryTest, DamagedMessagesTeachNothing) {
  DiscoveryMessage question;
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  const DiscoveryMessage answer = pass(question, our_mac, there_);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&answer.body);
  DiscoveryMessage ignored;
  for (size_t bit = 0; bit < sizeof answer.body * 8; ++bit) {
    std::vector<std::byte> damaged(bytes, bytes + sizeof answer.body);
    damaged[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_FALSE(here_.handle(peer_mac, damaged.data(), sizeof answer.body, now_, ignored)) << bit;
  }
  for (uint32_t length = 0; length < sizeof answer.body; ++length)
    EXPECT_FALSE(here_.handle(peer_mac, bytes, length, now_, ignored)) << length;
  std::mt19937 dice(3);
  for (int i = 0; i < 10'000; ++i) {
    std::byte noise[sizeof answer.body];
    for (std::byte& byte : noise) byte = static_cast<std::byte>(dice());
    EXPECT_FALSE(here_.handle(peer_mac, noise, sizeof noise, now_, ignored));
  }
  EXPECT_FALSE(ignored.wanted);
  EXPECT_EQ(resolve(question), ResolveStatus::pending);
  EXPECT_EQ(here_.known(), 1u);
}

TEST_F(DiscoveryTest, OldKnowledgeMakesRoom) {
  DiscoveryMessage question;
  for (uint32_t i = 0; i < Discovery::most_known; ++i)
    ASSERT_TRUE(here_.adopt({i + 1, 1}, peer_mac, now_, question));
  EXPECT_FALSE(here_.adopt({0xffffff, 2}, peer_mac, now_, question));
  now_ += Discovery::fresh_ns + 1;
  EXPECT_TRUE(here_.adopt({0xffffff, 2}, peer_mac, now_, question));
  EXPECT_EQ(here_.known(), 1u);
}

}  // namespace
}  // namespace lintel
