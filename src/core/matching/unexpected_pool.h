// The unexpected headers of an interface, named by numbers from 1 to its capacity. One peer may
// have as many as max_unexpected_headers promises. The pool has 1/16 more, for other peers. Message
// path, except open(): allocate() and release() as those of Arena.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/matching/keyed_memory.h"
#include "portals4.h"
#include "transport/message.h"
#include "util/arena.h"
#include "util/assert.h"

namespace lintel {

struct ListEntry;

inline constexpr uint32_t no_unexpected_header = 0;
// An index has twice as many buckets.
inline constexpr uint32_t most_unexpected_headers = uint32_t{1} << 30;

// Links of a header in one index of its list (see keyed_header_index.h). Headers with the same key
// form a ring in arrival order. The first of them is the leader: only the leader is in a bucket.
struct KeyLinks {
  static constexpr uint32_t in_no_bucket = UINT32_MAX;

  uint32_t next_of_key = no_unexpected_header;  // no_unexpected_header: not in the index
  uint32_t previous_of_key = no_unexpected_header;
  uint32_t next_in_bucket = no_unexpected_header;  // in_no_bucket: not a leader
};
static_assert(sizeof(KeyLinks) == 12);

// Fields that few messages need.
struct UnexpectedDetails {
  uint64_t mlength = 0;        // bytes
  uint64_t rlength = 0;        // bytes
  uint64_t remote_offset = 0;  // bytes
  uint8_t fail = PTL_NI_OK;    // ptl_ni_fail_t
  uint8_t operation = 0;       // ptl_op_t, of atomics
  uint8_t datatype = 0;        // ptl_datatype_t, of atomics
};

// The header of a message that was delivered into the overflow list (spec 2.5, 3.12.2). An append
// that claims a common put reads one cache line of it, and those of 10,000 fit a second-level
// cache. Guarded by the lock of the portal table entry, except next_free.
struct alignas(64) UnexpectedHeader {
  struct Neighbours {
    uint32_t next;
    uint32_t previous;
  };

  // These two are set before a list gets the header and constant while it is there.
  uint64_t match_bits = 0;
  uint64_t source = 0;
  std::byte* start = nullptr;
  uint64_t hdr_data = 0;
  union {
    Neighbours in_list{};
    // Entry that matched the message while its data are arriving. The header is on no list then.
    // ListEntry::operations counts the message until it is reported.
    ListEntry* claimant;
  };
  KeyLinks key;  // links in index 0 of the list; other indexes contain their own
  // Belongs to the Arena while the header is free; otherwise see overflow_entry().
  std::atomic<uint32_t> next_free{0};
  ptl_uid_t uid = 0;
  // See UnexpectedPool::details_of().
  uint16_t length = 0;  // bytes
  MessageKind kind = MessageKind::none;
  uint8_t detailed : 1 = 0;
  // The data are still on the way. An overflow event must not be seen before they have arrived
  // (spec 2.5), so an entry that is appended and matches the header meanwhile claims it.
  uint8_t arriving : 1 = 0;
  uint8_t claimed : 1 = 0;

  // Index of the list entry that holds the data. The header is in use.
  [[nodiscard]] uint32_t overflow_entry() const noexcept {
    return next_free.load(std::memory_order_relaxed);
  }
  void set_overflow_entry(uint32_t index) noexcept {
    next_free.store(index, std::memory_order_relaxed);
  }
};
static_assert(sizeof(UnexpectedHeader) == 64);

class UnexpectedPool {
 public:
  UnexpectedPool() = default;
  UnexpectedPool(const UnexpectedPool&) = delete;
  UnexpectedPool& operator=(const UnexpectedPool&) = delete;
  // The peers, whose counts it has, must still be there.
  ~UnexpectedPool() {
    if (details_ != nullptr) keyed_memory.release(details_, details_bytes());
    if (counts_ == nullptr) return;
    for (uint32_t index = 0; headers_.contains(index); ++index)
      if (counts_[index] != nullptr) counts_[index]->fetch_sub(1, std::memory_order_relaxed);
    keyed_memory.release(counts_, counts_bytes());
  }

  // Reserves address space (set-up path, once). `most_of_peer`: headers that one peer may have.
  // False when the system refuses.
  [[nodiscard]] bool open(uint32_t most_of_peer) noexcept {
    most_of_peer_ = most_of_peer;
    if (!headers_.open(most_of_peer + (most_of_peer + 15) / 16)) return false;
    details_ = static_cast<UnexpectedDetails*>(keyed_memory.acquire(details_bytes()));
    counts_ = static_cast<std::atomic<uint32_t>**>(keyed_memory.acquire(counts_bytes()));
    return details_ != nullptr && counts_ != nullptr;
  }

  // `of_peer`: how many headers the sender has; it must not move. Null: the sender has as many as
  // it may, or none is free. The poller.
  [[nodiscard]] UnexpectedHeader* allocate(std::atomic<uint32_t>& of_peer) noexcept {
    if (of_peer.load(std::memory_order_relaxed) >= most_of_peer_) return nullptr;
    const uint32_t number = headers_.allocate();
    if (number == headers_.no_index) return nullptr;
    LINTEL_ASSERT(counts_[number] == nullptr);
    counts_[number] = &of_peer;
    of_peer.fetch_add(1, std::memory_order_relaxed);
    return &headers_.at(number);
  }
  void release(const UnexpectedHeader& header) noexcept {
    const uint32_t number = headers_.index_of(header);
    [[maybe_unused]] const uint32_t before =
        std::exchange(counts_[number], nullptr)->fetch_sub(1, std::memory_order_relaxed);
    LINTEL_ASSERT(before != 0);
    headers_.release(number);
  }

  [[nodiscard]] uint32_t number_of(const UnexpectedHeader& header) const noexcept {
    return headers_.index_of(header) + 1;
  }
  [[nodiscard]] UnexpectedHeader& header(uint32_t number) const noexcept {
    return headers_.at(number - 1);
  }
  [[nodiscard]] uint32_t capacity() const noexcept { return headers_.capacity(); }

  // Puts of less than 64 KiB to offset 0 that were kept whole need only UnexpectedHeader::length.
  [[nodiscard]] UnexpectedDetails details_of(const UnexpectedHeader& header) const noexcept {
    if (header.detailed) [[unlikely]]
      return details_[headers_.index_of(header)];
    return {.mlength = header.length, .rlength = header.length};
  }
  void set_details(UnexpectedHeader& header, const UnexpectedDetails& details) noexcept {
    header.length = static_cast<uint16_t>(details.rlength);
    header.detailed = header.kind != MessageKind::put || details.fail != PTL_NI_OK ||
                      details.mlength != details.rlength || details.rlength != header.length ||
                      details.remote_offset != 0;
    if (header.detailed) details_[headers_.index_of(header)] = details;
  }
  void set_outcome(UnexpectedHeader& header, ptl_ni_fail_t fail, uint64_t mlength) noexcept {
    UnexpectedDetails details = details_of(header);
    details.fail = static_cast<uint8_t>(fail);
    details.mlength = mlength;
    set_details(header, details);
  }

 private:
  [[nodiscard]] size_t details_bytes() const noexcept {
    return size_t{capacity()} * sizeof(UnexpectedDetails);
  }
  [[nodiscard]] size_t counts_bytes() const noexcept {
    return size_t{capacity()} * sizeof *counts_;
  }

  Arena<UnexpectedHeader> headers_;
  UnexpectedDetails* details_ = nullptr;
  // The `of_peer` of the sender of each header; null if the header is free.
  std::atomic<uint32_t>** counts_ = nullptr;
  uint32_t most_of_peer_ = 0;
};

}  // namespace lintel
