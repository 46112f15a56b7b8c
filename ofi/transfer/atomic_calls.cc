// The functions of fi_ops_atomic. Message path.
#include "endpoint/endpoint.h"
#include "transfer/atomic.h"
#include "transfer/deferred.h"
#include "transfer/tables.h"

namespace lintel::ofi {
namespace {

// A request without operands in it.
AtomicRequest request_for(AtomicCall call, fi_addr_t target, const fi_rma_ioc* remote,
                          size_t remote_count, fi_datatype type, fi_op operation, void* context,
                          uint64_t flags) noexcept {
  AtomicRequest request{};
  request.call = call;
  request.target = target;
  request.remote = remote;
  request.remote_count = remote_count;
  request.type = type;
  request.operation = operation;
  request.context = context;
  request.flags = flags;
  request.reports_success = true;
  return request;
}

}  // namespace

AtomicRequest request_for(AtomicCall call, const fi_msg_atomic& message, uint64_t flags) noexcept {
  AtomicRequest request = request_for(call, message.addr, message.rma_iov, message.rma_iov_count,
                                      message.datatype, message.op, message.context, flags);
  request.operands = message.msg_iov;
  request.operand_count = message.msg_iov != nullptr ? message.iov_count : 0;
  return request;
}

namespace {

size_t items_of(const fi_ioc* pieces, size_t count) noexcept {
  size_t items = 0;
  for (size_t i = 0; i < count; ++i) items += pieces[i].count;
  return items;
}

ssize_t update_pieces(fid_ep* endpoint, const fi_ioc* pieces, void**, size_t count,
                      fi_addr_t target, uint64_t address, uint64_t key, fi_datatype type,
                      fi_op operation, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  const fi_rma_ioc remote = {address, items_of(pieces, count), key};
  AtomicRequest request = request_for(AtomicCall::update, target, &remote, 1, type, operation,
                                      context, own.transmit().op_flags);
  request.operands = pieces;
  request.operand_count = count;
  return carry_out(own, request);
}

ssize_t update(fid_ep* endpoint, const void* buffer, size_t count, void*, fi_addr_t target,
               uint64_t address, uint64_t key, fi_datatype type, fi_op operation, void* context) {
  const fi_ioc piece = {const_cast<void*>(buffer), count};
  return update_pieces(endpoint, &piece, nullptr, 1, target, address, key, type, operation,
                       context);
}

ssize_t update_message(fid_ep* endpoint, const fi_msg_atomic* message, uint64_t flags) {
  return perform(Endpoint::of(endpoint), request_for(AtomicCall::update, *message, flags),
                 carry_out);
}

ssize_t inject_update(fid_ep* endpoint, const void* buffer, size_t count, fi_addr_t target,
                      uint64_t address, uint64_t key, fi_datatype type, fi_op operation) {
  const fi_ioc piece = {const_cast<void*>(buffer), count};
  const fi_rma_ioc remote = {address, count, key};
  AtomicRequest request =
      request_for(AtomicCall::update, target, &remote, 1, type, operation, nullptr, FI_INJECT);
  request.operands = &piece;
  request.operand_count = 1;
  request.reports_success = false;
  return carry_out(Endpoint::of(endpoint), request);
}

ssize_t fetch_pieces(fid_ep* endpoint, const fi_ioc* pieces, void**, size_t count, fi_ioc* results,
                     void**, size_t result_count, fi_addr_t target, uint64_t address, uint64_t key,
                     fi_datatype type, fi_op operation, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  const fi_rma_ioc remote = {address, items_of(results, result_count), key};
  AtomicRequest request = request_for(AtomicCall::fetch, target, &remote, 1, type, operation,
                                      context, own.transmit().op_flags);
  request.operands = pieces;
  request.operand_count = pieces != nullptr ? count : 0;
  request.results = results;
  request.result_count = result_count;
  return carry_out(own, request);
}

ssize_t fetch(fid_ep* endpoint, const void* buffer, size_t count, void*, void* result, void*,
              fi_addr_t target, uint64_t address, uint64_t key, fi_datatype type, fi_op operation,
              void* context) {
  const fi_ioc piece = {const_cast<void*>(buffer), count};
  fi_ioc results = {result, count};
  return fetch_pieces(endpoint, &piece, nullptr, 1, &results, nullptr, 1, target, address, key,
                      type, operation, context);
}

ssize_t fetch_message(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void**,
                      size_t result_count, uint64_t flags) {
  AtomicRequest request = request_for(AtomicCall::fetch, *message, flags);
  request.results = results;
  request.result_count = result_count;
  return perform(Endpoint::of(endpoint), request, carry_out);
}

ssize_t compare_pieces(fid_ep* endpoint, const fi_ioc* pieces, void**, size_t count,
                       const fi_ioc* comparands, void**, size_t comparand_count, fi_ioc* results,
                       void**, size_t result_count, fi_addr_t target, uint64_t address,
                       uint64_t key, fi_datatype type, fi_op operation, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  const fi_rma_ioc remote = {address, items_of(pieces, count), key};
  AtomicRequest request = request_for(AtomicCall::compare, target, &remote, 1, type, operation,
                                      context, own.transmit().op_flags);
  request.operands = pieces;
  request.operand_count = count;
  request.comparands = comparands;
  request.comparand_count = comparand_count;
  request.results = results;
  request.result_count = result_count;
  return carry_out(own, request);
}

ssize_t compare(fid_ep* endpoint, const void* buffer, size_t count, void*, const void* comparand,
                void*, void* result, void*, fi_addr_t target, uint64_t address, uint64_t key,
                fi_datatype type, fi_op operation, void* context) {
  const fi_ioc piece = {const_cast<void*>(buffer), count};
  const fi_ioc comparands = {const_cast<void*>(comparand), count};
  fi_ioc results = {result, count};
  return compare_pieces(endpoint, &piece, nullptr, 1, &comparands, nullptr, 1, &results, nullptr, 1,
                        target, address, key, type, operation, context);
}

ssize_t compare_message(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* comparands,
                        void**, size_t comparand_count, fi_ioc* results, void**,
                        size_t result_count, uint64_t flags) {
  AtomicRequest request = request_for(AtomicCall::compare, *message, flags);
  request.comparands = comparands;
  request.comparand_count = comparand_count;
  request.results = results;
  request.result_count = result_count;
  return perform(Endpoint::of(endpoint), request, carry_out);
}

template <AtomicCall call>
int answer(fid_ep*, fi_datatype type, fi_op operation, size_t* count) {
  if (!is_available(call, type, operation)) return -FI_EOPNOTSUPP;
  if (count != nullptr) *count = most_items(type);
  return 0;
}

}  // namespace

fi_ops_atomic atomic_ops = {.size = sizeof(fi_ops_atomic),
                            .write = update,
                            .writev = update_pieces,
                            .writemsg = update_message,
                            .inject = inject_update,
                            .readwrite = fetch,
                            .readwritev = fetch_pieces,
                            .readwritemsg = fetch_message,
                            .compwrite = compare,
                            .compwritev = compare_pieces,
                            .compwritemsg = compare_message,
                            .writevalid = answer<AtomicCall::update>,
                            .readwritevalid = answer<AtomicCall::fetch>,
                            .compwritevalid = answer<AtomicCall::compare>};

}  // namespace lintel::ofi
