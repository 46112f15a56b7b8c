#include "transfer/dispatch.h"

#include <portals4_lintel.h>

#include "base/provider.h"
#include "endpoint/endpoint.h"
#include "endpoint/unexpected_store.h"
#include "transfer/memory.h"
#include "transfer/multi_receive.h"
#include "transfer/peek.h"
#include "transfer/peer_check.h"
#include "transfer/receive.h"
#include "transfer/send.h"

namespace lintel::ofi {
namespace {

void dispatch_part(Operation& operation, const ptl_event_t& event) {
  switch (event.type) {
    case PTL_EVENT_PUT:
      return part_arrived(operation, event);
    case PTL_EVENT_PUT_OVERFLOW:
      return part_found_header(operation, event);
    case PTL_EVENT_AUTO_UNLINK:
      return buffer_used_up(operation);
    default:
      return;
  }
}

void dispatch_block(Block& block, const ptl_event_t& event) {
  if (event.type == PTL_EVENT_AUTO_UNLINK) block.store->replace(block);
  if (event.type == PTL_EVENT_AUTO_FREE) block.store->reuse(block);
}

void warn_of(const ptl_event_t& event) {
  char text[PTL_EV_STR_SIZE];
  PtlEvToStr(1, &event, text);
  FI_WARN(provider(), FI_LOG_EP_DATA, "An event of no operation is ignored: %s\n", text);
}

}  // namespace

void dispatch(Domain& domain, const ptl_event_t& event) {
  if (event.user_ptr == nullptr) {
    if (event.type != PTL_EVENT_SEARCH) warn_of(event);  // the end of a search for everything
    return;
  }
  auto* const owner = static_cast<EventOwner*>(event.user_ptr);
  auto* const operation = static_cast<Operation*>(owner);
  if (owner->kind == OwnerKind::receive && event.type == PTL_EVENT_PUT) [[likely]]
    return receive_arrived(*operation, event);
  switch (owner->kind) {
    case OwnerKind::receive:
      if (event.type == PTL_EVENT_PUT_OVERFLOW) return receive_found_header(*operation, event);
      if (event.type == PTL_EVENT_ERROR) return receive_arrived(*operation, event);
      return warn_of(event);
    case OwnerKind::send:
      return send_ended(*operation, event);
    case OwnerKind::long_send:
      return long_send_advanced(*operation, event);
    case OwnerKind::fetch:
      return fetch_ended(*operation, event);
    case OwnerKind::multi_receive:
      return dispatch_part(*operation, event);
    case OwnerKind::multi_fetch:
      return part_fetched(*operation, event);
    case OwnerKind::peek:
      return search_ended(*operation, event);
    case OwnerKind::memory:
      return memory_advanced(*operation, event);
    case OwnerKind::probe:
      return probe_ended(*operation, event);
    case OwnerKind::block:
      return dispatch_block(*static_cast<Block*>(owner), event);
    case OwnerKind::counter:
      return static_cast<CounterAlarm*>(owner)->event_counted();
    case OwnerKind::region:
      return region_written(domain, event);
  }
}

}  // namespace lintel::ofi
