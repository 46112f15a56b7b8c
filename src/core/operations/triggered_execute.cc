// Running triggered operations when their counter has reached the threshold (spec 3.16). Message path.
#include "core/objects/library.h"
#include "core/objects/list_operations.h"
#include "core/objects/network_interface.h"
#include "core/operations/atomics.h"
#include "core/operations/initiator.h"
#include "util/log.h"

namespace lintel {

namespace {

MessageKind message_kind(TriggeredKind kind) noexcept {
  switch (kind) {
    case TriggeredKind::get:
      return MessageKind::get;
    case TriggeredKind::atomic:
      return MessageKind::atomic;
    case TriggeredKind::fetch_atomic:
      return MessageKind::fetch_atomic;
    case TriggeredKind::swap:
      return MessageKind::swap;
    default:
      return MessageKind::put;
  }
}

MemoryDescriptor* find(NetworkInterface& interface, ptl_handle_md_t handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  return fields.type == HandleType::memory_descriptor && interface_of(fields) == &interface
             ? interface.find_descriptor(fields)
             : nullptr;
}

void start_transfer_of(NetworkInterface& interface, const TriggeredOperation& operation) noexcept {
  const TriggeredTransfer& arguments = operation.transfer;
  Request request;
  request.kind = message_kind(operation.kind);
  const bool sends = request.kind != MessageKind::get;
  const bool receives = request.kind == MessageKind::get ||
                        request.kind == MessageKind::fetch_atomic ||
                        request.kind == MessageKind::swap;
  if (sends) request.put = find(interface, arguments.put_md);
  if (receives) request.get = find(interface, arguments.get_md);
  if ((sends && request.put == nullptr) || (receives && request.get == nullptr)) {
    log_message(LogLevel::warn,
                "a triggered operation fired after its memory descriptor was released: dropped");
    return;
  }
  request.ack = arguments.ack_req;
  request.operation = arguments.operation;
  request.datatype = arguments.datatype;
  request.put_offset = arguments.local_put_offset;
  request.get_offset = arguments.local_get_offset;
  request.length = arguments.length;
  request.target = arguments.target_id;
  request.pt_index = arguments.pt_index;
  request.match_bits = arguments.match_bits;
  request.remote_offset = arguments.remote_offset;
  request.user_ptr = arguments.user_ptr;
  request.hdr_data = arguments.hdr_data;
  if (operation.kind == TriggeredKind::swap && is_single_item(arguments.operation))
    request.operand = arguments.operand;
  if (const int code = start_request(interface, request); code != PTL_OK)
    log_message(LogLevel::error, "a triggered operation could not be started: code %d", code);
}

void append_of(NetworkInterface& interface, const TriggeredEntry& arguments) noexcept {
  ListEntry* entry = interface.entry_slot(decode_handle(arguments.handle).index);
  const HandleFields counter = decode_handle(arguments.entry.ct_handle);
  CountingEvent* counted =
      counter.type == HandleType::counter ? interface.find_counter(counter) : nullptr;
  const int code = append_reserved(
      interface, *entry, {arguments.entry, counted, arguments.pt_index, arguments.user_ptr},
      arguments.list);
  if (code != PTL_OK)
    log_message(LogLevel::error, "a triggered append to portal table entry %u failed: code %d",
                arguments.pt_index, code);
}

}  // namespace

void NetworkInterface::execute(TriggeredOperation& operation) noexcept {
  switch (operation.kind) {
    case TriggeredKind::me_append:
      append_of(*this, operation.entry);
      break;
    case TriggeredKind::me_unlink: {
      const int code = unlink_by_handle(*this, decode_handle(operation.entry.handle));
      if (code != PTL_OK) log_message(LogLevel::debug, "a triggered unlink gave code %d", code);
      break;
    }
    default:
      start_transfer_of(*this, operation);
  }
  release(operation);
}

void NetworkInterface::release(TriggeredOperation& operation) noexcept {
  triggered_operations_.release(triggered_operations_.index_of(operation));
}

}  // namespace lintel
