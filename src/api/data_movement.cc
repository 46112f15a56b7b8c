// PtlPut, PtlGet and the atomics (spec 3.15). Message path.
#include <atomic>

#include "api/data_movement_check.h"

using namespace lintel;
using namespace lintel::api;

namespace {

constexpr Call ptl_put{"PtlPut", "spec 3.15.2"};
constexpr Call ptl_get{"PtlGet", "spec 3.15.3"};
constexpr Call ptl_atomic{"PtlAtomic", "spec 3.15.5"};
constexpr Call ptl_fetch_atomic{"PtlFetchAtomic", "spec 3.15.6"};
constexpr Call ptl_swap{"PtlSwap", "spec 3.15.7"};
constexpr Call ptl_atomic_sync{"PtlAtomicSync", "spec 3.15.8"};

[[gnu::always_inline]] inline int start(const MovementArguments& arguments) noexcept {
  NetworkInterface* interface = nullptr;
  Request request;
  if (const int code = check_movement(arguments, &interface, &request); code != PTL_OK) return code;
  return start_request(*interface, request);
}

// PtlPut() beside its common cases, and with bad arguments. In memory, so that the common cases
// read arguments where the caller has left them.
struct PutArguments {
  LocalMemory local;
  ptl_size_t length;
  ptl_ack_req_t ack_req;
  api::Target target;
  void* user_ptr;
  ptl_hdr_data_t hdr_data;
};
[[gnu::noinline]] int put_in_general(const PutArguments& put) noexcept {
  return start(movement(ptl_put, MessageKind::put, put.local, {}, put.length, put.ack_req,
                        put.target, put.user_ptr, put.hdr_data));
}

}  // namespace

extern "C" {

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
           ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
           ptl_hdr_data_t hdr_data) noexcept {
  const DescriptorOfInterface found = resolve_descriptor(md_handle);
  ProcessId id;
  Peer* peer;
  if (found.descriptor == nullptr || !found.descriptor->region.contains(local_offset, length) ||
      pt_index > static_cast<ptl_pt_index_t>(largest_pt_index) || ack_req > PTL_OC_ACK_REQ ||
      length > found.interface->limits().max_msg_size ||
      !find_recent_peer(*found.interface, *found.descriptor,
                        {target_id.phys.nid, target_id.phys.pid}, &id, &peer) ||
      peer == nullptr) [[unlikely]]
    return put_in_general({{md_handle, local_offset},
                           length,
                           ack_req,
                           {target_id, pt_index, match_bits, remote_offset},
                           user_ptr,
                           hdr_data});
  // Two objects: that of puts to others stays in registers.
  const auto call = [&] {
    return PutCall{*found.descriptor, local_offset,  length,   ack_req, pt_index,
                   match_bits,        remote_offset, user_ptr, hdr_data};
  };
  if (peer->route.in_process_sends == nullptr
          ? Initiator::put_in_place(*found.interface, *peer, call())
          : is_plain_call(call()) && deliver_to_self(*found.interface, *peer, call())) [[likely]]
    return PTL_OK;
  return put_in_general({{md_handle, local_offset},
                         length,
                         ack_req,
                         {target_id, pt_index, match_bits, remote_offset},
                         user_ptr,
                         hdr_data});
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
           ptl_size_t remote_offset, void* user_ptr) noexcept {
  return start(movement(ptl_get, MessageKind::get, {}, {md_handle, local_offset}, length,
                        PTL_NO_ACK_REQ, {target_id, pt_index, match_bits, remote_offset},
                        user_ptr));
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
              ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
              ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
              ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) noexcept {
  return start(movement(ptl_atomic, MessageKind::atomic, {md_handle, local_offset}, {}, length,
                        ack_req, {target_id, pt_index, match_bits, remote_offset}, user_ptr,
                        hdr_data, nullptr, operation, datatype));
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                   ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                   ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype) noexcept {
  return start(movement(ptl_fetch_atomic, MessageKind::fetch_atomic,
                        {put_md_handle, local_put_offset}, {get_md_handle, local_get_offset},
                        length, PTL_NO_ACK_REQ, {target_id, pt_index, match_bits, remote_offset},
                        user_ptr, hdr_data, nullptr, operation, datatype));
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
            ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
            ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
            ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, const void* operand,
            ptl_op_t operation, ptl_datatype_t datatype) noexcept {
  return start(movement(ptl_swap, MessageKind::swap, {put_md_handle, local_put_offset},
                        {get_md_handle, local_get_offset}, length, PTL_NO_ACK_REQ,
                        {target_id, pt_index, match_bits, remote_offset}, user_ptr, hdr_data,
                        operand, operation, datatype));
}

// Atomics are carried out by this process' processors: they are visible at once (spec 3.15.8).
int PtlAtomicSync(void) noexcept {
  if (!library_is_initialized()) return refuse_before_init(ptl_atomic_sync);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return PTL_OK;
}

}  // extern "C"
