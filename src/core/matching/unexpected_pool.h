// The unexpected headers of an interface, named by numbers below its capacity.
// Message path, except open(): allocate() and release() as those of Arena.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/matching/keyed_memory.h"
#include "portals4.h"
#include "transport/message.h"
#include "util/arena.h"

namespace lintel {

// Headers of messages that were delivered into the overflow list (spec 2.5, 3.12.2). The fields of
// the overflow event and the fields that a search reads lie apart: a search among thousands of
// headers then reads few cache lines, and those of all headers fit a second-level cache.
// Message path. Guarded by the lock of the portal table entry, except UnexpectedLinks::next_free.
struct ListEntry;

inline constexpr uint32_t no_unexpected_header = UINT32_MAX;

// `match_bits` and `source` are set before a list gets the header and constant while it is there.
struct alignas(64) UnexpectedHeader {
  uint64_t match_bits = 0;
  uint64_t source = 0;
  std::byte* start = nullptr;
  uint64_t mlength = 0;        // bytes
  uint64_t rlength = 0;        // bytes
  uint64_t remote_offset = 0;  // bytes
  uint64_t hdr_data = 0;
  ptl_uid_t uid = 0;
  MessageKind kind = MessageKind::none;
  uint8_t operation = 0;  // ptl_op_t
  uint8_t datatype = 0;   // ptl_datatype_t
  uint8_t fail : 6 = 0;   // ptl_ni_fail_t
  // Its data are still on the way. An overflow event must not be seen before they have arrived
  // (spec 2.5), so an entry that is appended and matches the header meanwhile claims it.
  uint8_t arriving : 1 = 0;
  uint8_t claimed : 1 = 0;
};
static_assert(sizeof(UnexpectedHeader) == 64);

// Where a header is in one index of its list (see keyed_header_index.h). Headers are named by their
// numbers, see UnexpectedPool. Headers with the same key form a ring in arrival order; the first of
// them leads: it alone is in a bucket.
struct KeyLinks {
  static constexpr unsigned hash_bits = 30;

  uint32_t next_of_key;
  uint32_t previous_of_key;
  uint32_t next_in_bucket;
  uint32_t hash : hash_bits;
  uint32_t indexed : 1;  // the fields above and below are valid; 0 while on no list
  uint32_t leads : 1;
};

struct alignas(32) UnexpectedLinks {
  struct Neighbours {
    uint32_t next;
    uint32_t previous;
  };
  union {
    Neighbours in_list{};
    // Matched the message while its data are arriving; the header is on no list then.
    // ListEntry::operations counts the message until it is reported.
    ListEntry* claimant;
  };
  uint32_t entry = 0;                  // index of the overflow entry that holds the data
  std::atomic<uint32_t> next_free{0};  // belongs to the Arena
  KeyLinks key{};                      // in index 0 of the list; other indexes keep theirs
};
static_assert(sizeof(UnexpectedLinks) == 32);

class UnexpectedPool {
 public:
  UnexpectedPool() = default;
  UnexpectedPool(const UnexpectedPool&) = delete;
  UnexpectedPool& operator=(const UnexpectedPool&) = delete;
  ~UnexpectedPool() {
    if (headers_ != nullptr) keyed_memory.release(headers_, header_bytes());
  }

  // Reserves address space (set-up path, once). False when the system refuses.
  [[nodiscard]] bool open(uint32_t capacity) noexcept {
    if (!links_.open(capacity)) return false;
    headers_ = static_cast<UnexpectedHeader*>(keyed_memory.acquire(header_bytes()));
    return headers_ != nullptr;
  }

  // Null when all are in use.
  [[nodiscard]] UnexpectedHeader* allocate() noexcept {
    const uint32_t number = links_.allocate();
    return number == links_.no_index ? nullptr : &headers_[number];
  }
  void release(const UnexpectedHeader& header) noexcept { links_.release(number_of(header)); }

  [[nodiscard]] uint32_t number_of(const UnexpectedHeader& header) const noexcept {
    return static_cast<uint32_t>(&header - headers_);
  }
  [[nodiscard]] UnexpectedHeader& header(uint32_t number) const noexcept {
    return headers_[number];
  }
  [[nodiscard]] UnexpectedLinks& links(uint32_t number) const noexcept { return links_.at(number); }
  [[nodiscard]] UnexpectedLinks& links_of(const UnexpectedHeader& header) const noexcept {
    return links(number_of(header));
  }
  [[nodiscard]] uint32_t capacity() const noexcept { return links_.capacity(); }

 private:
  [[nodiscard]] size_t header_bytes() const noexcept {
    return size_t{capacity()} * sizeof(UnexpectedHeader);
  }

  Arena<UnexpectedLinks> links_;
  UnexpectedHeader* headers_ = nullptr;
};

}  // namespace lintel
