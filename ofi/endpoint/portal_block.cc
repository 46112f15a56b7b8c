#include "endpoint/portal_block.h"

#include <portals4_lintel.h>

#include <iterator>

#include "base/limits.h"
#include "base/provider.h"
#include "wire/message_header.h"

namespace lintel::ofi {
namespace {

// Messages for which there is no room stay at their sender.
constexpr unsigned options_of(Portal which) noexcept {
  switch (which) {
    case Portal::tagged:
      return PTL_LINTEL_PT_HOLD | PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE;
    case Portal::message:
      return PTL_LINTEL_PT_HOLD;
    default:
      return 0;
  }
}

// Returns a code of Portals. PTL_PT_IN_USE: an endpoint has the block.
int allocate_block(const Network& network, uint32_t index) {
  const ptl_handle_ni_t interface = network.interface();
  ptl_pt_index_t portal = 0;
  int code = PtlPTAlloc(interface, options_of(all_portals[0]), network.events(),
                        portal_of(index, all_portals[0]), &portal);
  if (code == PTL_PT_IN_USE) return code;
  for (size_t i = 1; i < std::size(all_portals) && code == PTL_OK; ++i)
    code = PtlPTAlloc(interface, options_of(all_portals[i]), network.events(),
                      portal_of(index, all_portals[i]), &portal);
  return code != PTL_OK ? failed(FI_LOG_EP_CTRL, "PtlPTAlloc", code) : PTL_OK;
}

}  // namespace

int allocate_blocks(const Network& network, uint32_t count, uint32_t& first) {
  uint32_t found = 0;
  for (uint32_t index = 0; index < most_endpoints && found < count; ++index) {
    const int code = allocate_block(network, index);
    if (code != PTL_OK && code != PTL_PT_IN_USE) return -FI_EOTHER;
    if (code == PTL_OK) {
      ++found;
      first = index + 1 - found;
    } else {
      for (; found != 0; --found) free_block(network.interface(), index - found);
    }
  }
  if (found == count) return 0;
  for (; found != 0; --found) free_block(network.interface(), first + found - 1);
  FI_WARN(provider(), FI_LOG_EP_CTRL, "%zu endpoints of the process are open; close some.\n",
          most_endpoints);
  return -FI_ENOSPC;
}

void free_block(ptl_handle_ni_t interface, uint32_t index) noexcept {
  for (const Portal which : all_portals) PtlPTFree(interface, portal_of(index, which));
}

int accept_probes(const Network& network, uint32_t index, ptl_handle_me_t& entry) {
  ptl_me_t description{};
  description.ct_handle = PTL_CT_NONE;
  description.uid = PTL_UID_ANY;
  description.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                        PTL_ME_EVENT_COMM_DISABLE;
  description.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  description.match_bits = probe_bits;
  const int code = PtlMEAppend(network.interface(), portal_of(index, Portal::rendezvous),
                               &description, PTL_PRIORITY_LIST, nullptr, &entry);
  return code == PTL_OK ? 0 : failed(FI_LOG_EP_CTRL, "PtlMEAppend", code);
}

}  // namespace lintel::ofi
