#include "transfer/deferred.h"

#include <array>
#include <memory>

#include <rdma/fi_trigger.h>

#include "base/limits.h"
#include "base/provider.h"
#include "endpoint/report.h"
#include "endpoint/segments.h"
#include "transfer/atomic.h"
#include "transfer/memory.h"
#include "transfer/receive.h"
#include "transfer/send.h"

namespace lintel::ofi {
namespace {

// Flags that only make sense at the time of the call.
constexpr uint64_t immediate_flags = FI_FENCE | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD;

// Pieces that an operation sends, once they are copied. Alive while its call is.
struct CopiedPieces {
  iovec bytes;
  fi_ioc items;
  fi_ioc comparands;
};

int copy_pieces(Deferral& deferral, const iovec*& pieces, size_t& count, CopiedPieces& copied) {
  if (count > most_segments || total_bytes(pieces, count) > inject_bytes) return -FI_EMSGSIZE;
  if (!deferral.copy(pieces, count, copied.bytes)) return -FI_EFAULT;
  pieces = &copied.bytes;
  count = 1;
  return 0;
}

int copy_items(Deferral& deferral, fi_datatype type, const fi_ioc*& pieces, size_t& count,
               fi_ioc& copied) {
  const size_t bytes = item_bytes(type);
  std::array<iovec, most_segments> list;
  for (size_t i = 0; i < count; ++i) list[i] = {pieces[i].addr, pieces[i].count * bytes};
  iovec all;
  if (!deferral.copy(list.data(), count, all)) return -FI_EFAULT;
  copied = {all.iov_base, all.iov_len / bytes};
  pieces = &copied;
  count = 1;
  return 0;
}

// FI_INJECT: the program may change what is sent as soon as the call returns. 0 or an error.
int keep(SendRequest& request, CopiedPieces& copied) {
  if ((request.flags & FI_INJECT) == 0) return 0;
  return copy_pieces(*request.deferral, request.pieces, request.count, copied);
}

int keep(MemoryRequest& request, CopiedPieces& copied) {
  if ((request.flags & FI_INJECT) == 0) return 0;
  return copy_pieces(*request.deferral, request.pieces, request.count, copied);
}

int keep(ReceiveRequest&, CopiedPieces&) { return 0; }

// Portals reads a comparand when it is given the operation, perhaps more than once.
int keep(AtomicRequest& request, CopiedPieces& copied) {
  if (item_bytes(request.type) == 0) return -FI_EOPNOTSUPP;
  if (request.operand_count > most_segments || request.comparand_count > most_segments)
    return -FI_EINVAL;
  if ((request.flags & FI_INJECT) != 0 && request.operand_count != 0) {
    const int code = copy_items(*request.deferral, request.type, request.operands,
                                request.operand_count, copied.items);
    if (code != 0) return code;
    if (copied.items.count * item_bytes(request.type) > inject_bytes) return -FI_EMSGSIZE;
  }
  if (request.call != AtomicCall::compare) return 0;
  return copy_items(*request.deferral, request.type, request.comparands, request.comparand_count,
                    copied.comparands);
}

template <typename Request>
ssize_t defer(Endpoint& endpoint, Request request, Action<Request> action,
              const Deferral::Terms& terms) {
  if ((endpoint.caps() & FI_TRIGGER) == 0) return -FI_EOPNOTSUPP;
  if ((request.flags & immediate_flags) != 0) return -FI_ENOSYS;
  if (!endpoint.is_enabled()) return -FI_EOPBADSTATE;
  if (&terms.trigger->domain() != &endpoint.domain()) return -FI_EINVAL;
  std::unique_ptr<Deferral> deferral;
  {
    const Guard guard(endpoint.domain().lock());
    if (!endpoint.domain().pump().may_defer()) return -FI_EAGAIN;
    deferral = std::make_unique<Deferral>(&endpoint, terms);
  }
  request.deferral = deferral.get();
  CopiedPieces copied;
  ssize_t code = keep(request, copied);
  request.flags &= ~(FI_INJECT | FI_TRIGGER);
  if (code == 0) code = action(endpoint, request);
  const Guard guard(endpoint.domain().lock());
  if (code == 0) {
    (void)deferral.release();
  } else {
    deferral.reset();
  }
  return code;
}

template <typename Request>
ssize_t trigger_as_context_says(Endpoint& endpoint, const Request& request,
                                Action<Request> action) {
  const auto* const context = static_cast<const fi_triggered_context*>(request.context);
  if (context == nullptr) return -FI_EINVAL;
  if (context->event_type != FI_TRIGGER_THRESHOLD) return -FI_ENOSYS;
  const fi_trigger_threshold& threshold = context->trigger.threshold;
  if (threshold.cntr == nullptr) return -FI_EINVAL;
  return defer(endpoint, request, action,
               {.trigger = &Counter::of(&threshold.cntr->fid),
                .threshold = threshold.threshold,
                .identity = context,
                .context = request.context,
                .is_work = false,
                .completion = nullptr});
}

AtomicRequest request_for_work(AtomicCall call, const fi_msg_atomic& message, uint64_t flags,
                               const fi_msg_fetch* fetch) noexcept {
  AtomicRequest request = request_for(call, message, flags);
  if (fetch != nullptr) {
    request.results = fetch->msg_iov;
    request.result_count = fetch->iov_count;
  }
  return request;
}

// A work that moves a counter.
int queue_change(const fi_deferred_work& work, Deferral::Terms terms) {
  if (work.completion_cntr != nullptr || work.op.cntr->cntr == nullptr) return -FI_EINVAL;
  Counter& counter = Counter::of(&work.op.cntr->cntr->fid);
  Domain& domain = terms.trigger->domain();
  if (&counter.domain() != &domain) return -FI_EINVAL;
  const Guard guard(domain.lock());
  // A value that is set is that of the whole counter.
  if (counter.trigger() == nullptr) return -FI_ENOMEM;
  terms.completion = &counter;
  auto deferral = std::make_unique<Deferral>(nullptr, terms);
  const uint64_t value = work.op.cntr->value;
  const ptl_handle_ct_t target = counter.count_in_portals();
  const bool sets = work.op_type == FI_OP_CNTR_SET;
  deferral->add([=](ptl_handle_ct_t trigger, ptl_size_t threshold) {
    return sets ? PtlTriggeredCTSet(target, {value, 0}, trigger, threshold)
                : PtlTriggeredCTInc(target, {value, 0}, trigger, threshold);
  });
  const Trigger::Result result = deferral->start(nullptr, nullptr);
  if (result.calls == 0) return result.code == PTL_NO_SPACE ? -FI_EAGAIN : error_of(result.code);
  (void)deferral.release();
  return 0;
}

ssize_t queue_work(Domain& domain, const fi_deferred_work& work) {
  if (work.triggering_cntr == nullptr) return -FI_EINVAL;
  Deferral::Terms terms = {.trigger = &Counter::of(&work.triggering_cntr->fid),
                           .threshold = work.threshold,
                           .identity = &work,
                           .context = nullptr,
                           .is_work = true,
                           .completion = nullptr};
  if (&terms.trigger->domain() != &domain) return -FI_EINVAL;
  if (work.completion_cntr != nullptr) {
    terms.completion = &Counter::of(&work.completion_cntr->fid);
    if (&terms.completion->domain() != &domain) return -FI_EINVAL;
  }
  const auto defer_at = [&](fid_ep* endpoint, const auto& request, auto action) {
    terms.context = request.context;
    return defer(Endpoint::of(endpoint), request, action, terms);
  };
  switch (work.op_type) {
    case FI_OP_RECV:
      return defer_at(work.op.msg->ep, request_to_receive(work.op.msg->msg, work.op.msg->flags),
                      post_receive);
    case FI_OP_TRECV:
      return defer_at(work.op.tagged->ep,
                      request_to_receive(work.op.tagged->msg, work.op.tagged->flags), post_receive);
    case FI_OP_SEND:
      return defer_at(work.op.msg->ep, request_to_send(work.op.msg->msg, work.op.msg->flags), send);
    case FI_OP_TSEND:
      return defer_at(work.op.tagged->ep,
                      request_to_send(work.op.tagged->msg, work.op.tagged->flags), send);
    case FI_OP_READ:
      return defer_at(work.op.rma->ep, request_to_read(work.op.rma->msg, work.op.rma->flags),
                      read_memory);
    case FI_OP_WRITE:
      return defer_at(work.op.rma->ep, request_to_write(work.op.rma->msg, work.op.rma->flags),
                      write_memory);
    case FI_OP_ATOMIC: {
      const fi_op_atomic& op = *work.op.atomic;
      return defer_at(op.ep, request_for_work(AtomicCall::update, op.msg, op.flags, nullptr),
                      carry_out);
    }
    case FI_OP_FETCH_ATOMIC: {
      const fi_op_fetch_atomic& op = *work.op.fetch_atomic;
      return defer_at(op.ep, request_for_work(AtomicCall::fetch, op.msg, op.flags, &op.fetch),
                      carry_out);
    }
    case FI_OP_COMPARE_ATOMIC: {
      const fi_op_compare_atomic& op = *work.op.compare_atomic;
      AtomicRequest request = request_for_work(AtomicCall::compare, op.msg, op.flags, &op.fetch);
      request.comparands = op.compare.msg_iov;
      request.comparand_count = op.compare.iov_count;
      return defer_at(op.ep, request, carry_out);
    }
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD:
      return queue_change(work, terms);
    default:
      return -FI_ENOSYS;
  }
}

bool is_work(const TriggeredWork& work) noexcept {
  return static_cast<const Deferral&>(work).is_work();
}

int cancel_work(Domain& domain, const fi_deferred_work& work) {
  if (work.triggering_cntr == nullptr) return -FI_EINVAL;
  const Guard guard(domain.lock());
  Trigger* const trigger = Counter::of(&work.triggering_cntr->fid).existing_trigger();
  if (trigger == nullptr) return -FI_ENOENT;
  const auto is_it = [&](const TriggeredWork& each) { return each.identity() == &work; };
  return trigger->withdraw_if(is_it) != 0 ? 0 : -FI_ENOENT;
}

// With a work: all that wait for its counter.
int flush_work(Domain& domain, const fi_deferred_work* work) {
  const Guard guard(domain.lock());
  for (Counter* const counter : domain.triggers()) {
    if (work != nullptr && &counter->fid != &work->triggering_cntr->fid) continue;
    counter->existing_trigger()->withdraw_if(is_work);
  }
  return 0;
}

void report_cancelled(Endpoint& endpoint, bool receives, uint64_t flags, void* context) {
  CompletionQueue* const queue = receives ? endpoint.receive().queue : endpoint.transmit().queue;
  if (queue == nullptr) return;
  fi_cq_err_entry entry{};
  entry.op_context = context;
  entry.flags = flags;
  entry.err = FI_ECANCELED;
  queue->push_error(entry);
}

}  // namespace

ssize_t trigger(Endpoint& endpoint, const SendRequest& request, Action<SendRequest> action) {
  return trigger_as_context_says(endpoint, request, action);
}

ssize_t trigger(Endpoint& endpoint, const ReceiveRequest& request, Action<ReceiveRequest> action) {
  return trigger_as_context_says(endpoint, request, action);
}

ssize_t trigger(Endpoint& endpoint, const MemoryRequest& request, Action<MemoryRequest> action) {
  return trigger_as_context_says(endpoint, request, action);
}

ssize_t trigger(Endpoint& endpoint, const AtomicRequest& request, Action<AtomicRequest> action) {
  return trigger_as_context_says(endpoint, request, action);
}

int control_work(Domain& domain, int command, void* argument) {
  auto* const work = static_cast<fi_deferred_work*>(argument);
  switch (command) {
    case FI_QUEUE_WORK:
      return work != nullptr ? static_cast<int>(queue_work(domain, *work)) : -FI_EINVAL;
    case FI_CANCEL_WORK:
      return work != nullptr ? cancel_work(domain, *work) : -FI_EINVAL;
    case FI_FLUSH_WORK:
      return flush_work(domain, work);
    default:
      return -FI_ENOSYS;
  }
}

bool cancel_deferred(Endpoint& endpoint, const void* context) {
  const Guard guard(endpoint.domain().lock());
  bool is_found = false;
  bool receives = false;
  uint64_t flags = 0;
  const auto is_it = [&](const TriggeredWork& work) {
    const auto& deferral = static_cast<const Deferral&>(work);
    const Operation* const operation = deferral.operation();
    if (is_found || work.endpoint() != &endpoint || deferral.context() != context) return false;
    is_found = true;
    receives = operation->kind == OwnerKind::receive;
    flags = operation->kind == OwnerKind::memory
                ? operation->tag
                : (receives ? FI_RECV : FI_SEND) | message_flag(*operation);
    return true;
  };
  for (Counter* const counter : endpoint.domain().triggers())
    if (!is_found) counter->existing_trigger()->withdraw_if(is_it);
  if (is_found) report_cancelled(endpoint, receives, flags, const_cast<void*>(context));
  return is_found;
}

}  // namespace lintel::ofi
