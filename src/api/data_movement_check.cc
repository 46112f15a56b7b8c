// Refusals of data movement calls. Fault path.
#include "api/data_movement_check.h"

namespace lintel::api::movement_detail {

int refuse_message(const Call& call, const NetworkInterface& interface, ptl_size_t length,
                   ptl_ack_req_t ack_req, ptl_process_t target, ptl_pt_index_t pt_index) noexcept {
  if (pt_index > static_cast<ptl_pt_index_t>(largest_pt_index))
    return refuse(PTL_ARG_INVALID, call, "pt_index", pt_index,
                  "must be at most 4095, the largest max_pt_index of an interface, see 3.6.1");
  if (length > interface.limits().max_msg_size)
    return refuse(PTL_ARG_INVALID, call, "length", length,
                  "must be at most max_msg_size, see 3.6.1");
  if (ack_req > PTL_OC_ACK_REQ)
    return refuse(PTL_ARG_INVALID, call, "ack_req", ack_req,
                  "must be an acknowledgment request, see 3.15.1");
  if (interface.logical())
    return refuse(PTL_ARG_INVALID, call, "target_id.rank", target.rank,
                  "must be a rank of the map, see 3.6.6");
  if (target.phys.nid == PTL_NID_ANY)
    return refuse(PTL_ARG_INVALID, call, "target_id.phys.nid", target.phys.nid,
                  "must not be PTL_NID_ANY");
  return refuse(PTL_ARG_INVALID, call, "target_id.phys.pid", target.phys.pid,
                "must not be PTL_PID_ANY");
}

int refuse_atomic(const Call& call, MessageKind kind, ptl_size_t largest, ptl_size_t length,
                  ptl_op_t operation, ptl_datatype_t datatype) noexcept {
  constexpr const char* allowed = "must be allowed for the call and the datatype, see table 3-4";
  if (datatype_size(datatype) == 0)
    return refuse(PTL_ARG_INVALID, call, "datatype", datatype, allowed);
  if (!atomic_allowed(operation, datatype, function_of(kind)))
    return refuse(PTL_ARG_INVALID, call, "operation", operation, allowed);
  if (length > largest)
    return refuse(PTL_ARG_INVALID, call, "length", length,
                  kind == MessageKind::atomic ? "must be at most max_atomic_size, see 3.6.1"
                                              : "must be at most max_fetch_atomic_size, see 3.6.1");
  if (length % datatype_size(datatype) != 0)
    return refuse(PTL_ARG_INVALID, call, "length", length,
                  "must be a multiple of the size of the datatype");
  if (length > datatype_size(datatype))
    return refuse(PTL_ARG_INVALID, call, "length", length,
                  "must be one item of the datatype for this operation");
  return refuse_null(call, "operand");
}

bool copy_operand(const void* operand, Request& request) noexcept {
  DeviceAllocation allocation;
  MemoryKind* const kind = kind_of(operand, &allocation);
  if (kind != nullptr)
    return kind->copy(request.operand, operand, request.operand_bytes, &allocation) ==
           CopyStatus::done;
  std::memcpy(request.operand, operand, request.operand_bytes);
  return true;
}

}  // namespace lintel::api::movement_detail
