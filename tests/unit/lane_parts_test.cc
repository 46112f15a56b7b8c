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
  CellPlace place = ring.start();
  for (uint32_t lap = 1; lap <= 3; ++lap) {
    std::set<const LaneCell*> seen;
    for (uint32_t i = 0; i < geometry.cells; ++i) {
      EXPECT_EQ(place.link_word(80), lap << 16 | 80);
      EXPECT_TRUE(place.is_published_by(lap << 16 | i));
      EXPECT_FALSE(place.is_published_by((lap - 1) << 16 | i));
      EXPECT_TRUE(seen.insert(&place.cell()).second);
      ring.advance(place);
    }
    EXPECT_EQ(&place.cell(), memory.cells);
  }
}

TEST(CellRing, NoLapIsZero) {
  constexpr LaneGeometry smallest{4, 16 * 1024};
  Memory memory{};
  const CellRing ring(&memory.control, smallest);
  CellPlace place = ring.start();
  for (uint32_t i = 0; i < 0xffff * smallest.cells; ++i) {
    ASSERT_NE(place.link_word(0), 0u) << i;
    ring.advance(place);
  }
  EXPECT_EQ(place.link_word(0), 1u << 16);
}

TEST(CellRing, FindsCellsBeyond) {
  Memory memory{};
  const CellRing ring(&memory.control, geometry);
  std::vector<CellPlace> places(3 * geometry.cells, ring.start());
  for (size_t i = 1; i < places.size(); ++i) {
    places[i] = places[i - 1];
    ring.advance(places[i]);
  }
  const CellPlace middle = places[geometry.cells + 5];
  for (uint32_t i = 0; i <= geometry.cells; ++i) {
    EXPECT_EQ(&ring.beyond(middle, geometry.bytes_after(i)),
              &places[geometry.cells + 5 + i].cell());
  }
}

class ByteRingTest : public ::testing::Test {
 protected:
  // A payload of that message. False: there was no room.
  bool put(uint32_t length, uint32_t message) {
    const ByteRing::Room room = ring_.room_for(length);
    if (!ring_.is_free(room)) return false;
    offset_ = room.offset;
    ring_.take(room, message);
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
  ring_.note_released(1);
  EXPECT_FALSE(put(4096, 3));
  ring_.note_released(2);
  ASSERT_TRUE(put(4096, 3));
  EXPECT_EQ(offset_, 0u);
}

// Of a stream of messages of which some have a payload here, also past the end of the numbers.
TEST_F(ByteRingTest, RoomComesBackWithTheMessagesThatHadIt) {
  ASSERT_TRUE(ring_.attach(bytes_.data(), geometry, geometry.data_bytes));
  const uint32_t first = UINT32_MAX - 2 * geometry.cells;
  for (uint32_t i = 0; i < 8 * geometry.cells; i += 4) {
    ASSERT_TRUE(put(8192, first + i)) << i;
    ASSERT_TRUE(put(64, first + i + 2)) << i;
    ring_.note_released(first + i);
    EXPECT_FALSE(put(8192, first + i + 3)) << i;
    ring_.note_released(first + i + 4);
  }
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
  ring_.note_released(1);
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
  unsigned push(uint32_t cookie) { return writer_.push(&cookie, 1); }
  std::vector<uint32_t> take() {
    uint32_t cookies[lane_ack_places];
    const unsigned count = reader_.take(cookies, malformed_);
    return {cookies, cookies + count};
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
    for (unsigned i = 0; i < 5; ++i) ASSERT_EQ(push(++sent), 1u);
    const uint32_t several[] = {sent + 1, sent + 2, sent + 3};
    ASSERT_EQ(writer_.push(several, 3), 3u);
    sent += 3;
    EXPECT_TRUE(reader_.ready());
    for (const uint32_t cookie : take()) EXPECT_EQ(cookie, ++received);
    EXPECT_EQ(received, sent);
    EXPECT_FALSE(reader_.ready());
  }
  EXPECT_FALSE(malformed_);
}

TEST_F(LaneAcksTest, AFullLineTakesNoMoreUntilSomeWereTaken) {
  const std::vector<uint32_t> cookies(lane_ack_places + 2, 7);
  EXPECT_EQ(push(7), 1u);
  EXPECT_EQ(writer_.push(cookies.data(), lane_ack_places + 2), lane_ack_places - 1);
  EXPECT_EQ(push(99), 0u);
  EXPECT_EQ(take().size(), lane_ack_places);
  EXPECT_EQ(push(99), 1u);
  EXPECT_EQ(take(), std::vector<uint32_t>{99});
}

// The peer writes the number of acknowledgements that it has taken.
TEST_F(LaneAcksTest, AFalseNumberOfTakenOnesOverwritesNothingElse) {
  for (uint32_t i = 0; i < lane_ack_places; ++i) ASSERT_EQ(push(i), 1u);
  for (const uint32_t more : {1u, lane_ack_places, lane_ack_places + 1, 1u << 31}) {
    control_.acks_taken = control_.acks.sent + more;
    EXPECT_EQ(push(99), 0u);
  }
}

TEST_F(LaneAcksTest, MoreThanFitIsMalformed) {
  control_.acks.sent += lane_ack_places + 1;
  EXPECT_TRUE(take().empty());
  EXPECT_TRUE(malformed_);
}

}  // namespace
}  // namespace lintel
