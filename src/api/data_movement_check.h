// The checks of data movement calls (spec 3.15, 3.16). Inline: the kind of each call is constant,
// so the compiler removes most of them. Message path.
#pragma once

#include <cstring>

#include "api/refusal.h"
#include "api/resolve.h"
#include "core/operations/atomics.h"
#include "core/operations/initiator.h"
#include "memory_kind/memory_kind.h"
#include "portals4.h"

namespace lintel::api {

// The arguments of data movement calls, plain and triggered (spec 3.15, 3.16). Message path.
struct LocalMemory {
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  ptl_size_t offset = 0;
};

struct Target {
  ptl_process_t id{};
  ptl_pt_index_t pt_index = 0;
  ptl_match_bits_t match_bits = 0;
  ptl_size_t remote_offset = 0;
};

// The arguments of the widest call.
struct MovementArguments {
  const Call& call;
  MessageKind kind;
  LocalMemory put;
  LocalMemory get;
  ptl_size_t length;
  ptl_ack_req_t ack_req;
  Target target;
  void* user_ptr;
  ptl_hdr_data_t hdr_data;
  const void* operand;
  ptl_op_t operation;
  ptl_datatype_t datatype;
};

// Puts the arguments of a call together. Memory that it does not have is {}.
[[gnu::always_inline]] inline MovementArguments movement(
    const Call& call, MessageKind kind, LocalMemory put, LocalMemory get, ptl_size_t length,
    ptl_ack_req_t ack_req, const Target& target, void* user_ptr, ptl_hdr_data_t hdr_data = 0,
    const void* operand = nullptr, ptl_op_t operation = PTL_MIN,
    ptl_datatype_t datatype = PTL_INT8_T) noexcept {
  return {call,   kind,     put,      get,     length,    ack_req,
          target, user_ptr, hdr_data, operand, operation, datatype};
}

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
  if (!atomic_allowed(a.operation, a.datatype, function_of(a.kind))) return false;
  const size_t item = datatype_size(a.datatype);
  const ptl_size_t most =
      a.kind == MessageKind::atomic ? limits.max_atomic_size : limits.max_fetch_atomic_size;
  if (a.length > most || a.length % item != 0) return false;
  if (is_single_item(a.operation)) return a.length <= item && a.operand != nullptr;
  return true;
}

// Out of line. Arguments are passed one by one: the address of all would keep them in memory.
//
// For a message whose size, acknowledgment request or target is not allowed.
[[nodiscard, gnu::cold, gnu::noinline]] int refuse_message(const Call& call,
                                                           const NetworkInterface& interface,
                                                           ptl_size_t length, ptl_ack_req_t ack_req,
                                                           ptl_process_t target,
                                                           ptl_pt_index_t pt_index) noexcept;
// Refuses an atomic operation for which atomic_is_valid() is false.
[[nodiscard, gnu::cold, gnu::noinline]] int refuse_atomic(const Call& call, MessageKind kind,
                                                          ptl_size_t largest, ptl_size_t length,
                                                          ptl_op_t operation,
                                                          ptl_datatype_t datatype) noexcept;
// The operand of a swap may lie in memory of a device. False: it cannot be read there.
[[nodiscard, gnu::cold, gnu::noinline]] bool copy_operand(const void* operand,
                                                          Request& request) noexcept;
inline constexpr const char* inside_rule =
    "that offset and the length must lie within the memory descriptor";

}  // namespace movement_detail

// PTL_OK: `request` and `interface` are filled in. PTL_NO_INIT, PTL_ARG_INVALID.
[[nodiscard, gnu::always_inline]] inline int check_movement(const MovementArguments& a,
                                                            NetworkInterface** interface,
                                                            Request* request) noexcept {
  using namespace movement_detail;
  const bool sends = a.kind != MessageKind::get;
  const bool receives = a.kind == MessageKind::get || a.kind == MessageKind::fetch_atomic ||
                        a.kind == MessageKind::swap;
  const bool both = sends && receives;
  DescriptorOfInterface put;
  DescriptorOfInterface get;
  unsigned options = 0;
  if (sends) {
    put = resolve_descriptor(a.put.handle);
    if (put.descriptor == nullptr) [[unlikely]]
      return refuse_handle(a.call, both ? "put_md_handle" : "md_handle", a.put.handle,
                           HandleType::memory_descriptor);
    if (!lies_inside(*put.descriptor, a.put.offset, a.length)) [[unlikely]]
      return refuse(PTL_ARG_INVALID, a.call, both ? "local_put_offset" : "local_offset",
                    a.put.offset, inside_rule);
    options = put.descriptor->options;
    *interface = put.interface;
  }
  if (receives) {
    get = resolve_descriptor(a.get.handle);
    if (get.descriptor == nullptr) [[unlikely]]
      return refuse_handle(a.call, both ? "get_md_handle" : "md_handle", a.get.handle,
                           HandleType::memory_descriptor);
    if (!lies_inside(*get.descriptor, a.get.offset, a.length)) [[unlikely]]
      return refuse(PTL_ARG_INVALID, a.call, both ? "local_get_offset" : "local_offset",
                    a.get.offset, inside_rule);
    if (sends && get.interface != put.interface) [[unlikely]]
      return refuse_handle(a.call, "get_md_handle", a.get.handle, HandleType::memory_descriptor);
    options |= get.descriptor->options;
    *interface = get.interface;
  }
  const NetworkInterface& ni = **interface;
  if (a.target.pt_index > static_cast<ptl_pt_index_t>(largest_pt_index) ||
      a.length > ni.limits().max_msg_size || a.ack_req > PTL_OC_ACK_REQ ||
      !target_is_valid(ni, a.target.id)) [[unlikely]]
    return refuse_message(a.call, ni, a.length, a.ack_req, a.target.id, a.target.pt_index);
  // Only puts without acknowledgement may be unreliable (spec 2.2, 3.10.1).
  if ((options & PTL_MD_UNRELIABLE) != 0 &&
      (a.kind != MessageKind::put || a.ack_req != PTL_NO_ACK_REQ)) [[unlikely]]
    return refuse_bits(PTL_ARG_INVALID, a.call, "options of the memory descriptor", options,
                       "PTL_MD_UNRELIABLE is for puts with PTL_NO_ACK_REQ, see 3.10.1");
  if (a.kind != MessageKind::put && a.kind != MessageKind::get && !atomic_is_valid(ni, a))
      [[unlikely]]
    return refuse_atomic(a.call, a.kind,
                         a.kind == MessageKind::atomic ? ni.limits().max_atomic_size
                                                       : ni.limits().max_fetch_atomic_size,
                         a.length, a.operation, a.datatype);

  MessageHeader& header = request->header;
  header.set(a.kind, ni.request_flags(), a.operation,
             MessageHeader::modes_of(a.datatype, a.ack_req), ni.logical() ? ni.map.own_rank() : 0,
             a.target.pt_index, a.length);
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
    if (!device_memory_in_use()) [[likely]]
      std::memcpy(request->operand, a.operand, request->operand_bytes);
    else if (!copy_operand(a.operand, *request))
      return refuse_bits(PTL_ARG_INVALID, a.call, "operand", reinterpret_cast<uintptr_t>(a.operand),
                         "must be memory that the driver of its device can read");
  }
  return PTL_OK;
}

}  // namespace lintel::api
