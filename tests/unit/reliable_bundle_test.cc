// Several messages in one frame.
#include <cstring>

#include "unit/reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr ProcessId first_id{1, 1};
constexpr ProcessId second_id{2, 2};

class ReliableBundle : public testing::Test {
 protected:
  void SetUp() override {
    to_second_ = first_.connect(second_id);
    send_surely(first_, to_second_, all_, numbered_put(0), {});
    ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 1; }));
    run_for(all_, 1'000'000);
    network_.frames_carried = 0;
  }
  void send(uint64_t number, size_t bytes) {
    ASSERT_EQ(first_.send(to_second_, numbered_put(number), numbered_bytes(number, bytes)),
              SendStatus::sent);
  }
  MemoryNetwork network_;
  MemoryProcess first_{network_, first_id};
  MemoryProcess second_{network_, second_id};
  std::vector<MemoryProcess*> all_{&first_, &second_};
  Link* to_second_ = nullptr;
};

TEST_F(ReliableBundle, MessagesThatWaitShareFrames) {
  first_.link().full = true;
  const size_t lengths[] = {0, 1, 7, 8, 9, 40, 3, 100, 64, 5, 300, 2, 0, 12, 33, 8};
  uint64_t number = 0;
  for (const size_t length : lengths) send(++number, length);
  first_.link().full = false;
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 1 + std::size(lengths); }));
  for (uint64_t i = 1; i <= std::size(lengths); ++i) {
    EXPECT_EQ(second_.messages[i].header.match_bits, i);
    EXPECT_EQ(second_.messages[i].payload, numbered_bytes(i, lengths[i - 1])) << i;
  }
  run_for(all_, 1'000'000);
  EXPECT_LT(network_.frames_carried, std::size(lengths) * 3 / 4);
  EXPECT_EQ(first_.transport().frame_memory_used(), 0u);
}

TEST_F(ReliableBundle, ABundleThatIsLostComesAgainWhole) {
  first_.link().full = true;
  for (uint64_t number = 1; number <= 5; ++number) send(number, 4);
  first_.link().full = false;
  unsigned lost = 0;
  network_.script = [&](const LinkAddress& from, const LinkAddress&,
                        const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    if (from == address_of(first_id) && header_of(frame).type == FrameType::data && lost < 2) {
      ++lost;
      return {};
    }
    return {{frame, 0}};
  };
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 6; }));
  for (uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(second_.messages[i].payload, numbered_bytes(i, 4));
  run_for(all_, 10'000'000);
  EXPECT_EQ(second_.messages.size(), 6u);
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

TEST(ReliableBundleOfAnybody, AWellFormedOneIsDelivered) {
  HostileBundle bundle;
  bundle.inject([](auto&) {});
  ASSERT_EQ(bundle.target.messages.size(), 2u);
  EXPECT_EQ(bundle.target.messages[1].header.match_bits, 1u);
}

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

}  // namespace
}  // namespace lintel::test
