#include "transfer/memory.h"

#include <algorithm>

#include "base/provider.h"
#include "endpoint/endpoint.h"
#include "endpoint/segments.h"
#include "transfer/calls.h"
#include "transfer/deferred.h"
#include "transfer/tables.h"
#include "wire/message_header.h"

namespace lintel::ofi {
namespace {

// A piece of local memory and one of remote memory, of the same length.
struct Part {
  ptl_size_t local;
  size_t length;
  uint64_t remote;
  uint64_t key;
};

// Both sides in pieces of equal lengths, in order.
class Parts {
 public:
  explicit Parts(const MemoryRequest& request) noexcept : request_(request) {}

  // False: there is no further part. An operation without bytes is one part.
  bool next(Part& part) noexcept {
    while (local_ < request_.count && local_done_ == request_.pieces[local_].iov_len) {
      ++local_;
      local_done_ = 0;
    }
    while (remote_ < request_.remote_count && remote_done_ == request_.remote[remote_].len) {
      ++remote_;
      remote_done_ = 0;
    }
    if (local_ == request_.count || remote_ == request_.remote_count) return false;
    const iovec& local = request_.pieces[local_];
    const fi_rma_iov& remote = request_.remote[remote_];
    part.length = std::min(local.iov_len - local_done_, remote.len - remote_done_);
    part.local = reinterpret_cast<ptl_size_t>(local.iov_base) + local_done_;
    part.remote = remote.addr + remote_done_;
    part.key = remote.key;
    local_done_ += part.length;
    remote_done_ += part.length;
    return true;
  }

 private:
  const MemoryRequest& request_;
  size_t local_ = 0;
  size_t remote_ = 0;
  size_t local_done_ = 0;
  size_t remote_done_ = 0;
};

size_t collect(const MemoryRequest& request, std::array<Part, 2 * most_segments>& parts) noexcept {
  Parts walk(request);
  size_t count = 0;
  while (count < parts.size() && walk.next(parts[count])) ++count;
  if (count != 0) return count;
  parts[0] = {0, 0, request.remote->addr, request.remote->key};
  return 1;
}

int error_of_access(ptl_ni_fail_t failure) noexcept {
  // No region of the target has the key and covers the range.
  return failure == PTL_NI_DROPPED ? FI_ENOKEY : error_of_failure(failure);
}

bool is_valid(const MemoryRequest& request) noexcept {
  return request.count <= most_segments && request.remote_count >= 1 &&
         request.remote_count <= most_segments;
}

}  // namespace

Operation& begin_memory_operation(Endpoint& endpoint, void* context, uint64_t flags,
                                  uint64_t entry_flags, bool reports_success, Deferral* deferral) {
  Operation& operation =
      deferral == nullptr ? endpoint.begin_operation(OwnerKind::memory, context, !reports_success)
                          : endpoint.begin_operation(OwnerKind::memory, context, deferral);
  if (reports_success && endpoint.transmit().reports(flags, deferral))
    operation.state |= reports_completion;
  operation.tag = entry_flags;
  operation.header = PTL_NI_OK;
  operation.extra = 0;
  return operation;
}

namespace {

void withdraw_memory_operation(Operation& operation) {
  Endpoint& endpoint = *operation.endpoint;
  for (; operation.extra != 0; --operation.extra) endpoint.remove_transmit(operation);
  endpoint.abandon(operation);
}

}  // namespace

ssize_t start_memory_operation(Operation& operation, size_t started, int code, const char* call) {
  Endpoint& endpoint = *operation.endpoint;
  if (operation.has(is_deferred)) {
    const Trigger::Result result =
        deferral_of(operation).start(&operation, withdraw_memory_operation);
    if (result.calls == 0) {
      endpoint.abandon(operation);
      return error_of_start(result.code);
    }
    code = result.code;
    started = result.calls;
  } else if (code != PTL_OK && started == 0) {
    endpoint.abandon(operation);
    return failed(FI_LOG_EP_DATA, call, code);
  }
  if (code != PTL_OK) {  // the rest of an operation in several parts
    (void)failed(FI_LOG_EP_DATA, call, code);
    operation.state |= has_failed;
    operation.header = PTL_NI_UNDELIVERABLE;
  }
  operation.extra = started;
  endpoint.add_transmits(operation, started);
  return 0;
}

ssize_t write_memory(Endpoint& endpoint, const MemoryRequest& request) {
  if (!is_valid(request)) return -FI_EINVAL;
  const bool is_copied = (request.flags & FI_INJECT) != 0;
  if (is_copied && total_bytes(request.pieces, request.count) > inject_bytes) return -FI_EMSGSIZE;
  std::array<Part, 2 * most_segments> parts;
  const size_t count = collect(request, parts);
  const bool has_event = request.header != 0;
  if (has_event && count > 1) {
    FI_WARN(provider(), FI_LOG_EP_DATA,
            "A write with data for a completion has one local and one remote piece.\n");
    return -FI_ENOSYS;
  }
  const Guard guard(endpoint.domain().lock());
  if (!endpoint.may_begin(request.flags) || !endpoint.may_transmit(count)) return -FI_EAGAIN;
  const Peer peer(endpoint.addresses().resolve(request.target));
  const Network& network = endpoint.domain().network();
  Operation& operation =
      begin_memory_operation(endpoint, request.context, request.flags, FI_RMA | FI_WRITE,
                             request.reports_success, request.deferral);
  ptl_handle_md_t descriptor = is_copied ? network.copied() : network.acknowledged();
  if (request.deferral != nullptr && count == 1)
    descriptor = request.deferral->descriptor(Counter::Counted::answers, descriptor);
  int code = PTL_OK;
  size_t started = 0;
  for (; started < count && code == PTL_OK; started += code == PTL_OK ? 1 : 0) {
    const Part& part = parts[started];
    code = make(PutCall{descriptor, part.local, part.length, PTL_ACK_REQ, peer.process,
                        peer.portal(has_event ? Portal::memory_event : Portal::memory), part.key,
                        endpoint.domain().regions().offset(part.remote, part.key), &operation,
                        request.header | MessageHeader::with_index(endpoint.index())},
                request.deferral);
  }
  return start_memory_operation(operation, started, code, "PtlPut");
}

ssize_t read_memory(Endpoint& endpoint, const MemoryRequest& request) {
  if (!is_valid(request)) return -FI_EINVAL;
  std::array<Part, 2 * most_segments> parts;
  const size_t count = collect(request, parts);
  const Guard guard(endpoint.domain().lock());
  if (!endpoint.may_begin(request.flags) || !endpoint.may_transmit(count)) return -FI_EAGAIN;
  const Peer peer(endpoint.addresses().resolve(request.target));
  Operation& operation = begin_memory_operation(endpoint, request.context, request.flags,
                                                FI_RMA | FI_READ, true, request.deferral);
  ptl_handle_md_t descriptor = endpoint.domain().network().replies();
  if (request.deferral != nullptr && count == 1)
    descriptor = request.deferral->descriptor(Counter::Counted::answers, descriptor);
  int code = PTL_OK;
  size_t started = 0;
  for (; started < count && code == PTL_OK; started += code == PTL_OK ? 1 : 0) {
    const Part& part = parts[started];
    code = make(
        GetCall{descriptor, part.local, part.length, peer.process, peer.portal(Portal::memory_read),
                part.key, endpoint.domain().regions().offset(part.remote, part.key), &operation},
        request.deferral);
  }
  return start_memory_operation(operation, started, code, "PtlGet");
}

void memory_advanced(Operation& operation, const ptl_event_t& event) {
  Endpoint& endpoint = *operation.endpoint;
  endpoint.remove_transmit(operation);
  if (event.ni_fail_type != PTL_NI_OK) [[unlikely]] {
    operation.state |= has_failed;
    operation.header = event.ni_fail_type;
  }
  if (--operation.extra != 0) return;
  const uint64_t flags = operation.tag;
  const bool reads = (flags & FI_READ) != 0;
  Counter* const counter =
      counter_of(operation, reads ? endpoint.counters().read : endpoint.counters().write);
  CompletionQueue* const queue = endpoint.transmit().queue;
  if (!operation.has(has_failed)) [[likely]] {
    if (counter != nullptr) counter->add(1);
    if (operation.has(reports_completion))
      queue->push({context_of(operation), flags, 0, nullptr, 0, 0});
  } else {
    if (counter != nullptr) counter->add_errors(1);
    if (queue != nullptr) {
      fi_cq_err_entry entry{};
      entry.op_context = context_of(operation);
      entry.flags = flags;
      entry.err = error_of_access(static_cast<ptl_ni_fail_t>(operation.header));
      entry.prov_errno = static_cast<int>(operation.header);
      queue->push_error(entry);
    }
  }
  endpoint.end_operation(operation);
}

void region_written(Domain& domain, const ptl_event_t& event) {
  if (event.type != PTL_EVENT_PUT || event.ni_fail_type != PTL_NI_OK) return;
  Endpoint* const endpoint = domain.endpoint(event.pt_index / portals_per_endpoint);
  if (endpoint == nullptr || endpoint->receive().queue == nullptr) return;
  const MessageHeader header{event.hdr_data};
  endpoint->receive().queue->push({nullptr, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                                   event.mlength, nullptr, header.data(), 0},
                                  endpoint->source(encode(event.initiator, header.index())));
}

MemoryRequest request_to_read(const fi_msg_rma& message, uint64_t flags) noexcept {
  return {message.msg_iov, message.iov_count,     message.addr,
          message.rma_iov, message.rma_iov_count, 0,
          message.context, flags & ~FI_INJECT,    true};
}

MemoryRequest request_to_write(const fi_msg_rma& message, uint64_t flags) noexcept {
  MemoryRequest request = request_to_read(message, flags);
  request.flags = flags;
  if ((flags & FI_REMOTE_CQ_DATA) != 0) request.header = MessageHeader::with_data(message.data);
  return request;
}

namespace {

// The functions of fi_ops_rma.

ssize_t read_pieces(fid_ep* endpoint, const iovec* pieces, void**, size_t count, fi_addr_t source,
                    uint64_t address, uint64_t key, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  const fi_rma_iov remote = {address, total_bytes(pieces, count), key};
  return read_memory(
      own, {pieces, count, source, &remote, 1, 0, context, own.transmit().op_flags, true});
}

ssize_t read_one(fid_ep* endpoint, void* buffer, size_t length, void*, fi_addr_t source,
                 uint64_t address, uint64_t key, void* context) {
  const iovec piece = {buffer, length};
  return read_pieces(endpoint, &piece, nullptr, 1, source, address, key, context);
}

ssize_t read_message(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return perform(Endpoint::of(endpoint), request_to_read(*message, flags), read_memory);
}

ssize_t write_pieces(fid_ep* endpoint, const iovec* pieces, void**, size_t count, fi_addr_t target,
                     uint64_t address, uint64_t key, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  const fi_rma_iov remote = {address, total_bytes(pieces, count), key};
  return write_memory(
      own, {pieces, count, target, &remote, 1, 0, context, own.transmit().op_flags, true});
}

ssize_t write_one(fid_ep* endpoint, const void* buffer, size_t length, void*, fi_addr_t target,
                  uint64_t address, uint64_t key, void* context) {
  const iovec piece = {const_cast<void*>(buffer), length};
  return write_pieces(endpoint, &piece, nullptr, 1, target, address, key, context);
}

ssize_t write_message(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return perform(Endpoint::of(endpoint), request_to_write(*message, flags), write_memory);
}

ssize_t inject_one(fid_ep* endpoint, const void* buffer, size_t length, fi_addr_t target,
                   uint64_t address, uint64_t key) {
  const iovec piece = {const_cast<void*>(buffer), length};
  const fi_rma_iov remote = {address, length, key};
  return write_memory(Endpoint::of(endpoint),
                      {&piece, 1, target, &remote, 1, 0, nullptr, FI_INJECT, false});
}

ssize_t write_data(fid_ep* endpoint, const void* buffer, size_t length, void*, uint64_t data,
                   fi_addr_t target, uint64_t address, uint64_t key, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  const iovec piece = {const_cast<void*>(buffer), length};
  const fi_rma_iov remote = {address, length, key};
  return write_memory(own, {&piece, 1, target, &remote, 1, MessageHeader::with_data(data), context,
                            own.transmit().op_flags, true});
}

ssize_t inject_data(fid_ep* endpoint, const void* buffer, size_t length, uint64_t data,
                    fi_addr_t target, uint64_t address, uint64_t key) {
  const iovec piece = {const_cast<void*>(buffer), length};
  const fi_rma_iov remote = {address, length, key};
  return write_memory(
      Endpoint::of(endpoint),
      {&piece, 1, target, &remote, 1, MessageHeader::with_data(data), nullptr, FI_INJECT, false});
}

}  // namespace

fi_ops_rma memory_ops = {.size = sizeof(fi_ops_rma),
                         .read = read_one,
                         .readv = read_pieces,
                         .readmsg = read_message,
                         .write = write_one,
                         .writev = write_pieces,
                         .writemsg = write_message,
                         .inject = inject_one,
                         .writedata = write_data,
                         .injectdata = inject_data};

}  // namespace lintel::ofi
