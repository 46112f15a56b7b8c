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

struct UnexpectedHeader : UnexpectedNode {
  std::atomic<uint32_t> next_free{0};
  // Its data are still on the way. An overflow event must not be seen before they have arrived
  // (spec 2.5), so whoever claims the header meanwhile leaves the claim here.
  bool arriving = false;
  bool claimed = false;
  ListEntry* entry = nullptr;  // the overflow entry that holds the data
  std::byte* start = nullptr;
  uint64_t mlength = 0;
  ptl_ni_fail_t fail = PTL_NI_OK;
  ptl_process_t initiator{};
  ptl_uid_t uid = 0;
  MessageHeader header{};
  struct Claim {
    unsigned options = 0;
    void* user_ptr = nullptr;
    CountingEvent* counter = nullptr;
    bool from_search = false;
  } claim;
};

}  // namespace lintel
