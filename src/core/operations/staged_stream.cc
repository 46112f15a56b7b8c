#include "core/operations/staged_stream.h"

#include <algorithm>
#include <cstring>

#include "core/objects/limits.h"
#include "core/operations/operation.h"
#include "util/assert.h"
#include "util/guarded_memory.h"

namespace lintel {

namespace {
// Longest copy between devices: other messages use the same devices.
constexpr uint64_t direct_bytes = uint64_t{32} << 20;

// Messages up to this length are copied at once, as those are whose data come with the header: the
// buffer of the transport is given back when they are delivered. Their data must be there before
// those of the next message (spec 2.7.1). Half a round trip of one byte more takes 14.5 us instead
// of 5.7 us over UDP, and 1.4 us instead of 1.3 us within a node: FAKE_DEVICE_MIB_PER_S=25000
// ptl_perf put --metric latency --sizes 8192,8193 --memory cuda:0, with the stand-in for the driver
// (two processors). A device takes 0.3 us longer for 8 KiB than for 8 bytes at that rate.
constexpr uint64_t synchronous_bytes = largest_reply_bytes;
static_assert(synchronous_bytes >= largest_ordered_bytes);
}  // namespace

void StagedStream::open(const Settings& settings, StagingBuffers& buffers) noexcept {
  LINTEL_ASSERT(settings.begin < settings.end && count_ == 0 && copying_ == 0);
  settings_ = settings;
  buffers_ = &buffers;
  is_direct_ = has_import() && !settings.region->is_host(settings.region_offset + settings.begin,
                                                         settings.end - settings.begin);
  pinning_kind_ = device_piece(settings.begin, settings.end - settings.begin).kind;
  opened_ = passed_ = settings.begin;
  first_ = 0;
  fail_ = PTL_NI_OK;
  cancelled_ = false;
  lacks_buffer_ = false;
}

// The device's side of the next bytes.
KindPiece StagedStream::device_piece(uint64_t offset, uint64_t length) const noexcept {
  if (has_import() && !is_direct_)
    return {settings_.import.address(offset), length, settings_.import.kind()};
  return settings_.region->first_piece(settings_.region_offset + offset, length);
}

StagedStream::Block* StagedStream::block_at(uint64_t offset) noexcept {
  for (unsigned i = 0; i < count_; ++i)
    if (Block& found = block(i); offset >= found.begin && offset - found.begin < found.bytes)
      return &found;
  return nullptr;
}

// The next bytes, up to `limit`, get a block. False: there is none, or no buffer for it.
bool StagedStream::add_block(uint64_t limit, Stage stage) noexcept {
  lacks_buffer_ = false;
  if (cancelled_ || fail_ != PTL_NI_OK || opened_ >= limit || count_ == most_blocks) return false;
  std::byte* const buffer = is_direct_ ? nullptr : buffers_->take(count_, pinning_kind_);
  if (buffer == nullptr && !is_direct_) {
    lacks_buffer_ = count_ == 0;
    // There is no memory for any, so nobody gives one back.
    if (lacks_buffer_ && buffers_->in_use() == 0) fail_ = PTL_NI_UNDELIVERABLE;
    return false;
  }
  const uint64_t most = is_direct_ ? direct_bytes : StagingBuffers::buffer_bytes;
  Block& added = block(count_++);
  added = {};
  added.buffer = buffer;
  added.begin = opened_;
  added.bytes = static_cast<uint32_t>(std::min(limit - opened_, most));
  added.stage = stage;
  opened_ += added.bytes;
  return true;
}

// Copies end in any order, blocks in theirs.
void StagedStream::remove_done() noexcept {
  while (count_ != 0 && block(0).stage == Stage::done) {
    const Block& done = block(0);
    if (!is_direct_) buffers_->give_back(done.buffer);
    if (!cancelled_) {
      LINTEL_ASSERT(passed_ == done.begin && (fail_ != PTL_NI_OK || done.copied == done.bytes));
      passed_ += done.bytes;
    }
    first_ = (first_ + 1) % most_blocks;
    --count_;
  }
}

void StagedStream::begin_copy(Block& block) noexcept {
  LINTEL_ASSERT(block.stage != Stage::copying);
  block.stage = Stage::copying;
  ++copying_;
  copy_on(block);
}

void StagedStream::end_copy(Block& block, ptl_ni_fail_t fail) noexcept {
  LINTEL_ASSERT(block.stage == Stage::copying && copying_ != 0);
  --copying_;
  block.ticket = no_copy;
  if (fail_ == PTL_NI_OK) fail_ = fail;
  block.stage = is_to_device() || is_direct_ || cancelled_ ? Stage::done : Stage::loaded;
}

// Starts copies of the parts of a block, one after the other, until one is under way or all are
// done.
void StagedStream::copy_on(Block& block) noexcept {
  while (block.copied != block.bytes && !cancelled_ && fail_ == PTL_NI_OK)
    if (!start_piece(block)) return;
  end_copy(block, PTL_NI_OK);
}

// True: the part is copied, or has failed.
bool StagedStream::start_piece(Block& block) noexcept {
  const uint64_t offset = block.begin + block.copied;
  const KindPiece piece = device_piece(offset, block.bytes - block.copied);
  std::byte* const other =
      is_direct_ ? settings_.import.address(offset) : block.buffer + block.copied;
  std::byte* const to = is_to_device() ? piece.base : other;
  const std::byte* const from = is_to_device() ? other : piece.base;
  block.running = static_cast<uint32_t>(piece.length);
  CopyStatus status = CopyStatus::running;
  DeviceAllocation allocation;
  if (piece.kind == nullptr) {
    status = guarded_copy(to, from, piece.length) ? CopyStatus::done : CopyStatus::no_memory;
  } else if ((is_direct_ || !has_import()) && !piece.kind->describe(piece.base, &allocation)) {
    status = CopyStatus::no_memory;
  } else if (settings_.end - settings_.begin <= synchronous_bytes) {
    status = piece.kind->copy(to, from, piece.length, has_import() ? nullptr : &allocation);
  } else {
    block.kind = piece.kind;
    block.ticket = piece.kind->start_copy(to, from, piece.length, &status);
    if (block.ticket != no_copy || status == CopyStatus::running) return false;
  }
  if (status == CopyStatus::done)
    block.copied += block.running;
  else
    fail_ = PTL_NI_SEGV;
  return true;
}

bool StagedStream::advance() noexcept {
  if (fail_ != PTL_NI_OK) lacks_buffer_ = false;
  if (copying_ == 0) return false;
  const unsigned before = copying_;
  for (unsigned i = 0; i < count_; ++i) {
    Block& under_way = block(i);
    if (under_way.stage != Stage::copying) continue;
    if (under_way.ticket == no_copy) {
      copy_on(under_way);
      continue;
    }
    const CopyStatus status = under_way.kind->state_of(under_way.ticket);
    if (status == CopyStatus::running) continue;
    under_way.ticket = no_copy;
    under_way.copied += under_way.running;
    if (status == CopyStatus::done)
      copy_on(under_way);
    else
      end_copy(under_way, PTL_NI_SEGV);
  }
  if (copying_ == before) return false;
  remove_done();
  return true;
}

void StagedStream::cancel() noexcept {
  cancelled_ = true;
  lacks_buffer_ = false;
  for (unsigned i = 0; i < count_; ++i) {
    Block& ends = block(i);
    if (ends.stage == Stage::copying && ends.ticket == no_copy)
      end_copy(ends, PTL_NI_OK);
    else if (ends.stage != Stage::copying)
      ends.stage = Stage::done;
  }
  remove_done();
}

void StagedStream::copy_directly() noexcept {
  LINTEL_ASSERT(is_direct_);
  while (add_block(settings_.end, Stage::filling)) begin_copy(block(count_ - 1));
  remove_done();
}

uint64_t StagedStream::open_blocks() noexcept {
  LINTEL_ASSERT(is_to_device());
  while (add_block(settings_.end, Stage::filling)) {
  }
  return opened_;
}

bool StagedStream::put(uint64_t offset, const std::byte* data, uint64_t length) noexcept {
  LINTEL_ASSERT(is_to_device());
  if (offset > opened_ || length > opened_ - offset) return false;
  while (length != 0) {
    Block* const to = block_at(offset);
    if (to == nullptr || to->stage != Stage::filling) return false;
    const uint64_t within = offset - to->begin;
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(length, to->bytes - within));
    if (bytes > to->bytes - to->moved) return false;
    std::memcpy(to->buffer + within, data, bytes);
    to->moved += bytes;
    if (to->moved == to->bytes) begin_copy(*to);
    offset += bytes;
    data += bytes;
    length -= bytes;
  }
  remove_done();
  return true;
}

Piece StagedStream::room() noexcept {
  static_cast<void>(open_blocks());
  for (unsigned i = 0; i < count_; ++i)
    if (const Block& open = block(i); open.stage == Stage::filling)
      return {open.buffer + open.moved, open.bytes - open.moved};
  return {nullptr, 0};
}

void StagedStream::filled(uint64_t bytes) noexcept {
  for (unsigned i = 0; i < count_ && bytes != 0; ++i) {
    Block& open = block(i);
    if (open.stage != Stage::filling) continue;
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(bytes, open.bytes - open.moved));
    open.moved += part;
    bytes -= part;
    if (open.moved == open.bytes) begin_copy(open);
  }
  LINTEL_ASSERT(bytes == 0 || cancelled_);
  remove_done();
}

void StagedStream::load(uint64_t limit) noexcept {
  LINTEL_ASSERT(!is_to_device() && limit <= settings_.end);
  while (add_block(limit, Stage::loaded)) begin_copy(block(count_ - 1));
}

Piece StagedStream::ready() const noexcept {
  if (count_ == 0 || cancelled_ || fail_ != PTL_NI_OK) return {nullptr, 0};
  const Block& next = block(0);
  if (next.stage != Stage::loaded) return {nullptr, 0};
  return {next.buffer + next.moved, next.bytes - next.moved};
}

void StagedStream::taken(uint64_t bytes) noexcept {
  if (bytes == 0) return;
  Block& next = block(0);
  LINTEL_ASSERT(next.stage == Stage::loaded && bytes <= next.bytes - next.moved);
  next.moved += static_cast<uint32_t>(bytes);
  if (next.moved != next.bytes) return;
  next.stage = Stage::done;
  remove_done();
}

}  // namespace lintel
