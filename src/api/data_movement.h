// The arguments of data movement calls, plain and triggered (spec 3.15, 3.16). Message path.
#pragma once

#include "api/refusal.h"
#include "api/resolve.h"
#include "core/operations/initiator.h"
#include "portals4.h"

namespace lintel::api {

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

// The arguments of the widest call; narrower ones leave the rest as it is.
struct MovementArguments {
  const Call& call;
  MessageKind kind = MessageKind::put;
  LocalMemory put{};
  LocalMemory get{};
  ptl_size_t length = 0;
  ptl_ack_req_t ack_req = PTL_NO_ACK_REQ;
  Target target{};
  void* user_ptr = nullptr;
  ptl_hdr_data_t hdr_data = 0;
  const void* operand = nullptr;
  ptl_op_t operation = PTL_MIN;
  ptl_datatype_t datatype = PTL_INT8_T;
};

}  // namespace lintel::api
