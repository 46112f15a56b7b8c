// Options that the description of an entry may contain (spec 3.11.1, 3.12.1). Message path.
#pragma once

#include "core/objects/network_interface.h"
#include "portals4.h"

namespace lintel {

[[nodiscard]] constexpr unsigned entry_options(bool matching) noexcept {
  constexpr unsigned common =
      PTL_IOVEC | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE |
      PTL_ME_IS_ACCESSIBLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
      PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_OVER_DISABLE |
      PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW |
      PTL_ME_EVENT_CT_BYTES;
  constexpr unsigned of_matching =
      PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE | PTL_ME_MAY_ALIGN | PTL_ME_LOCAL_INC_UH_RLENGTH;
  return common | (matching ? of_matching : 0);
}

// An entry with one of these counts messages.
inline constexpr unsigned counting_options = PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW;

// The options and the number of elements that PTL_IOVEC announces.
[[nodiscard, gnu::always_inline]] inline bool entry_options_are_valid(
    const NetworkInterface& interface, bool matching, const ptl_me_t& entry) noexcept {
  return (entry.options & ~entry_options(matching)) == 0 &&
         ((entry.options & PTL_IOVEC) == 0 ||
          entry.length <= static_cast<ptl_size_t>(interface.limits().max_iovecs));
}

}  // namespace lintel
