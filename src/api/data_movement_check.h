// The checks of data movement calls (spec 3.15, 3.16). Inline: each call knows its kind, so the
// compiler removes most of them. Message path.
#pragma once

#include <cstring>

#include "api/data_movement.h"
#include "core/operations/atomics.h"

namespace lintel::api {

namespace movement_detail {
// Whether [offset, offset + length) lies inside the descriptor (spec 3.15.2).
[[nodiscard]] inline bool lies_inside(const MemoryDescriptor& descriptor, ptl_size_t offset,
                                      ptl_size_t length) noexcept {
  return descriptor.region.contains(offset, length);
}

[[nodiscard]] inline bool target_is_valid(const NetworkInterface& interface,
                                          ptl_process_t target) noexcept {
  if (interface.logical()) return target.rank < interface.map.size();
  return target.phys.nid != PTL_NID_ANY && target.phys.pid != PTL_PID_ANY;
}

[[nodiscard]] inline bool atomic_is_valid(const NetworkInterface& interface,
                                          const MovementArguments& a) noexcept {
  const ptl_ni_limits_t& limits = interface.limits();
  const AtomicFunction function = a.kind == MessageKind::atomic ? AtomicFunction::atomic
                                  : a.kind == MessageKind::swap ? AtomicFunction::swap
                                                                : AtomicFunction::fetch_atomic;
  if (!atomic_allowed(a.operation, a.datatype, function)) return false;
  const size_t item = datatype_size(a.datatype);
  const ptl_size_t most =
      a.kind == MessageKind::atomic ? limits.max_atomic_size : limits.max_fetch_atomic_size;
  if (a.length > most || a.length % item != 0) return false;
  if (is_single_item(a.operation)) return a.length <= item && a.operand != nullptr;
  return true;
}

}  // namespace movement_detail

// PTL_OK: `request` and `interface` are filled in. PTL_NO_INIT, PTL_ARG_INVALID.
[[nodiscard, gnu::always_inline]] inline int check_movement(const MovementArguments& a,
                                                            NetworkInterface** interface,
                                                            Request* request) noexcept {
  using namespace movement_detail;
  const bool sends = a.kind != MessageKind::get;
  const bool receives = a.kind == MessageKind::get || a.kind == MessageKind::fetch_atomic ||
                        a.kind == MessageKind::swap;
  DescriptorOfInterface put;
  DescriptorOfInterface get;
  unsigned options = 0;
  if (sends) {
    put = resolve_descriptor(a.put.handle);
    if (put.descriptor == nullptr) [[unlikely]]
      return code_of_bad_handle();
    if (!lies_inside(*put.descriptor, a.put.offset, a.length)) [[unlikely]]
      return PTL_ARG_INVALID;
    options = put.descriptor->options;
    *interface = put.interface;
  }
  if (receives) {
    get = resolve_descriptor(a.get.handle);
    if (get.descriptor == nullptr) [[unlikely]]
      return code_of_bad_handle();
    if (!lies_inside(*get.descriptor, a.get.offset, a.length)) [[unlikely]]
      return PTL_ARG_INVALID;
    if (sends && get.interface != put.interface) return PTL_ARG_INVALID;
    options |= get.descriptor->options;
    *interface = get.interface;
  }
  const NetworkInterface& ni = **interface;
  if (a.target.pt_index > static_cast<ptl_pt_index_t>(largest_pt_index) ||
      a.length > ni.limits().max_msg_size || a.ack_req > PTL_OC_ACK_REQ ||
      !target_is_valid(ni, a.target.id)) [[unlikely]]
    return PTL_ARG_INVALID;
  // Only puts without acknowledgement may be unreliable (spec 2.2, 3.10.1).
  if ((options & PTL_MD_UNRELIABLE) != 0 &&
      (a.kind != MessageKind::put || a.ack_req != PTL_NO_ACK_REQ))
    return PTL_ARG_INVALID;
  if (a.kind != MessageKind::put && a.kind != MessageKind::get && !atomic_is_valid(ni, a))
    return PTL_ARG_INVALID;

  MessageHeader& header = request->header;
  header.set(a.kind, ni.slot(), a.operation, MessageHeader::modes_of(a.datatype, a.ack_req),
             ni.logical() ? ni.map.own_rank() : 0, a.target.pt_index, a.length);
  header.match_bits = a.target.match_bits;
  header.remote_offset = a.target.remote_offset;
  header.hdr_data = a.hdr_data;
  request->put = reference_to(put.descriptor);
  request->get = reference_to(get.descriptor);
  request->put_offset = a.put.offset;
  request->get_offset = a.get.offset;
  request->user_ptr = a.user_ptr;
  request->target = a.target.id;
  request->operand_bytes = 0;
  if (a.kind == MessageKind::swap && is_single_item(a.operation)) {
    request->operand_bytes = static_cast<uint32_t>(datatype_size(a.datatype));
    std::memcpy(request->operand, a.operand, request->operand_bytes);
  }
  return PTL_OK;
}

}  // namespace lintel::api
