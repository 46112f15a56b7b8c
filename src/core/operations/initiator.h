// The initiator's side of an operation: starting it (spec 3.13.2, 3.15). Message path.
#pragma once

#include <bit>
#include <optional>

#include "core/objects/network_interface.h"
#include "core/operations/initiator_answers.h"
#include "core/operations/initiator_events.h"
#include "core/operations/operation_table.h"
#include "core/operations/peer_directory.h"
#include "core/operations/send_queues.h"
#include "core/progress/wait.h"
#include "portals4.h"
#include "util/lock.h"

namespace lintel {

// A put as PtlPut was given it.
struct PutCall {
  MemoryDescriptor& put;
  uint64_t put_offset;  // bytes
  uint64_t length;      // bytes
  ptl_ack_req_t requested;
  uint32_t pt_index;
  uint64_t match_bits;
  uint64_t remote_offset;  // bytes
  void* user_ptr;
  uint64_t hdr_data;
};

class Initiator {
 public:
  Initiator(PeerDirectory& peers, SendQueues& queues, Poller& poller, WaitPolicy& wait_policy,
            ScratchPool& scratch, Staging& staging, AnswerSender& answers,
            RefusedRequests& refused) noexcept
      : peers_(peers),
        queues_(queues),
        poller_(poller),
        wait_policy_(wait_policy),
        scratch_(scratch),
        exports_(staging.exports()),
        answers_(operations_, queues, staging, answers, refused) {
    gone_.dropped = &dropped_of_gone_;
  }
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return operations_.open(); }

  [[nodiscard]] OperationTable& operations() noexcept { return operations_; }
  [[nodiscard]] InitiatorAnswers& answers() noexcept { return answers_; }

  // --- parts of start_request()
  // An eager put to another process whose peer is known. False: nothing was done; then
  // start_in_general() does it.
  [[nodiscard]] static bool start_eager_put(NetworkInterface& interface, Peer& peer,
                                            Request& request) noexcept;
  // A short put to another process whose peer is known. False: nothing was done.
  [[nodiscard]] static bool put_in_place(const NetworkInterface& interface, Peer& peer,
                                         const PutCall& call) noexcept;
  // After a send: delivers to the own process at once what nobody else looks for.
  void kick_in_process(const Peer& peer) noexcept;
  // Any request.
  [[nodiscard]] int start_in_general(NetworkInterface& interface, Peer& peer,
                                     Request& request) noexcept;
  // The last operation of the descriptor went to another peer.
  [[nodiscard]] int start_to_another(NetworkInterface& interface, MemoryDescriptor& descriptor,
                                     ProcessId target, Request& request) noexcept;

  // --- from the send queue
  // Sends the first message of a queued operation. False: no room.
  [[nodiscard]] bool send_queued(Peer& peer, Operation& operation) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  // Reports what became of it. No lock is held.
  void report_queued_send(Operation& operation) noexcept;
  // The operation was never sent and ends with `fail`.
  void fail_unsent(Operation& operation, ptl_ni_fail_t fail) noexcept;

  // A logical interface goes: drops its operations without events.
  void drop_all_of(NetworkInterface& interface) noexcept LINTEL_REQUIRES(polling);

 private:
  [[nodiscard]] static bool expect_full_ack(NetworkInterface& interface, Peer& peer,
                                            Request& request, Operation** operation) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  void forget_ack(Peer& peer, const Request& request, Operation* operation) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  [[nodiscard]] bool start_if_possible(NetworkInterface& interface, Peer& peer,
                                       Request& request) noexcept;
  [[nodiscard]] std::optional<SendStatus> send_or_queue(NetworkInterface& interface, Peer& peer,
                                                        Request& request, bool direct) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  [[nodiscard]] SendStatus send_first(Peer& peer, const Request& request, bool direct,
                                      Operation* operation) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  void queue(Peer& peer, Operation& operation) noexcept LINTEL_REQUIRES(peer.send_lock);
  void help_sending(Peer& peer) noexcept;
  [[nodiscard]] bool await_operation() noexcept;

  PeerDirectory& peers_;
  SendQueues& queues_;
  Poller& poller_;
  WaitPolicy& wait_policy_;
  ScratchPool& scratch_;
  DeviceExports& exports_;
  OperationTable operations_;
  InitiatorAnswers answers_;
  // Stands for the descriptors of logical interfaces that went before their puts ended.
  MemoryDescriptor gone_;
  SharedCounter dropped_of_gone_;
};

// The program asks for an acknowledgment that nothing reports.
[[gnu::cold, gnu::noinline]] void warn_of_unheard_acknowledgement() noexcept;
// Nothing was sent and nothing will be: the operation ends here.
void report_local_failure(const Request& request, ptl_ni_fail_t fail) noexcept;

// The longest put to the own process that PtlPut delivers, reports and acknowledges itself.
inline constexpr size_t largest_put_to_self = 64;
// Delivers a short put to `self`, the own process. False: nothing was done, since it is too long,
// or an earlier message is in flight, or another thread polls, or the target does more than usual.
[[nodiscard]] bool deliver_to_self(NetworkInterface& interface, Peer& self,
                                   const PutCall& call) noexcept;
// Starts an eager put to `self`: delivers it, or sends it as to others.
[[nodiscard]] int put_to_self(NetworkInterface& interface, Peer& self, Request& request) noexcept;

// Whether the payload of a put may travel with its header without further ado.
[[nodiscard]] inline bool is_plain_call(const PutCall& call) noexcept {
  return (call.put.options & PTL_MD_UNRELIABLE) == 0 && call.put.region.is_plain() &&
         (call.requested == PTL_NO_ACK_REQ || descriptor_listens(call.put));
}

// Writes a short put where the peer reads it. False: nothing was done; send a Request.
[[gnu::always_inline]] inline bool Initiator::put_in_place(const NetworkInterface& interface,
                                                           Peer& peer,
                                                           const PutCall& call) noexcept {
  MemoryDescriptor& put = call.put;
  const bool asks_for_ack = call.requested != PTL_NO_ACK_REQ;
  if (call.length > cell_payload_bytes ||
      call.length > peer.route.eager_put_bytes.load(std::memory_order_relaxed) ||
      !is_plain_call(call)) [[unlikely]]
    return false;
  const bool reports_send = put.reports_send();  // as in start_eager_put()
  {
    const LockGuard guard(peer.send_lock);
    if (peer.queue.head != nullptr || peer.diverts.load(std::memory_order_relaxed)) [[unlikely]]
      return false;
    MessageCell* const cell = peer.route.link->next_cell;
    uint32_t cookie = 0;
    if (cell == nullptr ||
        !guarded_copy_straight(cell->payload, put.region.contiguous_address(call.put_offset),
                               call.length) ||
        (asks_for_ack && !peer.awaited_puts.add({reference_to(&put), call.length, call.requested,
                                                 call.user_ptr, call.remote_offset},
                                                cookie))) [[unlikely]]
      return false;
    cell->header.set_rest(interface.logical() ? interface.map.own_rank() : 0, cookie, call.pt_index,
                          call.length, call.match_bits, call.remote_offset, call.hdr_data);
    peer.sent.count(MessageKind::put, call.length);
    if (asks_for_ack) peer.count_as_started();
    peer.route.transport->publish(
        *peer.route.link,
        MessageHeader::first_word(MessageKind::put, interface.request_flags(), PTL_MIN,
                                  MessageHeader::modes_of(PTL_INT8_T, call.requested)),
        static_cast<uint32_t>(call.length));
  }
  if (reports_send)
    report_sent_put(put, call.user_ptr, whole_result(call.length, call.remote_offset));
  return true;
}

// A put from contiguous memory of the host that travels with its header, to a peer that has room.
[[gnu::always_inline]] inline bool Initiator::start_eager_put(NetworkInterface& interface,
                                                              Peer& peer,
                                                              Request& request) noexcept {
  MemoryDescriptor& put = *request.put.descriptor;
  const uint64_t length = request.header.length();
  const Piece piece{put.region.contiguous_address(request.put_offset), length};
  // Once the message is out, the acknowledgement may come to another thread, which may release a
  // descriptor that reports nothing else.
  const bool reports_send = put.reports_send();
  const bool asks_for_ack = request.header.asks_for_ack();
  {
    const LockGuard guard(peer.send_lock);
    if (peer.queue.head != nullptr || peer.diverts.load(std::memory_order_relaxed)) [[unlikely]]
      return false;
    Operation* operation = nullptr;
    if (asks_for_ack &&
        !peer.awaited_puts.add({request.put, length, request.header.requested_ack(),
                                request.user_ptr, request.header.remote_offset},
                               request.header.cookie) &&
        !expect_full_ack(interface, peer, request, &operation)) [[unlikely]]
      return false;
    const SendStatus status =
        peer.route.transport->send(*peer.route.link, request.header, &piece, length != 0 ? 1 : 0);
    if (status != SendStatus::sent) [[unlikely]] {
      interface.initiator().forget_ack(peer, request, operation);
      request.header.cookie = 0;
      return false;
    }
    peer.sent.count(MessageKind::put, length);
    if (asks_for_ack) peer.count_as_started();
    if (operation != nullptr)
      operation->stage.store(Operation::Stage::sent, std::memory_order_release);
  }
  if (reports_send) report_sent_put(put, request.user_ptr, whole_result(request));
  return true;
}

// A put of contiguous memory of the host that travels with its header: the common case of
// Protocol::eager.
[[nodiscard]] inline bool is_eager_put(const Peer& peer, const Request& request) noexcept {
  return request.header.kind == MessageKind::put &&
         request.header.length() <= peer.route.eager_put_bytes.load(std::memory_order_relaxed) &&
         (request.put.descriptor->options & PTL_MD_UNRELIABLE) == 0 &&
         request.put.descriptor->region.is_plain();
}
[[nodiscard, gnu::always_inline]] inline int start_to(NetworkInterface& interface, Peer& peer,
                                                      Request& request) noexcept {
  if (is_eager_put(peer, request)) {
    if (peer.route.in_process_sends != nullptr) return put_to_self(interface, peer, request);
    if (Initiator::start_eager_put(interface, peer, request)) [[likely]]
      return PTL_OK;
  }
  return interface.initiator().start_in_general(interface, peer, request);
}

// The peer that the descriptor's last operation went to, if it is `target`: an address, or a rank
// in place of the nid. False: the rank is not in the map. `id`: address of the target.
[[nodiscard, gnu::always_inline]] inline bool find_recent_peer(const NetworkInterface& interface,
                                                               const MemoryDescriptor& descriptor,
                                                               ProcessId target, ProcessId* id,
                                                               Peer** peer) noexcept {
  *id = target;
  if (interface.logical() && !interface.map.find(target.nid, id)) return false;
  Peer* const recent = descriptor.recent_peer.load(std::memory_order_acquire);
  *peer = recent != nullptr && recent->id == *id ? recent : nullptr;
  return true;
}

// Starts the operation and fills in the rest of the request's header. Any thread.
// PTL_OK: it will end with its events. PTL_ARG_INVALID: the rank is not in the map.
// Waits for a free operation (most_operations) as long as others end. If none does, and where it is
// triggered, which cannot wait, it ends with PTL_NI_UNDELIVERABLE.
[[nodiscard, gnu::always_inline]] inline int start_request(NetworkInterface& interface,
                                                           Request& request) noexcept {
  MemoryDescriptor& descriptor =
      *(request.put.descriptor != nullptr ? request.put : request.get).descriptor;
  ProcessId target;
  Peer* peer;
  static_assert(offsetof(ptl_process_t, rank) == offsetof(ptl_process_t, phys.nid));
  if (!find_recent_peer(interface, descriptor, {request.target.phys.nid, request.target.phys.pid},
                        &target, &peer))
    return PTL_ARG_INVALID;
  // An acknowledgement is sent only if something is to be posted or counted (spec 3.15.2).
  if (!descriptor_listens(descriptor)) {
    if (request.header.asks_for_ack()) [[unlikely]]
      warn_of_unheard_acknowledgement();
    request.header.ask_for_no_ack();
  }
  if (peer == nullptr || peer->failed.load(std::memory_order_acquire)) [[unlikely]]
    return interface.initiator().start_to_another(interface, descriptor, target, request);
  return start_to(interface, *peer, request);
}

}  // namespace lintel
