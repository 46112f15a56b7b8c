// The messages by which both ends agree on a queue pair.
#include <cstring>

#include <gtest/gtest.h>

#include "fake_datagrams.h"
#include "verbs/agreement.h"

namespace lintel {
namespace {

class AgreementSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    link_.datagrams = &datagrams_.link;
    channel_.number = 7;
    channel_.peer.number = 9;
    channel_.index = 3;
    channel_.received.count = 1000;
    link_.channel = &channel_;
  }
  struct Sent {
    Agreement kind;
    AgreementBody body;
  };
  Sent sent(size_t i) {
    Sent result{};
    EXPECT_LT(i, datagrams_.messages.size());
    if (i >= datagrams_.messages.size()) return result;
    const auto& message = datagrams_.messages[i];
    EXPECT_EQ(message.header.kind, MessageKind::connection);
    EXPECT_EQ(message.payload.size(), sizeof result.body);
    result.kind = static_cast<Agreement>(message.header.operation);
    std::memcpy(&result.body, message.payload.data(), sizeof result.body);
    return result;
  }

  test::FakeDatagrams datagrams_;
  UnfinishedLinks unfinished_;
  AgreementSender sender_{datagrams_, unfinished_, 4096};
  VerbsLink link_;
  Channel channel_;
};

TEST_F(AgreementSenderTest, TheyNameBothEndsAndWhatHasArrived) {
  sender_.schedule(link_, VerbsLink::pending_resume);
  EXPECT_FALSE(unfinished_.is_empty());
  EXPECT_TRUE(sender_.send_pending(link_));
  const Sent resume = sent(0);
  EXPECT_EQ(resume.kind, Agreement::resume);
  EXPECT_EQ(resume.body.version, agreement_version);
  EXPECT_EQ(resume.body.sender_number, 7u);
  EXPECT_EQ(resume.body.receiver_number, 9u);
  EXPECT_EQ(resume.body.channel_index, 3u);
  EXPECT_EQ(resume.body.received, 1000u);
  EXPECT_EQ(resume.body.eager_bytes, 4096u);
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(datagrams_.messages.size(), 1u);
}

TEST_F(AgreementSenderTest, WithoutRoomTheyAreSentLaterInTheirOrder) {
  datagrams_.status = SendStatus::queue_full;
  sender_.schedule(link_, VerbsLink::pending_loss);
  sender_.schedule(link_, VerbsLink::pending_offer);
  EXPECT_FALSE(sender_.send_pending(link_));
  datagrams_.status = SendStatus::sent;
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(sent(0).kind, Agreement::offer);
  EXPECT_EQ(sent(1).kind, Agreement::loss);
}

TEST_F(AgreementSenderTest, MessagesGoOverTheQueuePairOnceThePeerWasTold) {
  datagrams_.status = SendStatus::queue_full;
  sender_.begin_change(link_);
  EXPECT_FALSE(sender_.send_pending(link_));
  EXPECT_EQ(link_.path, Path::changing);
  datagrams_.status = SendStatus::sent;
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(link_.path, Path::queue_pair);
}

TEST_F(AgreementSenderTest, APeerThatIsGoneIsOwedNothing) {
  datagrams_.status = SendStatus::peer_failed;
  sender_.begin_change(link_);
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(link_.pending, 0);
  EXPECT_EQ(link_.path, Path::changing);
}

TEST_F(AgreementSenderTest, RefusalsNameTheQueuePairOfThePeer) {
  sender_.decline(link_, 33);
  sender_.deny(link_, 44, 55);
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(sent(0).kind, Agreement::decline);
  EXPECT_EQ(sent(0).body.receiver_number, 33u);
  EXPECT_EQ(sent(1).kind, Agreement::resume);
  EXPECT_EQ(sent(1).body.sender_number, 44u);
  EXPECT_EQ(sent(1).body.receiver_number, 55u);
  EXPECT_EQ(sent(1).body.received, 0u);
}

}  // namespace
}  // namespace lintel
