// The stand-in for libibverbs: execution of work requests.
#include <algorithm>
#include <cstring>

#include "support/fake_verbs/objects.h"

namespace lintel::fake_verbs {

namespace {

enum class Progress : uint8_t { ended, waits };

constexpr uint32_t route_bytes = 40;  // GRH

ibv_wc_opcode shown_as(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

// The first request of the queue has ended.
void end_send(QueuePair& pair, ibv_wc_status status) {
  const Send& send = pair.sends.front();
  const bool signalled = pair.signals_all || (send.request.send_flags & IBV_SEND_SIGNALED) != 0;
  if (status == IBV_WC_SUCCESS) ++world().done[send.request.opcode];
  if (signalled || status != IBV_WC_SUCCESS) {
    Completion completion{};
    completion.shown.wr_id = send.request.wr_id;
    completion.shown.status = status;
    completion.shown.opcode = shown_as(send.request.opcode);
    completion.shown.byte_len = static_cast<uint32_t>(send.bytes);
    completion.shown.qp_num = pair.qp_num;
    completion.queue_pair = pair.qp_num;
    completion.of_send = true;
    completion.requests = pair.posted - pair.sends.size() + 1;
    complete(static_cast<CompletionQueue&>(*pair.send_cq), completion);
  }
  pair.sends.pop_front();
}

void fail_send(QueuePair& pair, ibv_wc_status status) {
  end_send(pair, status);
  stop(pair, pair.qp_type == IBV_QPT_UD ? IBV_QPS_SQE : IBV_QPS_ERR);
}

void end_receive(QueuePair& pair, const Receive& receive, const ibv_wc& what) {
  Completion completion{};
  completion.shown = what;
  completion.shown.wr_id = receive.id;
  completion.shown.qp_num = pair.qp_num;
  completion.shown.opcode = IBV_WC_RECV;
  completion.queue_pair = pair.qp_num;
  complete(static_cast<CompletionQueue&>(*pair.recv_cq), completion);
}

void flush(QueuePair& pair) {
  while (!pair.sends.empty()) end_send(pair, IBV_WC_WR_FLUSH_ERR);
  if (pair.state != IBV_QPS_ERR) return;
  ibv_wc flushed{};
  flushed.status = IBV_WC_WR_FLUSH_ERR;
  while (!pair.receives.empty()) {
    end_receive(pair, pair.receives.front(), flushed);
    pair.receives.pop_front();
  }
}

// A cursor through scattered memory.
class Pieces {
 public:
  explicit Pieces(const std::vector<ibv_sge>& pieces) : pieces_(pieces) {}

  template <typename Move>
  void next(uint64_t bytes, const Move& move) {
    for (uint64_t moved = 0; moved < bytes;) {
      const ibv_sge& piece = pieces_[index_];
      const uint64_t step = std::min<uint64_t>(piece.length - offset_, bytes - moved);
      move(memory_at(piece.lkey, piece.addr) + offset_, moved, step);
      moved += step;
      offset_ += static_cast<uint32_t>(step);
      if (offset_ < piece.length) continue;
      ++index_;
      offset_ = 0;
    }
  }

 private:
  const std::vector<ibv_sge>& pieces_;
  size_t index_ = 0;
  uint32_t offset_ = 0;
};

std::vector<std::byte> gather(const Send& send) {
  if (send.is_inline) return send.inlined;
  std::vector<std::byte> bytes(send.bytes);
  Pieces(send.pieces).next(send.bytes, [&](const std::byte* from, uint64_t at, uint64_t count) {
    std::memcpy(bytes.data() + at, from, count);
  });
  return bytes;
}

void scatter(const std::vector<ibv_sge>& pieces, const std::byte* bytes, uint64_t count) {
  Pieces(pieces).next(
      count, [&](std::byte* to, uint64_t at, uint64_t step) { std::memcpy(to, bytes + at, step); });
}

uint64_t room_of(const Receive& receive) {
  uint64_t room = 0;
  for (const ibv_sge& piece : receive.pieces) room += piece.length;
  return room;
}

bool accessible(const ibv_pd* domain, const std::vector<ibv_sge>& pieces, bool write) {
  return std::all_of(pieces.begin(), pieces.end(),
                     [&](const ibv_sge& piece) { return local_access(domain, piece, write); });
}

bool receives(const QueuePair& pair) {
  return pair.state == IBV_QPS_RTR || pair.state == IBV_QPS_RTS || pair.state == IBV_QPS_SQE;
}

std::deque<Receive>& receive_queue(QueuePair& pair) {
  return pair.srq != nullptr ? static_cast<SharedQueue*>(pair.srq)->receives : pair.receives;
}

// The queue pair with this number at the port with this address; nullptr: none.
QueuePair* find_target(const Context& from, const ibv_ah_attr& way, uint32_t number) {
  World& all = world();
  const auto found = all.queue_pairs.find(number);
  if (found == all.queue_pairs.end()) return nullptr;
  const Device& device = device_of(found->second->context);
  const bool reached = way.is_global != 0
                           ? std::memcmp(&way.grh.dgid, &device.gid, sizeof device.gid) == 0
                           : way.dlid == device.lid && from.owner != nullptr;
  return reached ? found->second : nullptr;
}

// What the receiver finds in front of a datagram: a GRH. On Ethernet it is an IPv4 header in the
// second half of that place.
void write_route(std::byte (&route)[route_bytes], const Device& from, const Device& to,
                 size_t payload) {
  std::memset(route, 0, sizeof route);
  if (world().settings.infiniband) {
    route[0] = std::byte{0x60};
    std::memcpy(route + 8, &from.gid, sizeof from.gid);
    std::memcpy(route + 24, &to.gid, sizeof to.gid);
    return;
  }
  std::byte* const ip = route + 20;
  const size_t length = 20 + 8 + 12 + 8 + payload + 4;
  ip[0] = std::byte{0x45};
  ip[2] = static_cast<std::byte>(length >> 8);
  ip[3] = static_cast<std::byte>(length);
  ip[8] = std::byte{64};
  ip[9] = std::byte{17};
  std::memcpy(ip + 12, from.gid.raw + 12, 4);
  std::memcpy(ip + 16, to.gid.raw + 12, 4);
}

void deliver_datagram(QueuePair& from, const Send& send, const AddressHandle& handle) {
  World& all = world();
  const Device& sender = device_of(from.context);
  QueuePair* const to = find_target(static_cast<const Context&>(*from.context), handle.attributes,
                                    send.request.wr.ud.remote_qpn);
  // If the highest bit of the key is set, the sender's own key applies.
  const uint32_t key = (send.request.wr.ud.remote_qkey & 0x80000000u) != 0
                           ? from.attributes.qkey
                           : send.request.wr.ud.remote_qkey;
  if (to == nullptr || to->qp_type != IBV_QPT_UD || !receives(*to) || to->attributes.qkey != key)
    return;
  const Device& receiver = device_of(to->context);
  if (!sender.up || !receiver.up || receive_queue(*to).empty()) return;
  const std::vector<std::byte> bytes = gather(send);
  if (all.loses && all.loses({from.qp_num, to->qp_num, bytes.data(), bytes.size()})) return;
  const Receive receive = receive_queue(*to).front();
  if (room_of(receive) < route_bytes + bytes.size()) return;
  receive_queue(*to).pop_front();
  std::vector<std::byte> all_bytes(route_bytes);
  std::byte route[route_bytes];
  write_route(route, sender, receiver, bytes.size());
  std::memcpy(all_bytes.data(), route, route_bytes);
  all_bytes.insert(all_bytes.end(), bytes.begin(), bytes.end());
  ibv_wc what{};
  if (accessible(to->pd, receive.pieces, true)) {
    scatter(receive.pieces, all_bytes.data(), all_bytes.size());
  } else {
    what.status = IBV_WC_LOC_PROT_ERR;
  }
  what.byte_len = static_cast<uint32_t>(all_bytes.size());
  what.src_qp = from.qp_num;
  what.slid = sender.lid;
  what.wc_flags = handle.attributes.is_global != 0 ? IBV_WC_GRH : 0;
  if (send.request.opcode == IBV_WR_SEND_WITH_IMM) {
    what.wc_flags |= IBV_WC_WITH_IMM;
    what.imm_data = send.request.imm_data;
  }
  end_receive(*to, receive, what);
}

Progress do_datagram(QueuePair& pair) {
  const Send& send = pair.sends.front();
  const bool sends_only =
      send.request.opcode == IBV_WR_SEND || send.request.opcode == IBV_WR_SEND_WITH_IMM;
  if (!sends_only || send.request.wr.ud.ah == nullptr) {
    fail_send(pair, IBV_WC_LOC_QP_OP_ERR);
  } else if (send.bytes > (128u << world().settings.mtu)) {
    fail_send(pair, IBV_WC_LOC_LEN_ERR);
  } else if (!send.is_inline && !accessible(pair.pd, send.pieces, false)) {
    fail_send(pair, IBV_WC_LOC_PROT_ERR);
  } else {
    deliver_datagram(pair, send, static_cast<const AddressHandle&>(*send.request.wr.ud.ah));
    end_send(pair, IBV_WC_SUCCESS);
  }
  return Progress::ended;
}

// The other end detects an error: both queue pairs stop.
void refuse(QueuePair& pair, QueuePair& target, ibv_wc_status status, ibv_event_type told) {
  fail_send(pair, status);
  if (target.state == IBV_QPS_ERR) return;
  ibv_async_event event{};
  event.event_type = told;
  event.element.qp = &target;
  raise(*static_cast<Context*>(target.context), event);
  stop(target, IBV_QPS_ERR);
}

Progress do_message(QueuePair& pair, QueuePair& target) {
  std::deque<Receive>& queue = receive_queue(target);
  if (queue.empty()) {
    pair.waits_for_receiver = true;
    return Progress::waits;
  }
  const Send& send = pair.sends.front();
  const bool invalidates = send.request.opcode == IBV_WR_SEND_WITH_INV;
  if (invalidates && !invalidate(send.request.invalidate_rkey, &target)) {
    refuse(pair, target, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    return Progress::ended;
  }
  const Receive receive = queue.front();
  queue.pop_front();
  ibv_wc what{};
  if (invalidates) {
    what.wc_flags = IBV_WC_WITH_INV;
    what.invalidated_rkey = send.request.invalidate_rkey;
  }
  what.src_qp = pair.qp_num;
  what.byte_len = static_cast<uint32_t>(send.bytes);
  if (send.request.opcode == IBV_WR_SEND_WITH_IMM) {
    what.wc_flags = IBV_WC_WITH_IMM;
    what.imm_data = send.request.imm_data;
  }
  if (send.bytes > room_of(receive)) {
    what.status = IBV_WC_LOC_LEN_ERR;
  } else if (!accessible(target.pd, receive.pieces, true)) {
    what.status = IBV_WC_LOC_PROT_ERR;
  } else {
    const std::vector<std::byte> bytes = gather(send);
    scatter(receive.pieces, bytes.data(), bytes.size());
  }
  end_receive(target, receive, what);
  if (what.status == IBV_WC_SUCCESS) {
    end_send(pair, IBV_WC_SUCCESS);
  } else {
    fail_send(pair, what.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
    stop(target, IBV_QPS_ERR);
  }
  return Progress::ended;
}

Progress do_remote_access(QueuePair& pair, QueuePair& target) {
  const Send& send = pair.sends.front();
  const bool writes = send.request.opcode == IBV_WR_RDMA_WRITE;
  const uint64_t address = send.request.wr.rdma.remote_addr;
  std::byte* const memory = memory_at(send.request.wr.rdma.rkey, address);
  if (!writes &&
      (pair.attributes.max_rd_atomic == 0 || target.attributes.max_dest_rd_atomic == 0)) {
    refuse(pair, target, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  } else if (!remote_access(target, send.request.wr.rdma.rkey, address, send.bytes, writes)) {
    refuse(pair, target, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  } else {
    if (writes) {
      const std::vector<std::byte> bytes = gather(send);
      if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
    } else {
      scatter(send.pieces, memory, send.bytes);
    }
    end_send(pair, IBV_WC_SUCCESS);
  }
  return Progress::ended;
}

// Whether the other end accepts packets of this queue pair.
bool is_connected(const QueuePair& pair, const QueuePair& target) {
  return receives(target) && target.attributes.dest_qp_num == pair.qp_num &&
         target.attributes.rq_psn == pair.attributes.sq_psn;
}

Progress do_connected(QueuePair& pair) {
  const Send& send = pair.sends.front();
  if (send.request.opcode == IBV_WR_BIND_MW || send.request.opcode == IBV_WR_LOCAL_INV) {
    const bool good = send.request.opcode == IBV_WR_BIND_MW
                          ? bind(pair, send)
                          : invalidate(send.request.invalidate_rkey, nullptr);
    if (good) {
      end_send(pair, IBV_WC_SUCCESS);
    } else {
      fail_send(pair, IBV_WC_MW_BIND_ERR);
    }
    return Progress::ended;
  }
  const bool reads = send.request.opcode == IBV_WR_RDMA_READ;
  if (send.bytes > world().settings.max_message_bytes) {
    fail_send(pair, IBV_WC_LOC_LEN_ERR);
    return Progress::ended;
  }
  if (!send.is_inline && !accessible(pair.pd, send.pieces, reads)) {
    fail_send(pair, IBV_WC_LOC_PROT_ERR);
    return Progress::ended;
  }
  QueuePair* const target = find_target(static_cast<const Context&>(*pair.context),
                                        pair.attributes.ah_attr, pair.attributes.dest_qp_num);
  const bool up =
      device_of(pair.context).up && (target == nullptr || device_of(target->context).up);
  pair.waits_for_port = !up;
  if (!up) return Progress::waits;
  if (target == nullptr || !is_connected(pair, *target)) {
    fail_send(pair, IBV_WC_RETRY_EXC_ERR);
    return Progress::ended;
  }
  switch (send.request.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
      return do_message(pair, *target);
    case IBV_WR_RDMA_READ:
    case IBV_WR_RDMA_WRITE:
      return do_remote_access(pair, *target);
    default:
      fail_send(pair, IBV_WC_LOC_QP_OP_ERR);
      return Progress::ended;
  }
}

bool fails_on_demand(QueuePair& pair) {
  World& all = world();
  const Send& send = pair.sends.front();
  const Request request{pair.qp_num, pair.qp_type, send.request.opcode,
                        send.bytes,  send.pieces,  send.request.send_flags,
                        send.chained};
  for (auto fault = all.request_faults.begin(); fault != all.request_faults.end(); ++fault) {
    if (fault->which && !fault->which(request)) continue;
    const ibv_wc_status status = fault->status;
    all.request_faults.erase(fault);
    fail_send(pair, status);
    return true;
  }
  return false;
}

Progress do_first(QueuePair& pair) {
  pair.waits_for_receiver = pair.waits_for_port = false;
  if (fails_on_demand(pair)) return Progress::ended;
  return pair.qp_type == IBV_QPT_UD ? do_datagram(pair) : do_connected(pair);
}

}  // namespace

unsigned work(unsigned most) {
  World& all = world();
  unsigned count = 0;
  for (bool further = true; further;) {
    further = false;
    for (const auto& [number, pair] : all.queue_pairs) {
      if (pair->state == IBV_QPS_ERR || pair->state == IBV_QPS_SQE) flush(*pair);
      while (!all.held && pair->state == IBV_QPS_RTS && !pair->sends.empty() && count < most) {
        if (do_first(*pair) == Progress::waits) break;
        ++count;
        further = true;
      }
    }
  }
  return count;
}

}  // namespace lintel::fake_verbs
