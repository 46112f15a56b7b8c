// Payloads of long puts that are sent from the memory of the application, without a copy. They are
// sent once or repeatedly, changed meanwhile, or unmapped meanwhile.
#include <sys/mman.h>

#include <gtest/gtest.h>

#include "reliable_test_support.h"
#include "support/modules.h"
#include "util/guarded_memory.h"

namespace lintel::test {
namespace {

constexpr size_t payload_bytes = 8192;

MessageHeader data_header(uint8_t modes = 0) {
  MessageHeader header{};
  header.kind = MessageKind::data;
  header.flags = flag_last;
  header.modes = modes;
  return header;
}

// Two connected processes, and pages that represent memory of the application. Parameter: whether
// frames are encrypted.
class ReliableInPlace : public ConnectedPair, public testing::WithParamInterface<bool> {
 protected:
  ReliableInPlace() : ConnectedPair(true, settings()) {}
  static bool encrypts() { return GetParam(); }
  static ReliableSettings settings() {
    ReliableSettings settings;
    if (!encrypts() || !use_built_modules()) return settings;
    settings.job_key = "a secret that is long enough not to be stretched";
    settings.security = NetworkSecurity::encrypted;
    return settings;
  }
  void SetUp() override {
    if (encrypts() && !use_built_modules()) GTEST_SKIP() << no_crypto_module;
    install_fault_handler();
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, payload_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(memory_, payload_bytes, std::byte{1});
    ConnectedPair::SetUp();
  }
  void TearDown() override {
    if (memory_ != nullptr) munmap(memory_, payload_bytes);
  }

  SendStatus send(const MessageHeader& header) {
    const Piece piece{memory_, payload_bytes};
    return first_.transport().send(*link_, header, &piece, 1);
  }
  void lose_everything() {
    network_.script = [](const LinkAddress&, const LinkAddress&, const Frame&) {
      return std::vector<MemoryNetwork::Copy>{};
    };
  }
  // An encrypted frame needs memory for the encrypted payload.
  void expect_no_copy() {
    if (!encrypts()) {
      EXPECT_LT(first_.transport().frame_memory_used(), payload_bytes / 4);
    }
  }
  void expect_arrival_of(std::byte value) {
    network_.script = nullptr;
    ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 1; }));
    EXPECT_EQ(second_.messages[0].payload, std::vector<std::byte>(payload_bytes, value));
  }

  std::byte* memory_ = nullptr;
};

TEST_P(ReliableInPlace, ThePayloadIsNotCopied) {
  lose_everything();
  ASSERT_EQ(send(data_header()), SendStatus::sent);
  expect_no_copy();
  expect_arrival_of(std::byte{1});
  run_for(all_, 5'000'000);
  EXPECT_EQ(first_.transport().frame_memory_used(), 0u);
}

// The data of a get; the same holds for every message that is not data.
TEST_P(ReliableInPlace, WhatMayChangeIsCopied) {
  lose_everything();
  ASSERT_EQ(send(data_header(data_for_reply)), SendStatus::sent);
  EXPECT_GE(first_.transport().frame_memory_used(), payload_bytes);
  std::fill_n(memory_, payload_bytes, std::byte{2});
  expect_arrival_of(std::byte{1});
}

// The change is an error of the application; later messages must not be affected.
TEST_P(ReliableInPlace, AChangedPayloadIsRepeatedAsItIsNow) {
  lose_everything();
  ASSERT_EQ(send(data_header()), SendStatus::sent);
  std::fill_n(memory_, payload_bytes, std::byte{2});
  expect_arrival_of(std::byte{2});
  EXPECT_TRUE(first_.failed.empty());
}

TEST_P(ReliableInPlace, APayloadThatIsGoneDoesNotStopTheOthers) {
  lose_everything();
  ASSERT_EQ(send(data_header()), SendStatus::sent);
  ASSERT_EQ(mprotect(memory_, payload_bytes, PROT_NONE), 0);
  expect_arrival_of(std::byte{0});
  MessageHeader next{};
  next.kind = MessageKind::put;
  ASSERT_EQ(first_.send(link_, next), SendStatus::sent);
  EXPECT_TRUE(run_until(all_, [&] { return second_.messages.size() == 2; }));
  EXPECT_TRUE(first_.failed.empty());
}

// The data of a long get, and the reply that ends them.
TEST_P(ReliableInPlace, MemoryThatStaysForAWhileIsReleasedWhenItHasArrived) {
  for (const bool lost : {true, false}) {
    if (lost) lose_everything();
    MessageHeader data = data_header(data_for_reply | data_stays);
    data.flags = 0;
    ASSERT_EQ(send(data), SendStatus::sent);
    MessageHeader reply{};
    reply.kind = MessageKind::reply;
    ASSERT_EQ(first_.send(link_, reply), SendStatus::sent);
    const uint32_t mark = first_.transport().payload_mark(*link_);
    expect_no_copy();
    EXPECT_FALSE(first_.transport().payloads_released(*link_, mark));
    const uint64_t before = virtual_now_ns;
    if (lost) {
      run_for(all_, 10'000'000);
      EXPECT_FALSE(first_.transport().payloads_released(*link_, mark));
      network_.script = nullptr;
    }
    ASSERT_TRUE(
        run_until(all_, [&] { return first_.transport().payloads_released(*link_, mark); }));
    // The peer does not delay its acknowledgement until it has something to send.
    const uint64_t without_delay = 2 * network_.latency_ns + ReliableSettings{}.ack_delay_ns / 2;
    EXPECT_TRUE(lost || virtual_now_ns - before < without_delay);
  }
}

// The payload is accessible when it is queued, and gone when the link accepts frames again.
TEST_P(ReliableInPlace, APayloadThatGoesWhileItWaitsDoesNotStopTheOthers) {
  first_.link().full = true;
  ASSERT_EQ(send(data_header()), SendStatus::sent);
  ASSERT_EQ(mprotect(memory_, payload_bytes, PROT_NONE), 0);
  first_.link().full = false;
  // What was encrypted for the first attempt no longer needs the payload.
  expect_arrival_of(encrypts() ? std::byte{1} : std::byte{0});
  EXPECT_TRUE(first_.failed.empty());
}

TEST_P(ReliableInPlace, APayloadThatIsNotThereIsTold) {
  ASSERT_EQ(mprotect(memory_, payload_bytes, PROT_NONE), 0);
  EXPECT_EQ(send(data_header()), SendStatus::inaccessible);
  EXPECT_EQ(first_.transport().frame_memory_used(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Links, ReliableInPlace, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "encrypted" : "plain");
});

}  // namespace
}  // namespace lintel::test
