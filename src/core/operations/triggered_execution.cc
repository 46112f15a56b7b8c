#include "core/operations/triggered_execution.h"

#include "core/objects/list_operations.h"
#include "core/objects/network_interface.h"
#include "core/operations/initiator.h"
#include "util/log.h"

namespace lintel {

namespace {

void start_movement(NetworkInterface& interface, Request& request) noexcept {
  const bool released = (request.put.descriptor != nullptr && request.put.resolve() == nullptr) ||
                        (request.get.descriptor != nullptr && request.get.resolve() == nullptr);
  if (released) {
    log_message(LogLevel::warn,
                "a triggered operation fired after its memory descriptor was released: dropped");
    return;
  }
  // Refused if the rank has left the map since the call. That ends like other failures (spec
  // 3.13.3).
  if (start_request(interface, request) != PTL_OK)
    report_local_failure(request, PTL_NI_UNDELIVERABLE);
}

}  // namespace

void TriggeredExecution::execute(TriggeredOperation& operation) noexcept {
  switch (operation.kind) {
    case TriggeredKind::me_append:
      append_reserved(interface_, operation.entry);
      break;
    case TriggeredKind::me_unlink:
      if (unlink_by_handle(interface_, decode_handle(operation.entry.handle)) !=
          UnlinkResult::unlinked)
        log_message(LogLevel::debug, "PtlTriggeredMEUnlink: the entry was in use or had ended");
      break;
    default:
      start_movement(interface_, operation.request);
  }
  release(operation);
}

void TriggeredExecution::release(TriggeredOperation& operation) noexcept {
  Arena<TriggeredOperation>& pool = interface_.triggered_operations();
  pool.release(operation);
}

}  // namespace lintel
