// Headers of messages that were delivered into the overflow list (spec 2.5, 3.12.2).
// Message path. Guarded by the lock of the portal table entry.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/list_entry.h"
#include "core/unexpected_list.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

// A claim touches the first line (the list's links) and the third; of the message only what an
// overflow event tells is kept. `source` of the node names the initiator, `owner_word` is hdr_data.
struct alignas(64) UnexpectedHeader : UnexpectedNode {
  // Its data are still on the way. An overflow event must not be seen before they have arrived
  // (spec 2.5), so whoever claims the header meanwhile leaves the claim here.
  bool arriving = false;
  bool claimed = false;
  std::atomic<uint32_t> next_free{0};
  MessageKind kind = MessageKind::none;
  uint8_t operation = 0;  // ptl_op_t
  uint8_t datatype = 0;   // ptl_datatype_t
  uint8_t fail = 0;       // ptl_ni_fail_t
  uint16_t pt_index = 0;
  ptl_uid_t uid = 0;
  ListEntry* entry = nullptr;  // the overflow entry that holds the data
  std::byte* start = nullptr;
  uint64_t mlength = 0;        // bytes
  uint64_t rlength = 0;        // bytes
  uint64_t remote_offset = 0;  // bytes
  struct Claim {
    unsigned options = 0;
    bool from_search = false;
    void* user_ptr = nullptr;
    CountingEvent* counter = nullptr;
  } claim;
};
static_assert(sizeof(UnexpectedHeader) == 256);

}  // namespace lintel
