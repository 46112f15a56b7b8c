// Parts of long messages that arrive before earlier frames. They are delivered at once, each once;
// all other messages wait for their turn.
#include <gtest/gtest.h>

#include "reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr size_t part_bytes = 8000;

MessageHeader part(uint64_t number, uint8_t flags = 0) {
  MessageHeader header{};
  header.kind = MessageKind::data;
  header.flags = flags;
  header.remote_offset = number;
  return header;
}

class ReliableEarlyData : public ConnectedPair {
 protected:
  ReliableEarlyData() : ConnectedPair(false) {}

  // The number of copies in which each of the next long frames arrives. All other frames arrive
  // once.
  void carry_long_frames(std::vector<unsigned> copies) {
    network_.script = [copies, seen = size_t{0}](const LinkAddress&, const LinkAddress&,
                                                 const Frame& frame) mutable {
      const bool is_long = frame.size() > part_bytes;
      const unsigned wanted = is_long && seen < copies.size() ? copies[seen++] : 1;
      return std::vector<MemoryNetwork::Copy>(wanted, MemoryNetwork::Copy{frame, 0});
    };
  }
  void send_part(uint64_t number, uint8_t flags = 0) {
    ASSERT_EQ(first_.send(link_, part(number, flags),
                          std::vector<std::byte>(part_bytes, std::byte(number))),
              SendStatus::sent);
  }
  std::vector<uint64_t> arrived() const {
    std::vector<uint64_t> numbers;
    for (const MemoryProcess::Message& message : second_.messages) {
      EXPECT_EQ(message.payload,
                std::vector<std::byte>(part_bytes, std::byte(message.header.remote_offset)));
      numbers.push_back(message.header.remote_offset);
    }
    return numbers;
  }
};

using Numbers = std::vector<uint64_t>;

TEST_F(ReliableEarlyData, PartsThatWentUpAreNotKept) {
  carry_long_frames({0, 1, 1, 1, 1, 0, 0, 0});
  for (uint64_t i = 1; i <= 5; ++i) send_part(i);
  send_part(6, flag_last);
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 4; }));
  EXPECT_EQ(arrived(), (Numbers{2, 3, 4, 5}));
  EXPECT_LT(second_.transport().frame_memory_used(), part_bytes);
  ASSERT_TRUE(run_until(all_, [&] { return first_.transport().all_delivered(); }));
  EXPECT_EQ(arrived(), (Numbers{2, 3, 4, 5, 1, 6}));
  EXPECT_EQ(second_.transport().frame_memory_used(), 0u);
}

}  // namespace
}  // namespace lintel::test
