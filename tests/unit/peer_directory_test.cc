#include "core/operations/peer_directory.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "scripted_transport.h"
#include "util/log.h"

namespace lintel::test {
namespace {

class PeerDirectoryTest : public ::testing::Test {
 protected:
  PeerDirectoryTest() {
    for (unsigned i = 0; i < 2; ++i) transports_.push_back(std::make_unique<ScriptedTransport>());
    EXPECT_TRUE(directory_.open(transports_, unused_, in_process_sends_));
  }
  ScriptedTransport& transport(unsigned number) {
    return static_cast<ScriptedTransport&>(*transports_[number]);
  }
  std::vector<std::unique_ptr<Transport>> transports_;
  const std::vector<OpenedTransports::Unused> unused_{{"better", "it has no device", 0, false},
                                                      {"worse", "it is off", 2, false}};
  PollFlag in_process_sends_;
  PeerDirectory directory_;
};

TEST_F(PeerDirectoryTest, TheFirstTransportThatReachesAPeerServesIt) {
  transport(0).reaches = false;
  Peer* const peer = directory_.find_or_connect({1, 2});
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer->route.transport, &transport(1));
  EXPECT_EQ(peer->route.link, &transport(1).links[2]);
  EXPECT_EQ(PeerDirectory::peer_of(*peer->route.link), peer);
  EXPECT_EQ(directory_.find_or_connect({1, 2}), peer);
  EXPECT_EQ(transport(1).connects, 1u);
}

TEST_F(PeerDirectoryTest, APeerThatNothingReachesIsNotKept) {
  transport(0).reaches = transport(1).reaches = false;
  EXPECT_EQ(directory_.find_or_connect({1, 2}), nullptr);
  EXPECT_EQ(directory_.find({1, 2}), nullptr);
  EXPECT_EQ(directory_.all().size(), 0u);
}

TEST_F(PeerDirectoryTest, AFailedPeerIsConnectedAgain) {
  Peer* const peer = directory_.find_or_connect({1, 2});
  peer->failed = true;
  transport(0).reaches = false;
  EXPECT_EQ(directory_.find_or_connect({1, 2}), peer);
  EXPECT_FALSE(peer->failed);
  EXPECT_EQ(peer->route.transport, &transport(1));
}

TEST_F(PeerDirectoryTest, AProcessMayConnectByItself) {
  Link link;
  link.peer = {1, 3};
  EXPECT_EQ(PeerDirectory::peer_of(link), nullptr);
  const LockGuard lock(directory_.mutex());
  Peer* const peer = directory_.accept(link, transport(1));
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(directory_.find_or_connect({1, 3}), peer);
  EXPECT_EQ(PeerDirectory::peer_of(link), peer);
  EXPECT_EQ(peer->route.transport, &transport(1));
}

TEST_F(PeerDirectoryTest, AProcessThatConnectsByTheWorseTransportIsSentToByTheBetterOne) {
  transport(0).offers.finds_at_once = true;
  transport(0).process = transport(1).process = 7;
  Link link;
  link.peer = {1, 3};
  const LockGuard lock(directory_.mutex());
  Peer* const peer = directory_.accept(link, transport(1));
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(PeerDirectory::peer_of(link), peer);
  EXPECT_EQ(peer->route.transport, &transport(0));
  EXPECT_EQ(peer->route.link, &transport(0).links[3]);
}

TEST_F(PeerDirectoryTest, TheBetterTransportMayLeadToAnEarlierProcess) {
  transport(0).offers.finds_at_once = true;
  transport(0).process = 6;
  transport(1).process = 7;
  Link link;
  link.peer = {1, 3};
  const LockGuard lock(directory_.mutex());
  EXPECT_EQ(directory_.accept(link, transport(1))->route.transport, &transport(1));
}

TEST_F(PeerDirectoryTest, BetterTransportsAreTriedAgainWhenTheProcessRuns) {
  transport(0).offers.finds_at_once = true;
  transport(0).reaches = false;
  Peer* const peer = directory_.find_or_connect({1, 3});
  ASSERT_EQ(peer->route.transport, &transport(1));
  transport(0).reaches = true;
  directory_.reconsider(*peer);
  EXPECT_EQ(peer->route.transport, &transport(1)) << "it is not known whether its process runs";
  EXPECT_EQ(transport(0).connects, 1u);
  transport(0).process = transport(1).process = 7;
  directory_.reconsider(*peer);
  EXPECT_EQ(peer->route.transport, &transport(0));
}

TEST_F(PeerDirectoryTest, BetterTransportsAreTriedAgainOnce) {
  transport(0).offers.finds_at_once = true;
  transport(0).reaches = false;
  Peer* const peer = directory_.find_or_connect({1, 3});
  transport(1).process = 7;
  for (unsigned i = 0; i < 3; ++i) directory_.reconsider(*peer);
  EXPECT_EQ(peer->route.transport, &transport(1));
  EXPECT_EQ(transport(0).connects, 2u);
}

TEST_F(PeerDirectoryTest, ThePathToAPeerSaysWhyNoneOfTheBetterTransportsServesIt) {
  PeerPath path = directory_.path_to({1, 2});
  EXPECT_STREQ(path.transport, "scripted");
  EXPECT_EQ(path.device, "dev0");
  EXPECT_EQ(path.reason, "better: it has no device");
  transport(0).reaches = false;
  path = directory_.path_to({1, 3});
  EXPECT_STREQ(path.transport, "scripted");
  EXPECT_EQ(path.reason, "better: it has no device; scripted: out of reach");
  transport(1).reaches = false;
  path = directory_.path_to({1, 4});
  EXPECT_EQ(path.transport, nullptr);
  EXPECT_EQ(path.reason,
            "better: it has no device; scripted: out of reach; scripted: out of reach; "
            "worse: it is off");
}

TEST_F(PeerDirectoryTest, TheLineAboutAPeerNamesNoEmptyDevice) {
  set_log_level(LogLevel::info);
  testing::internal::CaptureStderr();
  transport(0).name_of_device = "";
  static_cast<void>(directory_.find_or_connect({1, 2}));
  const std::string text = testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::warn);
  EXPECT_NE(text.find("is reached by scripted"), std::string::npos) << text;
  EXPECT_EQ(text.find("()"), std::string::npos) << text;
}

TEST_F(PeerDirectoryTest, ThePathToAPeerThatFailedIsWhyItFailed) {
  Peer* const peer = directory_.find_or_connect({1, 2});
  peer->failure.because = "it does not answer";
  peer->failed = true;
  const PeerPath path = directory_.path_to({1, 2});
  EXPECT_EQ(path.transport, nullptr);
  EXPECT_EQ(path.reason, "it does not answer");
  EXPECT_EQ(transport(0).connects, 1u);
}

TEST_F(PeerDirectoryTest, APeerThatNothingReachesIsWarnedOfOnce) {
  transport(0).reaches = transport(1).reaches = false;
  testing::internal::CaptureStderr();
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(directory_.find_or_connect({0xc0000202, 7}), nullptr);
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string expected = "warn: no transport reaches nid 192.0.2.2 pid 7: better: it has";
  EXPECT_NE(text.find(expected), std::string::npos) << text;
  EXPECT_EQ(text.find(expected), text.rfind(expected)) << text;
}

TEST_F(PeerDirectoryTest, TheLongestPutThatTravelsWithItsHeaderDependsOnTheTransport) {
  transport(0).offers.max_eager_bytes = 4096;
  EXPECT_EQ(directory_.find_or_connect({1, 1})->route.eager_put_bytes, 4096u);
  transport(0).offers.remote_access = true;
  transport(0).offers.remote_threshold_bytes = 512;
  EXPECT_EQ(directory_.find_or_connect({1, 2})->route.eager_put_bytes, 512u);
}

TEST_F(PeerDirectoryTest, OnlyTheOwnProcessHasThePollerTold) {
  directory_.find_or_connect({1, 1})->note_in_process_send();
  EXPECT_FALSE(in_process_sends_.is_set());
  transport(0).offers.in_process = true;
  directory_.find_or_connect({1, 2})->note_in_process_send();
  EXPECT_TRUE(in_process_sends_.is_set());
}

// A poller that sleeps without a limit, because there are no peers, must learn of the first one.
TEST_F(PeerDirectoryTest, AConnectionToAnotherProcessWakesThePoller) {
  Doorbell doorbell;
  directory_.set_doorbell(doorbell);
  const uint32_t rings = doorbell.announce_sleep();
  EXPECT_FALSE(directory_.has_others());
  Peer* const peer = directory_.find_or_connect({1, 1});
  EXPECT_TRUE(directory_.has_others());
  EXPECT_EQ(doorbell.rings.load(), rings + 1);
  peer->failed = true;
  EXPECT_FALSE(directory_.has_others());
  transport(0).offers.in_process = true;
  EXPECT_NE(directory_.find_or_connect({1, 2}), nullptr);
  EXPECT_FALSE(directory_.has_others());
}

TEST_F(PeerDirectoryTest, PeersThatSomebodyWaitsForAreCheckedByTheirTransport) {
  std::vector<Link*> expected;
  for (uint32_t pid = 0; pid < 200; ++pid) {
    Peer* const peer = directory_.find_or_connect({1, pid});
    if (pid == 0) {
      EXPECT_FALSE(directory_.awaits_any());
    }
    if (pid % 2 == 0) {
      peer->count_as_started();
      if (pid % 10 == 0)
        peer->failed = true;
      else
        expected.push_back(peer->route.link);
    }
  }
  EXPECT_TRUE(directory_.awaits_any());
  std::vector<Link*> checked;
  unsigned calls_of_other = 0;
  directory_.check_awaited([&](Transport& asked, Link* const* links, unsigned count) {
    if (&asked == &transport(0))
      checked.insert(checked.end(), links, links + count);
    else
      ++calls_of_other;
  });
  EXPECT_EQ(checked, expected);
  EXPECT_EQ(calls_of_other, 1u);
}

}  // namespace
}  // namespace lintel::test
