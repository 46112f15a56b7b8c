#include "transfer/atomic.h"

#include <algorithm>

#include "base/provider.h"
#include "endpoint/endpoint.h"
#include "transfer/memory.h"
#include "wire/message_header.h"

namespace lintel::ofi {
namespace {

// The value that comes back from an FI_ATOMIC_WRITE without a result. Nobody reads it.
alignas(64) char unread_result[most_atomic_bytes];

// A list of local items, read from its start.
class ItemCursor {
 public:
  ItemCursor(const fi_ioc* pieces, size_t count, size_t item_bytes) noexcept
      : pieces_(pieces), end_(pieces + count), item_bytes_(item_bytes) {}

  // Items that lie together; 0 at the end.
  [[nodiscard]] size_t together() noexcept {
    while (pieces_ != end_ && done_ == pieces_->count) {
      ++pieces_;
      done_ = 0;
    }
    return pieces_ != end_ ? pieces_->count - done_ : 0;
  }
  [[nodiscard]] char* place() const noexcept {
    return static_cast<char*>(pieces_->addr) + done_ * item_bytes_;
  }
  void advance(size_t items) noexcept { done_ += items; }

 private:
  const fi_ioc* pieces_;
  const fi_ioc* end_;
  size_t item_bytes_;
  size_t done_ = 0;
};

size_t items_of(const fi_ioc* pieces, size_t count) noexcept {
  size_t items = 0;
  for (size_t i = 0; i < count; ++i) items += pieces[i].count;
  return items;
}

// One operation of Portals.
struct AtomicPart {
  const void* operand;
  const void* comparand;
  void* result;
  size_t bytes;
  uint64_t remote;
  uint64_t key;
};

// `counted` is the descriptor with the counter of a deferred operation, or PTL_INVALID_HANDLE.
int start_part(Endpoint& endpoint, const AtomicRequest& request, const Peer& peer,
               const AtomicPart& part, Operation& operation, ptl_handle_md_t counted) {
  const Network& network = endpoint.domain().network();
  const bool is_copied = (request.flags & FI_INJECT) != 0;
  const bool is_counted = counted != PTL_INVALID_HANDLE;
  const ptl_handle_md_t source = is_copied ? network.copied() : network.acknowledged();
  const ptl_handle_md_t target = is_counted ? counted : network.replies();
  const auto operand = reinterpret_cast<ptl_size_t>(part.operand);
  const auto result = reinterpret_cast<ptl_size_t>(part.result);
  const ptl_pt_index_t portal = peer.portal(Portal::memory);
  const uint64_t offset = endpoint.domain().regions().offset(part.remote, part.key);
  const ptl_op_t what = portals_operation(request.type, request.operation);
  const ptl_datatype_t type = portals_type(request.type);
  const uint64_t header = MessageHeader::with_index(endpoint.index());
  const bool swaps = what >= PTL_SWAP;
  const bool fetches = request.call == AtomicCall::fetch;
  if (request.deferral != nullptr) {
    request.deferral->add([=, process = peer.process, owner = &operation](ptl_handle_ct_t counter,
                                                                          ptl_size_t threshold) {
      if (swaps)
        return PtlTriggeredSwap(target, result, source, operand, part.bytes, process, portal,
                                part.key, offset, owner, header, part.comparand, what, type,
                                counter, threshold);
      if (fetches)
        return PtlTriggeredFetchAtomic(target, result, source, operand, part.bytes, process, portal,
                                       part.key, offset, owner, header, what, type, counter,
                                       threshold);
      return PtlTriggeredAtomic(is_counted ? counted : source, operand, part.bytes, PTL_ACK_REQ,
                                process, portal, part.key, offset, owner, header, what, type,
                                counter, threshold);
    });
    return PTL_OK;
  }
  if (swaps)
    return PtlSwap(target, result, source, operand, part.bytes, peer.process, portal, part.key,
                   offset, &operation, header, part.comparand, what, type);
  if (fetches)
    return PtlFetchAtomic(target, result, source, operand, part.bytes, peer.process, portal,
                          part.key, offset, &operation, header, what, type);
  return PtlAtomic(source, operand, part.bytes, PTL_ACK_REQ, peer.process, portal, part.key, offset,
                   &operation, header, what, type);
}

// It has one part.
bool is_single(const AtomicRequest& request, size_t items) noexcept {
  return request.remote_count == 1 && request.operand_count <= 1 && request.result_count <= 1 &&
         (request.call != AtomicCall::compare || items == 1);
}

// Walks through the lists of a request, part by part.
class AtomicParts {
 public:
  explicit AtomicParts(const AtomicRequest& request) noexcept
      : request_(request),
        item_bytes_(item_bytes(request.type)),
        most_(request.call == AtomicCall::compare ? 1 : most_items(request.type)),
        operands_(request.operands, request.operand_count, item_bytes_),
        comparands_(request.comparands, request.comparand_count, item_bytes_),
        results_(request.results, request.result_count, item_bytes_) {}

  bool next(AtomicPart& part) noexcept {
    while (remote_ < request_.remote_count && remote_done_ == request_.remote[remote_].count) {
      ++remote_;
      remote_done_ = 0;
    }
    if (remote_ == request_.remote_count) return false;
    const fi_rma_ioc& remote = request_.remote[remote_];
    const bool reads = request_.operation == FI_ATOMIC_READ;
    const bool has_results = request_.call != AtomicCall::update;
    size_t items = std::min(remote.count - remote_done_, most_);
    if (!reads) items = std::min(items, operands_.together());
    if (has_results) items = std::min(items, results_.together());
    if (request_.call == AtomicCall::compare) items = std::min(items, comparands_.together());
    if (items == 0) return false;
    part.operand = reads ? neutral_items(request_.type) : operands_.place();
    part.comparand = request_.call == AtomicCall::compare ? comparands_.place() : nullptr;
    part.result = has_results ? results_.place() : unread_result;
    part.bytes = items * item_bytes_;
    part.remote = remote.addr + remote_done_ * item_bytes_;
    part.key = remote.key;
    operands_.advance(items);
    comparands_.advance(items);
    results_.advance(items);
    remote_done_ += items;
    return true;
  }

 private:
  const AtomicRequest& request_;
  const size_t item_bytes_;
  const size_t most_;
  ItemCursor operands_;
  ItemCursor comparands_;
  ItemCursor results_;
  size_t remote_ = 0;
  size_t remote_done_ = 0;
};

// Every list has as many items as the remote one, and none has too many pieces.
bool is_valid(const AtomicRequest& request, size_t items) noexcept {
  if (request.remote_count == 0 || request.remote_count > most_segments || items == 0 ||
      request.operand_count > most_segments || request.result_count > most_segments ||
      request.comparand_count > most_segments)
    return false;
  const bool reads = request.operation == FI_ATOMIC_READ;
  if (!reads && items_of(request.operands, request.operand_count) != items) return false;
  if (request.call != AtomicCall::update &&
      items_of(request.results, request.result_count) != items)
    return false;
  return request.call != AtomicCall::compare ||
         items_of(request.comparands, request.comparand_count) == items;
}

}  // namespace

ssize_t carry_out(Endpoint& endpoint, const AtomicRequest& request) {
  if (!is_available(request.call, request.type, request.operation)) return -FI_EOPNOTSUPP;
  size_t items = 0;
  for (size_t i = 0; i < request.remote_count; ++i) items += request.remote[i].count;
  if (!is_valid(request, items) || items > most_items(request.type)) return -FI_EINVAL;
  if ((request.flags & FI_INJECT) != 0 && items * item_bytes(request.type) > inject_bytes)
    return -FI_EMSGSIZE;
  const Guard guard(endpoint.domain().lock());
  if (!endpoint.may_begin(request.flags) || !endpoint.may_transmit(items)) return -FI_EAGAIN;
  const Peer peer(endpoint.addresses().resolve(request.target));
  const bool reads = request.call != AtomicCall::update;
  Operation& operation = begin_memory_operation(endpoint, request.context, request.flags,
                                                FI_ATOMIC | (reads ? FI_READ : FI_WRITE),
                                                request.reports_success, request.deferral);
  const ptl_handle_md_t counted =
      request.deferral != nullptr && is_single(request, items)
          ? request.deferral->descriptor(Counter::Counted::answers, PTL_INVALID_HANDLE)
          : PTL_INVALID_HANDLE;
  AtomicParts parts(request);
  AtomicPart part{};
  int code = PTL_OK;
  size_t started = 0;
  while (code == PTL_OK && parts.next(part)) {
    code = start_part(endpoint, request, peer, part, operation, counted);
    if (code == PTL_OK) ++started;
  }
  return start_memory_operation(operation, started, code, "Atomic operation");
}

int query_atomic(fid_domain*, fi_datatype type, fi_op operation, fi_atomic_attr* attr,
                 uint64_t flags) noexcept {
  if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0) return -FI_EINVAL;
  const AtomicCall call = (flags & FI_COMPARE_ATOMIC) != 0 ? AtomicCall::compare
                          : (flags & FI_FETCH_ATOMIC) != 0 ? AtomicCall::fetch
                                                           : AtomicCall::update;
  if (!is_available(call, type, operation)) return -FI_EOPNOTSUPP;
  attr->size = item_bytes(type);
  attr->count = most_items(type);
  return 0;
}

}  // namespace lintel::ofi
