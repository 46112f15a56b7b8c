// Streams between memory of a device and the network: copies that end in any order, fail, or cannot
// be started; messages that wait for buffers.
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/operations/staging.h"
#include "support/memory.h"
#include "test_memory_kind.h"

namespace lintel::test {
namespace {

constexpr uint64_t block = StagingBuffers::buffer_bytes;
using Direction = StagedStream::Direction;

class StagedStreamTest : public testing::Test, protected StagingClient {
 protected:
  static void TearDownTestSuite() { TestMemoryKind::leave(); }
  static constexpr uint64_t region_bytes = 16 * block;

  StagedStreamTest() {
    install_fault_handler();
    kind_.reset();
    EXPECT_TRUE(staging_->open());
    EXPECT_TRUE(region_.open(device_, region_bytes, false, false));
  }
  ~StagedStreamTest() override {
    kind_.end_all();
    staging_.reset();
    region_.close();
    kind_.free(device_);
  }
  void on_staged(StagedStream& stream) noexcept override { called_.push_back(&stream); }

  StagedStream& begin(Direction direction, uint64_t length, uint64_t offset = 0) {
    StagedStream* const stream =
        staging_->begin({direction, &region_, offset, 0, length, this, &owner_});
    EXPECT_NE(stream, nullptr);
    return *stream;
  }
  // Asks about all copies until they have ended, or have had the time to.
  void settle() {
    for (unsigned i = 0; i < 100 && staging_->is_busy(); ++i)
      static_cast<void>(staging_->advance());
  }
  [[nodiscard]] std::span<std::byte> inside(uint64_t length, uint64_t offset = 0) {
    return {kind_.inside(device_) + offset, length};
  }

  TestMemoryKind& kind_ = TestMemoryKind::in_use();
  std::byte* device_ = kind_.allocate(region_bytes);
  MemoryRegion region_;
  PollFlag work_due_;
  std::unique_ptr<Staging> staging_ = std::make_unique<Staging>(work_due_);
  QueuedSend owner_{QueuedSend::Kind::transfer_data};
  std::vector<StagedStream*> called_;
};

TEST_F(StagedStreamTest, DataReachTheDeviceThroughAFewBuffers) {
  constexpr uint64_t length = 9 * block + 77;
  std::vector<std::byte> data(length);
  fill(data, 1);
  StagedStream& stream = begin(Direction::to_device, length, 5);
  uint64_t sent = 0;
  while (!stream.is_complete()) {
    const uint64_t end = stream.open_blocks();
    staging_->watch(stream);
    EXPECT_LE(end - sent, StagedStream::most_blocks * block);
    constexpr uint64_t part = 10000;
    for (; sent < end; sent += std::min(part, end - sent)) {
      ASSERT_TRUE(stream.put(sent, &data[sent], std::min(part, end - sent)));
      staging_->watch(stream);
    }
    ASSERT_LE(staging_->buffers_in_use(), StagedStream::most_blocks);
    ASSERT_TRUE(stream.is_copying());
    static_cast<void>(staging_->advance());
  }
  expect_pattern(inside(length, 5), 1);
  EXPECT_EQ(kind_.synchronous, 0u);
  staging_->end(stream);
  EXPECT_EQ(staging_->buffers_in_use(), 0u);
  EXPECT_EQ(staging_->streams(), 0u);
}

TEST_F(StagedStreamTest, PartsMayArriveInAnyOrder) {
  constexpr uint64_t length = 2 * block + 100;
  std::vector<std::byte> data(length);
  fill(data, 2);
  StagedStream& stream = begin(Direction::to_device, length);
  ASSERT_EQ(stream.open_blocks(), length);
  constexpr uint64_t part = 1000;
  for (uint64_t end = length; end != 0;) {
    const uint64_t start = end > part ? end - part : 0;
    ASSERT_TRUE(stream.put(start, &data[start], end - start));
    end = start;
  }
  staging_->watch(stream);
  settle();
  EXPECT_TRUE(stream.is_complete());
  expect_pattern(inside(length), 2);
  staging_->end(stream);
}

TEST_F(StagedStreamTest, WhatIsNotExpectedIsRefused) {
  const std::vector<std::byte> data(2 * block);
  StagedStream& stream = begin(Direction::to_device, 2 * block);
  EXPECT_FALSE(stream.put(0, data.data(), 8));  // no block is open
  ASSERT_EQ(stream.open_blocks(), 2 * block);
  EXPECT_FALSE(stream.put(2 * block, data.data(), 1));
  EXPECT_FALSE(stream.put(UINT64_MAX, data.data(), 8));
  ASSERT_TRUE(stream.put(0, data.data(), block));
  EXPECT_FALSE(stream.put(0, data.data(), 8));  // complete already
  ASSERT_TRUE(stream.put(block, data.data(), block - 8));
  EXPECT_FALSE(stream.put(block, data.data(), 9));  // more than is missing
  kind_.end_all();
  stream.cancel();
  static_cast<void>(stream.advance());
  staging_->end(stream);
}

TEST_F(StagedStreamTest, CopiesToTheDeviceMayEndInAnyOrder) {
  constexpr uint64_t length = StagedStream::most_blocks * block;
  std::vector<std::byte> data(length);
  fill(data, 3);
  kind_.holds = true;
  StagedStream& stream = begin(Direction::to_device, length);
  ASSERT_EQ(stream.open_blocks(), length);
  ASSERT_TRUE(stream.put(0, data.data(), length));
  staging_->watch(stream);
  ASSERT_EQ(kind_.under_way(), StagedStream::most_blocks);
  for (unsigned left = StagedStream::most_blocks; left != 0; --left) {
    EXPECT_FALSE(stream.is_complete());
    kind_.end_copy(left - 1);
    EXPECT_EQ(staging_->advance(), 1u);
  }
  EXPECT_TRUE(stream.is_complete());
  expect_pattern(inside(length), 3);
  EXPECT_FALSE(staging_->is_busy());
  staging_->end(stream);
}

TEST_F(StagedStreamTest, DataComeFromTheDeviceInOrder) {
  constexpr uint64_t length = 7 * block + 3;
  fill(inside(length), 4);
  kind_.holds = true;
  StagedStream& stream = begin(Direction::from_device, length);
  std::vector<std::byte> data;
  while (!stream.is_complete()) {
    stream.load(length);
    staging_->watch(stream);
    ASSERT_NE(kind_.under_way(), 0u);
    kind_.end_copy(kind_.under_way() - 1);  // the last one first
    static_cast<void>(staging_->advance());
    for (Piece piece = stream.ready(); piece.length != 0; piece = stream.ready()) {
      const uint64_t bytes = std::min<uint64_t>(piece.length, 12345);
      data.insert(data.end(), piece.base, piece.base + bytes);
      stream.taken(bytes);
    }
  }
  ASSERT_EQ(data.size(), length);
  expect_pattern(data, 4);
  staging_->end(stream);
}

TEST_F(StagedStreamTest, NothingIsCopiedBeyondTheLimit) {
  StagedStream& stream = begin(Direction::from_device, 3 * block);
  stream.load(100);
  settle();
  staging_->watch(stream);
  settle();
  EXPECT_EQ(stream.ready().length, 100u);
  stream.load(block);
  staging_->watch(stream);
  settle();
  stream.taken(100);
  EXPECT_EQ(stream.ready().length, block - 100);
  stream.taken(block - 100);
  EXPECT_EQ(stream.ready().length, 0u);
  EXPECT_FALSE(stream.is_complete());
  staging_->end(stream);
}

TEST_F(StagedStreamTest, AFailedCopyIsToldAndStopsTheOthers) {
  for (const Direction direction : {Direction::to_device, Direction::from_device}) {
    const std::vector<std::byte> data(2 * block);
    StagedStream& stream = begin(direction, 4 * block);
    kind_.holds = kind_.fails = true;
    if (direction == Direction::to_device) {
      ASSERT_EQ(stream.open_blocks(), 4 * block);
      ASSERT_TRUE(stream.put(0, data.data(), 2 * block));
    } else {
      stream.load(2 * block);
    }
    staging_->watch(stream);
    called_.clear();
    kind_.end_copy(1);
    EXPECT_EQ(staging_->advance(), 1u);
    EXPECT_EQ(stream.fail(), PTL_NI_SEGV);
    EXPECT_TRUE(stream.is_copying());
    EXPECT_EQ(stream.ready().length, 0u);
    const unsigned started = kind_.started;
    if (direction == Direction::to_device)
      EXPECT_TRUE(stream.put(2 * block, data.data(), block)) << "it was asked for";
    else
      stream.load(4 * block);
    EXPECT_EQ(kind_.started, started);
    kind_.end_all();
    settle();
    EXPECT_EQ(called_.size(), 2u);
    EXPECT_FALSE(stream.is_copying());
    EXPECT_FALSE(stream.is_complete());
    staging_->end(stream);
    EXPECT_EQ(staging_->buffers_in_use(), 0u);
    kind_.reset();
  }
}

TEST_F(StagedStreamTest, ACopyThatCannotBeStartedFails) {
  kind_.refuses = true;
  StagedStream& stream = begin(Direction::from_device, 4 * block);
  stream.load(4 * block);
  EXPECT_EQ(stream.fail(), PTL_NI_SEGV);
  EXPECT_FALSE(stream.is_copying());
  staging_->end(stream);
  EXPECT_EQ(staging_->streams(), 0u);
}

TEST_F(StagedStreamTest, WithTooManyCopiesUnderWayOthersAreStartedLater) {
  kind_.most_copies = 1;
  fill(inside(4 * block), 5);
  StagedStream& stream = begin(Direction::from_device, 4 * block);
  stream.load(4 * block);
  staging_->watch(stream);
  EXPECT_EQ(kind_.under_way(), 1u);
  for (unsigned i = 0; i < 100 && staging_->is_busy(); ++i) static_cast<void>(staging_->advance());
  EXPECT_EQ(kind_.started, 4u);
  for (uint64_t taken = 0; taken != 4 * block; taken += block) {
    const Piece piece = stream.ready();
    ASSERT_EQ(piece.length, block);
    expect_pattern({piece.base, block}, 5, taken);
    stream.taken(block);
  }
  EXPECT_TRUE(stream.is_complete());
  staging_->end(stream);
}

TEST_F(StagedStreamTest, MemoryThatWasFreedIsAFault) {
  std::byte* const freed = kind_.allocate(block);
  MemoryRegion region;
  ASSERT_TRUE(region.open(freed, block, false, false));
  kind_.free(freed);
  StagedStream& stream =
      *staging_->begin({Direction::from_device, &region, 0, 0, block, this, &owner_});
  stream.load(block);
  staging_->watch(stream);
  while (staging_->is_busy()) static_cast<void>(staging_->advance());
  EXPECT_EQ(stream.fail(), PTL_NI_SEGV);
  staging_->end(stream);
}

TEST_F(StagedStreamTest, AnEndedStreamKeepsItsBuffersUntilTheDeviceHasWrittenThem) {
  kind_.holds = true;
  StagedStream& stream = begin(Direction::from_device, 2 * block);
  stream.load(2 * block);
  staging_->watch(stream);
  staging_->end(stream);
  EXPECT_EQ(staging_->buffers_in_use(), 2u);
  EXPECT_TRUE(staging_->is_busy());
  kind_.end_copy(1);
  static_cast<void>(staging_->advance());
  EXPECT_EQ(staging_->streams(), 1u);
  kind_.end_all();
  static_cast<void>(staging_->advance());
  EXPECT_EQ(staging_->buffers_in_use(), 0u);
  EXPECT_EQ(staging_->streams(), 0u);
  EXPECT_FALSE(staging_->is_busy());
  EXPECT_TRUE(called_.empty());
}

// The elements of an iovec may be memory of the host or of devices.
TEST_F(StagedStreamTest, BlocksOverElementsOfSeveralKinds) {
  constexpr uint64_t element = block / 2 + 11;
  std::vector<std::byte> host(2 * element);
  const ptl_iovec_t elements[] = {{device_, element},
                                  {host.data(), element},
                                  {device_ + 4 * block, element},
                                  {nullptr, 0},
                                  {host.data() + element, element}};
  MemoryRegion region;
  ASSERT_TRUE(region.open(elements, std::size(elements), true, false));
  EXPECT_FALSE(region.is_host(0, 4 * element));
  EXPECT_TRUE(region.is_host(element, element));
  std::vector<std::byte> data(4 * element);
  fill(data, 6);
  StagedStream& to =
      *staging_->begin({Direction::to_device, &region, 0, 0, 4 * element, this, &owner_});
  ASSERT_EQ(to.open_blocks(), 4 * element);
  ASSERT_TRUE(to.put(0, data.data(), data.size()));
  staging_->watch(to);
  while (staging_->is_busy()) static_cast<void>(staging_->advance());
  EXPECT_TRUE(to.is_complete());
  staging_->end(to);
  expect_pattern(inside(element), 6);
  expect_pattern({host.data(), element}, 6, element);
  expect_pattern(inside(element, 4 * block), 6, 2 * element);
  expect_pattern({host.data() + element, element}, 6, 3 * element);

  StagedStream& from =
      *staging_->begin({Direction::from_device, &region, 0, 0, 4 * element, this, &owner_});
  from.load(4 * element);
  staging_->watch(from);
  while (staging_->is_busy()) static_cast<void>(staging_->advance());
  for (uint64_t taken = 0; taken != 4 * element;) {
    const Piece piece = from.ready();
    ASSERT_NE(piece.length, 0u);
    expect_pattern({piece.base, piece.length}, 6, taken);
    from.taken(piece.length);
    taken += piece.length;
  }
  staging_->end(from);
}

TEST_F(StagedStreamTest, StreamsWaitForBuffersAndGetThemWhenOthersEnd) {
  constexpr unsigned many = StagingBuffers::capacity;
  std::vector<StagedStream*> holders;
  for (unsigned i = 0; i < many; ++i) {
    StagedStream& stream = begin(Direction::to_device, 4 * block);
    static_cast<void>(stream.open_blocks());
    staging_->watch(stream);
    EXPECT_FALSE(stream.lacks_buffer());
    holders.push_back(&stream);
    if (staging_->buffers_in_use() == StagingBuffers::capacity) break;
  }
  ASSERT_EQ(staging_->buffers_in_use(), StagingBuffers::capacity);
  EXPECT_GT(holders.size(), StagingBuffers::capacity / 2) << "each gets one of the second half";
  StagedStream& waiting = begin(Direction::to_device, block);
  EXPECT_EQ(waiting.open_blocks(), 0u);
  EXPECT_TRUE(waiting.lacks_buffer());
  staging_->watch(waiting);
  EXPECT_FALSE(staging_->is_busy());
  // The other direction has buffers of its own.
  StagedStream& other = begin(Direction::from_device, block);
  other.load(block);
  EXPECT_TRUE(other.is_copying());
  staging_->watch(other);
  settle();
  staging_->end(other);

  called_.clear();
  static_cast<void>(work_due_.take());
  staging_->end(*holders.back());
  holders.pop_back();
  EXPECT_TRUE(work_due_.is_set());
  EXPECT_TRUE(staging_->is_busy());
  static_cast<void>(staging_->advance());
  ASSERT_EQ(called_, std::vector<StagedStream*>{&waiting});
  EXPECT_EQ(waiting.open_blocks(), block);
  staging_->end(waiting);
  for (StagedStream* const holder : holders) staging_->end(*holder);
  EXPECT_EQ(staging_->buffers_in_use(), 0u);
}

// Nobody will give a buffer back.
TEST_F(StagedStreamTest, WithoutMemoryForBuffersAStreamFails) {
  for (const Direction direction : {Direction::to_device, Direction::from_device}) {
    StagedStream& stream = begin(direction, block);
    called_.clear();
    rlimit former{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &former), 0);
    const rlimit none{1 << 20, former.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    if (direction == Direction::to_device) {
      EXPECT_EQ(stream.open_blocks(), 0u);
    } else {
      stream.load(block);
    }
    ASSERT_EQ(setrlimit(RLIMIT_AS, &former), 0);
    staging_->watch(stream);
    EXPECT_EQ(stream.fail(), PTL_NI_UNDELIVERABLE);
    settle();
    EXPECT_EQ(called_, std::vector<StagedStream*>{&stream});
    EXPECT_FALSE(staging_->is_busy());
    staging_->end(stream);
  }
}

TEST_F(StagedStreamTest, AStreamThatWaitsForABufferMayEnd) {
  std::vector<StagedStream*> holders;
  while (staging_->buffers_in_use() != StagingBuffers::capacity) {
    holders.push_back(&begin(Direction::to_device, 4 * block));
    static_cast<void>(holders.back()->open_blocks());
  }
  StagedStream& waiting = begin(Direction::to_device, block);
  EXPECT_EQ(waiting.open_blocks(), 0u);
  staging_->watch(waiting);
  staging_->end(waiting);
  static_cast<void>(staging_->advance());
  EXPECT_EQ(staging_->streams(), holders.size());
  for (StagedStream* const holder : holders) staging_->end(*holder);
}

}  // namespace
}  // namespace lintel::test
