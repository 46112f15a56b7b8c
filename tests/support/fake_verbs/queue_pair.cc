// The stand-in for libibverbs: queue pairs and their states, shared receive queues, posting.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "support/fake_verbs/objects.h"

namespace lintel::fake_verbs {

namespace {

struct Transition {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  int needed;  // attributes that must be given
};

constexpr Transition transitions[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN},
    {IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0},
};

bool may_change(const QueuePair& pair, ibv_qp_state to, int given) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR || to == pair.state) return true;
  return std::any_of(std::begin(transitions), std::end(transitions), [&](const Transition& one) {
    return one.type == pair.qp_type && one.from == pair.state && one.to == to &&
           (given & one.needed) == one.needed;
  });
}

void take(ibv_qp_attr& into, const ibv_qp_attr& from, int given) {
  if (given & IBV_QP_ACCESS_FLAGS) into.qp_access_flags = from.qp_access_flags;
  if (given & IBV_QP_QKEY) into.qkey = from.qkey;
  if (given & IBV_QP_PKEY_INDEX) into.pkey_index = from.pkey_index;
  if (given & IBV_QP_AV) into.ah_attr = from.ah_attr;
  if (given & IBV_QP_PATH_MTU) into.path_mtu = from.path_mtu;
  if (given & IBV_QP_DEST_QPN) into.dest_qp_num = from.dest_qp_num;
  if (given & IBV_QP_RQ_PSN) into.rq_psn = from.rq_psn;
  if (given & IBV_QP_SQ_PSN) into.sq_psn = from.sq_psn;
  if (given & IBV_QP_RNR_RETRY) into.rnr_retry = from.rnr_retry;
  if (given & IBV_QP_MAX_QP_RD_ATOMIC) into.max_rd_atomic = from.max_rd_atomic;
  if (given & IBV_QP_MAX_DEST_RD_ATOMIC) into.max_dest_rd_atomic = from.max_dest_rd_atomic;
}

int take_receive(std::deque<Receive>& queue, uint32_t most, uint32_t most_pieces,
                 const ibv_recv_wr& request) {
  if (queue.size() >= most) return ENOMEM;
  if (request.num_sge < 0 || static_cast<uint32_t>(request.num_sge) > most_pieces) return EINVAL;
  queue.push_back({request.wr_id, {request.sg_list, request.sg_list + request.num_sge}});
  return 0;
}

// Returns 0, or the errno with which the request is refused.
int take_send(QueuePair& pair, const ibv_send_wr& request) {
  if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_SQE && pair.state != IBV_QPS_ERR)
    return EINVAL;
  if (pair.posted - pair.retired >= pair.limits.max_send_wr) return ENOMEM;
  if (request.num_sge < 0 || static_cast<uint32_t>(request.num_sge) > pair.limits.max_send_sge)
    return EINVAL;
  Send send;
  send.request = request;
  if (request.opcode == IBV_WR_BIND_MW) send.window_key = request.bind_mw.mw->rkey;
  const bool moves_memory = request.opcode != IBV_WR_BIND_MW && request.opcode != IBV_WR_LOCAL_INV;
  if (moves_memory) send.pieces.assign(request.sg_list, request.sg_list + request.num_sge);
  for (const ibv_sge& piece : send.pieces) send.bytes += piece.length;
  send.is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  if (send.is_inline) {
    if (send.bytes > pair.limits.max_inline_data || request.opcode == IBV_WR_RDMA_READ)
      return EINVAL;
    for (const ibv_sge& piece : send.pieces) {
      const auto* const from = reinterpret_cast<const std::byte*>(piece.addr);
      send.inlined.insert(send.inlined.end(), from, from + piece.length);
    }
  }
  pair.sends.push_back(std::move(send));
  ++pair.posted;
  return 0;
}

}  // namespace

void stop(QueuePair& pair, ibv_qp_state state) {
  if (pair.state == state) return;
  pair.state = state;
  if (state == IBV_QPS_ERR && pair.srq != nullptr) {
    ibv_async_event event{};
    event.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
    event.element.qp = &pair;
    raise(*static_cast<Context*>(pair.context), event);
  }
}

void fill_operations(ibv_context_ops& operations) {
  operations.alloc_mw = alloc_mw;
  operations.dealloc_mw = dealloc_mw;
  operations.poll_cq = poll_cq;
  operations.req_notify_cq = req_notify_cq;
  operations.post_send = post_send;
  operations.post_recv = post_recv;
  operations.post_srq_recv = post_srq_recv;
}

int post_send(ibv_qp* base, ibv_send_wr* requests, ibv_send_wr** refused) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  auto& pair = static_cast<QueuePair&>(*base);
  int error = 0;
  for (ibv_send_wr* request = requests; request != nullptr && error == 0; request = request->next) {
    error = call_fault("ibv_post_send");
    if (error == 0) error = take_send(pair, *request);
    if (error == 0 && !pair.sends.empty()) pair.sends.back().chained = request != requests;
    if (error != 0) *refused = error == EINVAL ? nullptr : request;
  }
  work();
  return error;
}

int post_recv(ibv_qp* base, ibv_recv_wr* requests, ibv_recv_wr** refused) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  auto& pair = static_cast<QueuePair&>(*base);
  int error = 0;
  for (ibv_recv_wr* request = requests; request != nullptr && error == 0; request = request->next) {
    error = call_fault("ibv_post_recv");
    if (error == 0 && (pair.srq != nullptr || pair.state == IBV_QPS_RESET)) error = EINVAL;
    if (error == 0)
      error =
          take_receive(pair.receives, pair.limits.max_recv_wr, pair.limits.max_recv_sge, *request);
    if (error != 0) *refused = error == EINVAL ? nullptr : request;
  }
  work();
  return error;
}

int post_srq_recv(ibv_srq* base, ibv_recv_wr* requests, ibv_recv_wr** refused) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  auto& queue = static_cast<SharedQueue&>(*base);
  int error = 0;
  for (ibv_recv_wr* request = requests; request != nullptr && error == 0; request = request->next) {
    error = call_fault("ibv_post_srq_recv");
    if (error == 0)
      error = take_receive(queue.receives, queue.limits.max_wr, queue.limits.max_sge, *request);
    if (error != 0) *refused = request;
  }
  work();
  return error;
}

}  // namespace lintel::fake_verbs

using namespace lintel::fake_verbs;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* wanted) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  int error = call_fault("ibv_create_srq");
  if (error == 0 && (wanted->attr.max_wr > static_cast<uint32_t>(all.settings.max_srq_wr) ||
                     wanted->attr.max_sge > static_cast<uint32_t>(all.settings.max_sge)))
    error = EINVAL;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const queue = new SharedQueue{};
  queue->context = domain->context;
  queue->pd = domain;
  queue->limits = wanted->attr;
  ++static_cast<Domain*>(domain)->users;
  ++all.in_use.shared_queues;
  return queue;
}

int ibv_destroy_srq(ibv_srq* base) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  auto* const queue = static_cast<SharedQueue*>(base);
  if (queue->users != 0) {
    violation("ibv_destroy_srq with queue pairs in use");
    return EBUSY;
  }
  --static_cast<Domain*>(queue->pd)->users;
  --all.in_use.shared_queues;
  delete queue;
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  const Settings& settings = all.settings;
  const ibv_qp_cap& limits = wanted->cap;
  int error = call_fault("ibv_create_qp");
  if (error == 0 && (wanted->qp_type != IBV_QPT_RC && wanted->qp_type != IBV_QPT_UD))
    error = EOPNOTSUPP;
  if (error == 0 && (limits.max_inline_data > settings.max_inline_bytes ||
                     limits.max_send_wr > static_cast<uint32_t>(settings.max_qp_wr) ||
                     limits.max_recv_wr > static_cast<uint32_t>(settings.max_qp_wr) ||
                     limits.max_send_sge > static_cast<uint32_t>(settings.max_sge) ||
                     limits.max_recv_sge > static_cast<uint32_t>(settings.max_sge)))
    error = EINVAL;
  if (error == 0 && all.queue_pairs.size() >= static_cast<size_t>(settings.max_qp)) error = ENOMEM;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const pair = new QueuePair{};
  pair->context = domain->context;
  pair->qp_context = wanted->qp_context;
  pair->pd = domain;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->srq = wanted->srq;
  pair->qp_num = all.next_queue_pair++;
  pair->state = IBV_QPS_RESET;
  pair->qp_type = wanted->qp_type;
  pair->limits = limits;
  pair->signals_all = wanted->sq_sig_all != 0;
  all.queue_pairs[pair->qp_num] = pair;
  ++static_cast<Domain*>(domain)->users;
  ++static_cast<CompletionQueue*>(pair->send_cq)->users;
  ++static_cast<CompletionQueue*>(pair->recv_cq)->users;
  if (pair->srq != nullptr) ++static_cast<SharedQueue*>(pair->srq)->users;
  ++all.in_use.queue_pairs;
  return pair;
}

int ibv_destroy_qp(ibv_qp* base) {
  World& all = world();
  std::unique_lock guard(all.lock);
  if (const int error = call_fault("ibv_destroy_qp"); error != 0) return error;
  auto* const pair = static_cast<QueuePair*>(base);
  forget_events(*static_cast<Context*>(pair->context), pair);
  await_acknowledgements(guard, pair->events, "ibv_destroy_qp");
  remove_completions(pair->qp_num);
  all.queue_pairs.erase(pair->qp_num);
  --static_cast<Domain*>(pair->pd)->users;
  --static_cast<CompletionQueue*>(pair->send_cq)->users;
  --static_cast<CompletionQueue*>(pair->recv_cq)->users;
  if (pair->srq != nullptr) --static_cast<SharedQueue*>(pair->srq)->users;
  --all.in_use.queue_pairs;
  delete pair;
  work();  // requests that waited for this queue pair would never end
  return 0;
}

int ibv_modify_qp(ibv_qp* base, ibv_qp_attr* attributes, int given) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_modify_qp"); error != 0) return error;
  auto& pair = static_cast<QueuePair&>(*base);
  if ((given & IBV_QP_STATE) != 0 && !may_change(pair, attributes->qp_state, given)) return EINVAL;
  const Settings& settings = all.settings;
  if (((given & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && attributes->max_rd_atomic > settings.max_reads) ||
      ((given & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 &&
       attributes->max_dest_rd_atomic > settings.max_reads) ||
      ((given & IBV_QP_PATH_MTU) != 0 && attributes->path_mtu > settings.mtu) ||
      ((given & IBV_QP_AV) != 0 && !settings.infiniband && attributes->ah_attr.is_global == 0))
    return EINVAL;
  take(pair.attributes, *attributes, given);
  if ((given & IBV_QP_STATE) == 0) return 0;
  if (attributes->qp_state == IBV_QPS_ERR) {
    stop(pair, IBV_QPS_ERR);
  } else {
    if (attributes->qp_state == IBV_QPS_RESET) {
      remove_completions(pair.qp_num);
      pair.sends.clear();
      pair.receives.clear();
      pair.retired = pair.posted;
    }
    pair.state = attributes->qp_state;
  }
  work();
  return 0;
}

int ibv_query_qp(ibv_qp* base, ibv_qp_attr* attributes, int, ibv_qp_init_attr* init) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_query_qp"); error != 0) return error;
  const auto& pair = static_cast<QueuePair&>(*base);
  *attributes = pair.attributes;
  attributes->qp_state = attributes->cur_qp_state = pair.state;
  attributes->cap = pair.limits;
  *init = {};
  init->cap = pair.limits;
  init->qp_type = pair.qp_type;
  return 0;
}

}  // extern "C"
