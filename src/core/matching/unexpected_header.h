// Headers of messages that were delivered into the overflow list (spec 2.5, 3.12.2). The fields of
// the overflow event and the fields that a search reads lie apart: a search among thousands of
// headers then reads few cache lines, and those of all headers fit a second-level cache.
// Message path. Guarded by the lock of the portal table entry, except UnexpectedLinks::next_free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "portals4.h"
#include "transport/message.h"

namespace lintel {

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

}  // namespace lintel
