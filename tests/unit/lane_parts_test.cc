// The parts of a lane's two ends, each by itself.
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lane/byte_ring.h"
#include "lane/cell_ring.h"
#include "lane/lane_acks.h"

namespace lintel {
namespace {

constexpr LaneGeometry geometry{31, 16 * 1024};

struct alignas(128) Memory {
  LaneControl control;
  LaneCell cells[geometry.cells];
};

TEST(CellRing, ALapVisitsEachCellOnceAndThenTheNextBegins) {
  Memory memory{};
  const CellRing ring(&memory.control, geometry);
  CellPlace place;
  for (uint32_t lap = 1; lap <= 3; ++lap) {
    std::set<const LaneCell*> seen;
    for (uint32_t i = 0; i < geometry.cells; ++i) {
      EXPECT_EQ(place.link_word(80), lap << 16 | 80);
      EXPECT_TRUE(place.is_published_by(lap << 16 | i));
      EXPECT_FALSE(place.is_published_by((lap - 1) << 16 | i));
      EXPECT_TRUE(seen.insert(&ring.at(place)).second);
      ring.advance(place);
    }
    EXPECT_EQ(&ring.at(place), memory.cells);
  }
}

TEST(CellRing, NoLapIsZero) {
  constexpr LaneGeometry smallest{4, 16 * 1024};
  Memory memory{};
  const CellRing ring(&memory.control, smallest);
  CellPlace place;
  for (uint32_t i = 0; i < 0xffff * smallest.cells; ++i) {
    ASSERT_NE(place.link_word(0), 0u) << i;
    ring.advance(place);
  }
  EXPECT_EQ(place.link_word(0), 1u << 16);
}

TEST(CellRing, FindsCellsBeforeAndBeyond) {
  Memory memory{};
  const CellRing ring(&memory.control, geometry);
  std::vector<CellPlace> places(3 * geometry.cells);
  for (size_t i = 1; i < places.size(); ++i) {
    places[i] = places[i - 1];
    ring.advance(places[i]);
  }
  const CellPlace middle = places[geometry.cells + 5];
  for (uint32_t i = 0; i <= geometry.cells; ++i) {
    EXPECT_EQ(ring.cell_before(middle, i), places[geometry.cells + 5 - i].cell());
    EXPECT_EQ(&ring.beyond(middle, geometry.cell_after(0, i)),
              &ring.at(places[geometry.cells + 5 + i]));
  }
}

class ByteRingTest : public ::testing::Test {
 protected:
  // A payload that was published in that cell. False: there was no room.
  bool put(uint32_t length, uint32_t cell) {
    const ByteRing::Room room = ring_.room_for(length);
    if (!ring_.is_free(room)) return false;
    offset_ = room.offset;
    ring_.take(room);
    ring_.note_published(cell);
    return true;
  }
  std::vector<std::byte> bytes_{geometry.data_bytes};
  ByteRing ring_;
  uint32_t offset_ = 0;
};

TEST_F(ByteRingTest, PayloadsAreContiguousAndShareNoCacheLine) {
  ASSERT_TRUE(ring_.attach(bytes_.data(), geometry, geometry.data_bytes));
  ASSERT_TRUE(put(100, 0));
  EXPECT_EQ(offset_, 0u);
  ASSERT_TRUE(put(8192, 1));
  EXPECT_EQ(offset_, 128u);
  ASSERT_TRUE(put(4096, 2));
  EXPECT_EQ(offset_, 128u + 8192);
  // The end of the ring has 3,968 bytes, its beginning none before the first two are released.
  EXPECT_FALSE(put(4096, 3));
  ring_.note_released(0);
  EXPECT_FALSE(put(4096, 3));
  ring_.note_released(1);
  ASSERT_TRUE(put(4096, 3));
  EXPECT_EQ(offset_, 0u);
}

TEST_F(ByteRingTest, ThePartThatMayNotBeUsedIsUsedAfterExtend) {
  ASSERT_TRUE(ring_.attach(bytes_.data(), geometry, 8192));
  ASSERT_TRUE(put(8192, 0));
  EXPECT_TRUE(ring_.must_grow_for(1));
  ring_.extend(true);
  EXPECT_FALSE(ring_.must_grow_for(1));
  ASSERT_TRUE(put(8192, 1));
  EXPECT_EQ(offset_, 8192u);
}

TEST_F(ByteRingTest, WithoutMoreMemoryItWrapsInThePartThatMayBeUsed) {
  ASSERT_TRUE(ring_.attach(bytes_.data(), geometry, 8192));
  ASSERT_TRUE(put(8192, 0));
  ring_.extend(false);
  EXPECT_FALSE(ring_.must_grow_for(64));
  EXPECT_FALSE(put(64, 1));
  ring_.note_released(0);
  ASSERT_TRUE(put(64, 1));
  EXPECT_EQ(offset_, 0u);
}

class LaneAcksTest : public ::testing::Test {
 protected:
  // The places are counted from where the line was left.
  explicit LaneAcksTest(uint32_t taken = UINT32_MAX - 7) {
    control_.acks_taken = taken;
    control_.acks.sent = taken;
    writer_.attach(&control_);
    reader_.attach(&control_);
  }
  std::vector<uint32_t> take(unsigned max) {
    InboundMessage messages[2 * lane_ack_places];
    const unsigned count = reader_.peek(messages, max, malformed_);
    std::vector<uint32_t> cookies;
    for (unsigned i = 0; i < count; ++i) {
      EXPECT_EQ(messages[i].header.kind, MessageKind::ack_batch);
      EXPECT_EQ(messages[i].payload_length, 0u);
      cookies.push_back(messages[i].header.cookie);
    }
    EXPECT_EQ(reader_.release(), count);
    return cookies;
  }
  LaneControl control_;
  LaneAckWriter writer_;
  LaneAckReader reader_;
  bool malformed_ = false;
};

TEST_F(LaneAcksTest, ComeOnceAndInOrderWhileTheNumbersWrap) {
  EXPECT_FALSE(reader_.ready());
  uint32_t sent = 0;
  for (uint32_t received = 0; received < 100;) {
    for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(writer_.push(++sent));
    EXPECT_TRUE(reader_.ready());
    for (const unsigned most : {3u, 16u})
      for (const uint32_t cookie : take(most)) EXPECT_EQ(cookie, ++received);
    EXPECT_FALSE(reader_.ready());
  }
  EXPECT_FALSE(malformed_);
}

TEST_F(LaneAcksTest, AFullLineTakesNoMoreUntilSomeWereTaken) {
  for (uint32_t i = 0; i < lane_ack_places; ++i) ASSERT_TRUE(writer_.push(i));
  EXPECT_FALSE(writer_.push(99));
  EXPECT_EQ(take(lane_ack_places).size(), lane_ack_places);
  EXPECT_TRUE(writer_.push(99));
  EXPECT_EQ(take(16), std::vector<uint32_t>{99});
}

TEST_F(LaneAcksTest, MoreThanFitIsMalformed) {
  control_.acks.sent += lane_ack_places + 1;
  EXPECT_TRUE(take(16).empty());
  EXPECT_TRUE(malformed_);
}

}  // namespace
}  // namespace lintel
