// Encrypted frames that a link may refer to after it has sent them: their pages hold ciphertext
// only, and do not change while a copy of the frame may be on its way.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "reliable/ciphertext_pages.h"
#include "reliable/frame_pool.h"
#include "reliable_test_support.h"
#include "support/modules.h"
#include "util/guarded_memory.h"

namespace lintel::test {
namespace {

constexpr uint32_t page_bytes = 4096;
constexpr uint32_t payload_bytes = 15 * page_bytes;
constexpr uint64_t rotated_blocks = CiphertextPages::rotated_bytes / payload_bytes + 1;

TEST(CiphertextPagesTest, ABlockIsUsedAgainWhenManyOthersHaveBeen) {
  CiphertextPages pages;
  EXPECT_EQ(pages.acquire(), CiphertextPages::none) << "it is not open";
  ASSERT_TRUE(pages.open(1000, payload_bytes));
  std::vector<uint32_t> order;
  for (uint64_t i = 0; i < 3 * rotated_blocks; ++i) {
    order.push_back(pages.acquire());
    pages.release(order.back());
  }
  const std::set<uint32_t> used(order.begin(), order.end());
  EXPECT_EQ(used.size(), rotated_blocks) << "and no more memory is touched";
  for (size_t i = rotated_blocks; i < order.size(); ++i)
    EXPECT_EQ(order[i], order[i - rotated_blocks]);
}

TEST(CiphertextPagesTest, BlocksAreWholePagesOfTheirOwn) {
  constexpr uint32_t blocks = 100;
  CiphertextPages pages;
  ASSERT_TRUE(pages.open(blocks, payload_bytes + 1));
  std::vector<uint32_t> all;
  std::set<uintptr_t> addresses;
  for (uint32_t i = 0; i < blocks; ++i) {
    all.push_back(pages.acquire());
    ASSERT_NE(all.back(), CiphertextPages::none);
    std::fill_n(pages.memory_of(all.back()), payload_bytes + 1, std::byte{1});
    addresses.insert(reinterpret_cast<uintptr_t>(pages.memory_of(all.back())));
  }
  EXPECT_EQ(pages.acquire(), CiphertextPages::none) << "all are in use";
  ASSERT_EQ(addresses.size(), blocks);
  uintptr_t end = 0;
  for (const uintptr_t address : addresses) {
    EXPECT_EQ(address % page_bytes, 0u);
    EXPECT_GE(address, end);
    end = address + payload_bytes + page_bytes;
  }
  pages.release(all[70]);
  pages.release(all[3]);
  EXPECT_EQ(pages.acquire(), all[70]);
  EXPECT_EQ(pages.acquire(), all[3]);
}

TEST(CiphertextPagesTest, BlocksBeginAtAHugePage) {
  CiphertextPages pages;
  ASSERT_TRUE(pages.open(10, payload_bytes));
  const uint32_t first = pages.acquire();
  ASSERT_EQ(first, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.memory_of(first)) % CiphertextPages::huge_page_bytes,
            0u);
  std::fill_n(pages.memory_of(9), payload_bytes, std::byte{1});
}

TEST(CiphertextPagesTest, AReleasedFrameGivesItsPagesBack) {
  FramePool pool;
  ASSERT_TRUE(pool.open(payload_bytes, 8 * payload_bytes));
  FrameBuffer* const without = pool.acquire(payload_bytes);
  ASSERT_NE(without, nullptr);
  EXPECT_EQ(pool.renew_pages(*without), nullptr);
  pool.release(without);
  ASSERT_TRUE(pool.add_pages());
  for (int i = 0; i < 100; ++i) {
    FrameBuffer* const frame = pool.acquire(payload_bytes);
    ASSERT_NE(frame, nullptr);
    const std::byte* const first = pool.renew_pages(*frame);
    ASSERT_NE(first, nullptr);
    EXPECT_NE(pool.renew_pages(*frame), first) << "a first copy may be on its way";
    pool.release(frame);
  }
}

constexpr uint32_t frame_payload = 8192;
constexpr std::byte marker{0x5a};

class ReliablePages : public ConnectedPair {
 protected:
  ReliablePages() : ConnectedPair(true, settings(), frame_payload) {}
  static ReliableSettings settings() {
    ReliableSettings settings;
    if (!use_built_modules()) return settings;
    settings.job_key = "a secret that is long enough not to be stretched";
    settings.security = NetworkSecurity::encrypted;
    settings.memory_bytes = 1 << 20;
    return settings;
  }
  void SetUp() override {
    if (!use_built_modules()) GTEST_SKIP() << no_crypto_module;
    install_fault_handler();
    ConnectedPair::SetUp();
  }
  SendStatus send_data() {
    MessageHeader header{};
    header.kind = MessageKind::data;
    header.flags = flag_last;
    std::fill_n(reinterpret_cast<std::byte*>(&header.match_bits), sizeof header.match_bits, marker);
    const Piece piece{memory_.data(), memory_.size()};
    return first_.transport().send(*link_, header, &piece, 1);
  }
  void send_data_surely() {
    EXPECT_TRUE(run_until(all_, [&] { return send_data() == SendStatus::sent; }));
  }
  // No eight bytes of any page that the link may still refer to are plaintext.
  void expect_ciphertext() {
    for (const MemoryLink::Referred& frame : first_.link().referred) {
      const std::byte* const end = frame.memory + 3 * page_bytes;
      EXPECT_EQ(std::search_n(frame.memory, end, 8, marker), end);
    }
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(frame_payload, marker);
};

TEST_F(ReliablePages, HoldNothingButCiphertext) {
  constexpr size_t messages = 600;
  uint64_t frames = 0;
  network_.script = [&](const LinkAddress&, const LinkAddress&, const Frame& frame) {
    std::vector<MemoryNetwork::Copy> copies;
    if (++frames % 5 != 0) copies.push_back({frame, 0});
    return copies;
  };
  for (size_t i = 0; i < messages; ++i) {
    send_data_surely();
    if (i % 50 == 0) expect_ciphertext();
  }
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == messages; }));
  for (const MemoryProcess::Message& message : second_.messages)
    ASSERT_EQ(message.payload, memory_);
  EXPECT_GT(first_.transport().counters().retransmissions, 0u);
  EXPECT_GT(first_.link().referred.size(), messages) << "all of them went by reference";
  expect_ciphertext();
}

// Until then it must not change, and a copy that is late is still good.
TEST_F(ReliablePages, AFrameThatIsSentAgainGetsOthers) {
  network_.script = [](const LinkAddress&, const LinkAddress&, const Frame&) {
    return std::vector<MemoryNetwork::Copy>{};
  };
  ASSERT_EQ(send_data(), SendStatus::sent);
  auto& referred = first_.link().referred;
  ASSERT_TRUE(run_until(all_, [&] { return referred.size() == 3; }));
  EXPECT_NE(referred[1].memory, referred[0].memory);
  EXPECT_NE(referred[2].memory, referred[1].memory);
  for (const MemoryLink::Referred& frame : referred)
    EXPECT_TRUE(std::equal(frame.sent.begin(), frame.sent.end(), frame.memory));
  EXPECT_TRUE(second_.messages.empty());
  network_.inject(address_of(first_id), address_of(second_id), referred[0].sent);
  EXPECT_TRUE(run_until(all_, [&] { return second_.messages.size() == 1; }));
  EXPECT_EQ(second_.messages[0].payload, memory_);
}

// A copy that the kernel still refers to may become part of another frame.
TEST_F(ReliablePages, AFrameWhosePagesAreThoseOfAnotherByNowChangesNothing) {
  ASSERT_EQ(send_data(), SendStatus::sent);
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 1; }));
  const auto& referred = first_.link().referred;
  const MemoryLink::Referred late = referred[0];
  const auto changed = [&] { return !std::equal(late.sent.begin(), late.sent.end(), late.memory); };
  for (size_t sent = 1; !changed(); ++sent) {
    ASSERT_LT(sent, 10'000u);
    send_data_surely();
  }
  run_for(all_, 5'000'000);
  const size_t messages = second_.messages.size();
  const uint64_t damaged = second_.transport().counters().damaged;
  Frame mixture = late.sent;
  std::copy_n(late.memory + page_bytes, mixture.size() - page_bytes, mixture.begin() + page_bytes);
  network_.inject(address_of(first_id), address_of(second_id), mixture);
  run_for(all_, 5'000'000);
  EXPECT_EQ(second_.messages.size(), messages);
  EXPECT_EQ(second_.transport().counters().damaged + second_.transport().counters().replayed,
            damaged + 1);
  EXPECT_TRUE(first_.failed.empty());
  EXPECT_TRUE(second_.failed.empty());
}

TEST_F(ReliablePages, ShortMessagesStayInTheirFrames) {
  send_surely(first_, link_, all_, numbered_put(1), numbered_bytes(1, 4000));
  EXPECT_TRUE(first_.link().referred.empty());
}

}  // namespace
}  // namespace lintel::test
