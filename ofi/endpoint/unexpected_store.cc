#include "endpoint/unexpected_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>

#include "base/assert.h"
#include "base/provider.h"
#include "base/settings.h"
#include "domain/domain.h"
#include "wire/message_header.h"

namespace lintel::ofi {
namespace {

constexpr size_t least_block_bytes = 1 << 20;
constexpr size_t linked_blocks = 4;
constexpr size_t most_free_blocks = 8;

// Bytes of a block of the reserve. Each is as long as those before it, or twice as long: what is in
// use beyond the messages is at most half of the memory.
size_t bytes_of_reserve(size_t place) noexcept {
  constexpr size_t units = 510;  // of 16 blocks: 1, 1, 2, 2, 4, 4, ...
  return std::max((settings().reserve_bytes / units) << (place / 2), 8 * settings().eager_bytes);
}

// An entry of the overflow list without events of messages.
ptl_me_t overflow_entry(void* start, size_t bytes, unsigned options) noexcept {
  ptl_me_t entry{};
  entry.start = start;
  entry.length = bytes;
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE | options;
  entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  entry.ignore_bits = ~long_bit;
  return entry;
}

}  // namespace

UnexpectedStore::~UnexpectedStore() {
  while (!blocks_.empty()) destroy(blocks_.back());
}

int UnexpectedStore::open(ptl_pt_index_t portal) noexcept {
  portal_ = portal;
  if (const int code = refill(); code != 0) return code;
  ptl_me_t entry = overflow_entry(nullptr, 0, PTL_ME_EVENT_UNLINK_DISABLE);
  entry.match_bits = long_bit;
  const int code = PtlMEAppend(domain_.network().interface(), portal_, &entry, PTL_OVERFLOW_LIST,
                               nullptr, &headers_);
  return code == PTL_OK ? 0 : failed(FI_LOG_EP_CTRL, "PtlMEAppend", code);
}

void UnexpectedStore::close() noexcept {
  if (portal_ == PTL_PT_ANY) return;
  ptl_me_t everything{};
  everything.ct_handle = PTL_CT_NONE;
  everything.uid = PTL_UID_ANY;
  everything.options = PTL_ME_OP_PUT | PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_COMM_DISABLE;
  everything.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  everything.ignore_bits = ~uint64_t{0};
  PtlMESearch(domain_.network().interface(), portal_, &everything, PTL_SEARCH_DELETE, nullptr);
  if (headers_ != PTL_INVALID_HANDLE) PtlMEUnlink(headers_);
  for (Block* const block : blocks_)
    if (block->is_linked) PtlMEUnlink(block->entry);
  domain_.pump().drain();  // of events that name blocks
  portal_ = PTL_PT_ANY;
}

Block* UnexpectedStore::make(size_t bytes, bool is_reserve) {
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    FI_WARN(provider(), FI_LOG_EP_DATA,
            "mmap of %zu bytes for unexpected messages failed: %s. Lower "
            "FI_LINTEL_UNEXPECTED_RESERVE, or raise ulimit -v.\n",
            bytes, strerror(errno));
    return nullptr;
  }
  auto* const block = new Block{{OwnerKind::block}, this,  static_cast<char*>(start), bytes,
                                is_reserve,         false, PTL_INVALID_HANDLE};
  blocks_.push_back(block);
  return block;
}

void UnexpectedStore::destroy(Block* block) noexcept {
  std::erase(blocks_, block);
  std::erase(free_, block);
  munmap(block->start, block->bytes);
  delete block;
}

int UnexpectedStore::link(Block& block) noexcept {
  ptl_me_t entry = overflow_entry(block.start, block.bytes, PTL_ME_MANAGE_LOCAL);
  entry.min_free = settings().eager_bytes;
  const int code = PtlMEAppend(domain_.network().interface(), portal_, &entry, PTL_OVERFLOW_LIST,
                               &block, &block.entry);
  if (code != PTL_OK) return failed(FI_LOG_EP_DATA, "PtlMEAppend of a block", code);
  OFI_ASSERT(!block.is_linked);
  block.is_linked = true;
  return 0;
}

// What waits for room at senders is taken as soon as a block is linked.
int UnexpectedStore::refill() {
  if (kept_bytes_ >= settings().reserve_bytes) return 0;
  while (linked_ < linked_blocks)
    if (const int code = link_another(); code != 0) return code;
  return renew_reserve();
}

int UnexpectedStore::link_another() {
  Block* block = nullptr;
  if (free_.empty()) {
    block = make(std::max(least_block_bytes, 8 * settings().eager_bytes), false);
    if (block == nullptr) return -FI_ENOMEM;
  } else {
    block = free_.back();
    free_.pop_back();
  }
  const int code = link(*block);
  if (code == 0) ++linked_;
  return code;
}

// The reserve stays behind the other blocks, so that these are used first. A block of it that has
// been used stays where it is until it is full.
int UnexpectedStore::renew_reserve() {
  size_t bytes = kept_bytes_;
  for (size_t i = 0; i < reserve_.size(); ++i) {
    Block*& block = reserve_[i];
    bytes += block == nullptr ? bytes_of_reserve(i) : block->bytes;
    if (block == nullptr && bytes <= settings().reserve_bytes)
      block = make(bytes_of_reserve(i), true);
    if (block == nullptr) continue;
    if (block->is_linked && PtlMEUnlink(block->entry) != PTL_OK) continue;
    block->is_linked = false;
    if (const int code = link(*block); code != 0) return code;
  }
  return 0;
}

void UnexpectedStore::replace(Block& block) {
  OFI_ASSERT(block.is_linked && block.store == this);
  block.is_linked = false;
  kept_bytes_ += block.bytes;
  if (portal_ == PTL_PT_ANY) return;
  if (block.is_reserve)
    std::replace(reserve_.begin(), reserve_.end(), &block, static_cast<Block*>(nullptr));
  else
    --linked_;
  (void)refill();
  domain_.report_drops();
}

void UnexpectedStore::reuse(Block& block) {
  OFI_ASSERT(std::find(reserve_.begin(), reserve_.end(), &block) == reserve_.end());
  OFI_ASSERT(kept_bytes_ >= block.bytes);
  kept_bytes_ -= block.bytes;
  if (block.is_reserve || free_.size() >= most_free_blocks) {
    destroy(&block);
  } else {
    free_.push_back(&block);
  }
  if (portal_ != PTL_PT_ANY) (void)refill();
}

}  // namespace lintel::ofi
