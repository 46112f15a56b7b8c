/* inbox.cc: receiving messages. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/inbox.h"

#include "network/poll.h"

namespace lintel::gasnet {
namespace {

constexpr unsigned int kMessagesAtOnce = 16;

}  // namespace

Inbox::Inbox(PortalIndex index, ptl_size_t events, unsigned int blocks, size_t block_bytes,
             Handle handle)
    : index_(index),
      handle_(handle),
      block_bytes_(aligned(block_bytes)),
      queue_(network().new_queue(events)),
      arrivals_(network().new_counter()),
      blocks_(new MessageBlock[blocks]),
      memory_(new char[blocks * block_bytes_ + kAlignment]) {
  network().allocate(index, PTL_PT_FLOWCTRL, queue_);
  add_arrival_counter(arrivals_);
  const auto address = reinterpret_cast<uintptr_t>(memory_.get());
  char* const first = memory_.get() + (aligned(address) - address);
  for (unsigned int i = 0; i < blocks; ++i) {
    blocks_[i].start = first + i * block_bytes_;
    append(blocks_[i]);
  }
}

void Inbox::append(MessageBlock& block) {
  ptl_me_t entry{};
  entry.start = block.start;
  entry.length = block_bytes_;
  entry.min_free = kSlotBytes;
  entry.ct_handle = arrivals_;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE |
                  PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_CT_COMM;
  entry.match_id.rank = PTL_RANK_ANY;
  entry.ignore_bits = ~ptl_match_bits_t{0};
  gasneti_assert(block.balance.load(std::memory_order_relaxed) == 0);
  // Counted before it is appended: a message may fill the block before this thread continues.
  appended_.fetch_add(1, std::memory_order_relaxed);
  network().append(index_, entry, &block);
}

unsigned int Inbox::poll() {
  ptl_event_t event;
  for (unsigned int done = 0; done < kMessagesAtOnce; ++done) {
    const int code = PtlEQGet(queue_, &event);
    if (code == PTL_EQ_EMPTY) {
      if (is_disabled_.load(std::memory_order_relaxed)) enable_again();
      return done;
    }
    check(code, "PtlEQGet");
    if (event.type == PTL_EVENT_PT_DISABLED) {
      is_disabled_.store(true, std::memory_order_relaxed);
      continue;
    }
    if (event.ni_fail_type != PTL_NI_OK)
      gasnett_fatalerror_nopos("a message of rank %u arrived damaged", event.initiator.rank);
    handle_(event);
    if (event.mlength != 0) release(*static_cast<MessageBlock*>(event.user_ptr), event);
  }
  return kMessagesAtOnce;
}

void Inbox::release(MessageBlock& block, const ptl_event_t& event) {
  const int64_t end =
      static_cast<char*>(event.start) - block.start + static_cast<int64_t>(event.mlength);
  auto change = static_cast<int64_t>(event.mlength);
  gasneti_assert(end <= static_cast<int64_t>(block_bytes_));
  // This message is the last one of the block: the block was unlinked after it (min_free).
  if (static_cast<int64_t>(block_bytes_) - end < static_cast<int64_t>(kSlotBytes)) {
    [[maybe_unused]] const int before = appended_.fetch_sub(1, std::memory_order_relaxed);
    gasneti_assert(before > 0);
    change -= end;
  }
  if (block.balance.fetch_add(change, std::memory_order_acq_rel) + change == 0) append(block);
}

void Inbox::enable_again() {
  // If there is no block, the next message would only disable the entry again.
  if (appended_.load(std::memory_order_relaxed) <= 0) return;
  if (!is_disabled_.exchange(false, std::memory_order_relaxed)) return;
  check(PtlPTEnable(network().interface(), number_of(index_)), "PtlPTEnable");
}

}  // namespace lintel::gasnet
