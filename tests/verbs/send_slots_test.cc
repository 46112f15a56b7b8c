// Memory of messages that are sent.
#include "verbs/message_sender.h"
#include "verbs_test_support.h"

namespace lintel {
namespace {

class SendSlotsTest : public test::VerbsDeviceTest {
 protected:
  void SetUp() override {
    VerbsDeviceTest::SetUp();
    std::string reason;
    ASSERT_TRUE(slots_.emplace().open(device_->pd, 100, 4000, reason)) << reason;
  }
  void TearDown() override {
    slots_.reset();
    VerbsDeviceTest::TearDown();
  }
  std::optional<SendSlots> slots_;
};

TEST_F(SendSlotsTest, AMessageGetsASlotOfTheSmallestSizeThatHoldsIt) {
  EXPECT_EQ(slots_->small_bytes(), 128u);
  const uint32_t small = slots_->acquire(128), large = slots_->acquire(129);
  EXPECT_FALSE(SendSlots::is_large(small));
  EXPECT_TRUE(SendSlots::is_large(large));
  EXPECT_NE(slots_->lkey(small), slots_->lkey(large));
  EXPECT_EQ(slots_->acquire(4033), SendSlots::none);
  std::memset(slots_->data(small), 1, 128);
  std::memset(slots_->data(large), 2, 4032);
  EXPECT_EQ(slots_->data(small)[127], std::byte{1});
}

TEST_F(SendSlotsTest, WhenAllAreInUseThereIsNoneUntilOneIsReleased) {
  uint32_t last = SendSlots::none, count = 0;
  for (uint32_t slot; (slot = slots_->acquire(4000)) != SendSlots::none; ++count) {
    EXPECT_TRUE(SendSlots::is_large(slot));
    last = slot;
  }
  EXPECT_GT(count, 100u);
  EXPECT_NE(slots_->acquire(10), SendSlots::none);
  slots_->release(last);
  EXPECT_EQ(slots_->acquire(4000), last);
}

TEST_F(SendSlotsTest, SlotsOfBothSizesHaveLengthsAndFormLists) {
  const uint32_t small = slots_->acquire(1), large = slots_->acquire(4000);
  slots_->length(small) = 1;
  slots_->length(large) = 4000;
  slots_->next(small) = large;
  slots_->next(large) = small;
  EXPECT_EQ(slots_->length(slots_->next(small)), 4000u);
  EXPECT_EQ(slots_->length(slots_->next(large)), 1u);
}

}  // namespace
}  // namespace lintel
