// Triggered operations (spec 3.16): the arguments are checked now, the operation starts when its
// counter reaches the threshold. Message path.
#include <memory>

#include "api/data_movement_check.h"
#include "core/operations/atomics.h"

using namespace lintel;
using namespace lintel::api;

namespace {

constexpr Call triggered_put{"PtlTriggeredPut", "spec 3.16.1"};
constexpr Call triggered_get{"PtlTriggeredGet", "spec 3.16.2"};
constexpr Call triggered_atomic{"PtlTriggeredAtomic", "spec 3.16.3"};
constexpr Call triggered_fetch_atomic{"PtlTriggeredFetchAtomic", "spec 3.16.4"};
constexpr Call triggered_swap{"PtlTriggeredSwap", "spec 3.16.5"};
constexpr Call triggered_ct_inc{"PtlTriggeredCTInc", "spec 3.16.6"};
constexpr Call triggered_ct_set{"PtlTriggeredCTSet", "spec 3.16.7"};

TriggeredOperation* allocate(NetworkInterface& interface) noexcept {
  const uint32_t index = interface.triggered_operations().allocate();
  return index == Arena<TriggeredOperation>::no_index ? nullptr
                                                      : &interface.triggered_operations().at(index);
}

int attach_movement(const MovementArguments& arguments, ptl_handle_ct_t trigger_handle,
                    ptl_size_t threshold) noexcept {
  NetworkInterface* interface = nullptr;
  Request request;
  if (const int code = check_movement(arguments, &interface, &request); code != PTL_OK) return code;
  const CounterOfInterface trigger = resolve_counter(trigger_handle);
  if (trigger.counter == nullptr || trigger.interface != interface)
    return refuse_handle(arguments.call, "trig_ct_handle", trigger_handle, HandleType::counter);
  TriggeredOperation* operation = allocate(*interface);
  if (operation == nullptr)
    return refuse_triggered(arguments.call, interface->limits().max_triggered_ops);
  operation->kind = TriggeredKind::movement;
  operation->threshold = threshold;
  std::construct_at(&operation->request, request);
  trigger.counter->attach(*operation);
  return PTL_OK;
}

int attach_count(TriggeredKind kind, ptl_handle_ct_t target_handle, ptl_ct_event_t value,
                 ptl_handle_ct_t trigger_handle, ptl_size_t threshold) noexcept {
  const Call& call = kind == TriggeredKind::ct_inc ? triggered_ct_inc : triggered_ct_set;
  const CounterOfInterface target = resolve_counter(target_handle);
  const CounterOfInterface trigger = resolve_counter(trigger_handle);
  if (target.counter == nullptr)
    return refuse_handle(call, "ct_handle", target_handle, HandleType::counter);
  if (trigger.counter == nullptr || target.interface != trigger.interface)
    return refuse_handle(call, "trig_ct_handle", trigger_handle, HandleType::counter);
  if (kind == TriggeredKind::ct_inc && value.success != 0 && value.failure != 0)
    return refuse(PTL_ARG_INVALID, call, "increment.failure", value.failure, one_field);
  TriggeredOperation* operation = allocate(*trigger.interface);
  if (operation == nullptr)
    return refuse_triggered(call, trigger.interface->limits().max_triggered_ops);
  operation->kind = kind;
  operation->threshold = threshold;
  operation->target_generation = target.counter->handle.generation();
  operation->count = {target.counter, value.success, value.failure};
  trigger.counter->attach(*operation);
  return PTL_OK;
}

}  // namespace

extern "C" {

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                    ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                    ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold) noexcept {
  return attach_movement(
      movement(triggered_put, MessageKind::put, {md_handle, local_offset}, {}, length, ack_req,
               {target_id, pt_index, match_bits, remote_offset}, user_ptr, hdr_data),
      trig_ct_handle, threshold);
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void* user_ptr, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold) noexcept {
  return attach_movement(
      movement(triggered_get, MessageKind::get, {}, {md_handle, local_offset}, length,
               PTL_NO_ACK_REQ, {target_id, pt_index, match_bits, remote_offset}, user_ptr),
      trig_ct_handle, threshold);
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                       ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                       ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                       ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) noexcept {
  return attach_movement(
      movement(triggered_atomic, MessageKind::atomic, {md_handle, local_offset}, {}, length,
               ack_req, {target_id, pt_index, match_bits, remote_offset}, user_ptr, hdr_data,
               nullptr, operation, datatype),
      trig_ct_handle, threshold);
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                            ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                            ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                            ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) noexcept {
  return attach_movement(
      movement(triggered_fetch_atomic, MessageKind::fetch_atomic, {put_md_handle, local_put_offset},
               {get_md_handle, local_get_offset}, length, PTL_NO_ACK_REQ,
               {target_id, pt_index, match_bits, remote_offset}, user_ptr, hdr_data, nullptr,
               operation, datatype),
      trig_ct_handle, threshold);
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                     ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                     ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                     ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                     const void* operand, ptl_op_t operation, ptl_datatype_t datatype,
                     ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) noexcept {
  return attach_movement(
      movement(triggered_swap, MessageKind::swap, {put_md_handle, local_put_offset},
               {get_md_handle, local_get_offset}, length, PTL_NO_ACK_REQ,
               {target_id, pt_index, match_bits, remote_offset}, user_ptr, hdr_data, operand,
               operation, datatype),
      trig_ct_handle, threshold);
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
                      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) noexcept {
  return attach_count(TriggeredKind::ct_inc, ct_handle, increment, trig_ct_handle, threshold);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
                      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) noexcept {
  return attach_count(TriggeredKind::ct_set, ct_handle, new_ct, trig_ct_handle, threshold);
}

}  // extern "C"
