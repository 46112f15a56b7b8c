// Starting an operation (spec 3.15): choose how its data travel, send it or queue it, report
// PTL_EVENT_SEND. Message path.
#include "core/operations/initiator.h"

#include <sched.h>

#include <cstring>
#include <mutex>

#include "core/objects/network_interface.h"
#include "core/operations/atomics.h"
#include "core/operations/initiator_events.h"
#include "core/operations/initiator_payload.h"

namespace lintel {

namespace {

// With this much queued for one peer, the caller helps to send before it goes on.
constexpr uint32_t long_queue = 1024;
constexpr unsigned help_rounds = 64;

void fill_header(const NetworkInterface& interface, const Request& request,
                 MessageHeader& header) noexcept {
  header.link_word = 0;
  header.kind = request.kind;
  header.flags = static_cast<uint8_t>(interface.slot());
  header.operation = static_cast<uint8_t>(request.operation);
  header.modes = static_cast<uint8_t>(request.datatype | request.ack << 4);
  header.initiator_rank = interface.logical() ? interface.map.own_rank() : 0;
  header.cookie = 0;
  header.pt_index = static_cast<uint16_t>(request.pt_index);
  header.set_length(request.length);
  header.match_bits = request.match_bits;
  header.remote_offset = request.remote_offset;
  header.hdr_data = request.hdr_data;
}

// Nothing was sent and nothing will be: the operation ends here. A failure known locally is told by
// PTL_EVENT_SEND and then not again by an acknowledgement (spec 3.13.3), except where the
// application listens to acknowledgements alone.
void report_local_failure(NetworkInterface& interface, const MessageHeader& header,
                          MemoryDescriptor* put, uint64_t put_offset, MemoryDescriptor* get,
                          uint64_t get_offset, void* user_ptr, ptl_ni_fail_t fail) noexcept {
  if (put != nullptr) {
    const OperationView view{header, put_offset, user_ptr};
    report_send(interface, *put, view, fail);
    if ((header.modes >> 4 & 3) != PTL_NO_ACK_REQ) {
      const bool event_told =
          put->event_queue != nullptr && (put->options & PTL_MD_EVENT_SEND_DISABLE) == 0;
      const bool count_told = (put->options & PTL_MD_EVENT_CT_SEND) != 0;
      if (put->event_queue != nullptr && !event_told) {
        report_ack(interface, *put, view, {0, header.remote_offset, PTL_PRIORITY_LIST, fail});
      } else if (put->counter != nullptr && !count_told &&
                 (put->options & PTL_MD_EVENT_CT_ACK) != 0) {
        put->counter->add_failure(1);
      }
    }
  }
  if (get != nullptr)
    report_reply(interface, *get, {header, get_offset, user_ptr},
                 {0, header.remote_offset, PTL_PRIORITY_LIST, fail});
}

void record_operation(NetworkInterface& interface, const Request& request,
                      const MessageHeader& header, Operation& operation) noexcept {
  operation.interface = &interface;
  operation.put = DescriptorReference(request.put);
  operation.get = DescriptorReference(request.get);
  operation.put_offset = request.put_offset;
  operation.get_offset = request.get_offset;
  operation.user_ptr = request.user_ptr;
  operation.send_due = request.put != nullptr;
  operation.answer_due = request.get != nullptr || (header.modes >> 4 & 3) != PTL_NO_ACK_REQ;
  operation.copied = false;
  operation.streaming = false;
  operation.fault = PTL_NI_OK;
  operation.header = header;
  if (request.operand != nullptr)
    std::memcpy(operation.operand, request.operand, datatype_size(request.datatype));
  if (request.get != nullptr) request.get->pending.fetch_add(1, std::memory_order_relaxed);
}

// From here on answers find the operation. Whoever handles one sees what was recorded, also where no
// order but that through the other process says so.
void publish_operation(Peer& peer, Operation& operation) noexcept {
  operation.peer.store(&peer, std::memory_order_release);
}

// Puts the operation behind what is queued already (peer.send_lock held).
void queue_operation(PhysicalInterface& physical, Peer& peer, const Request& request,
                     Operation& operation) noexcept {
  if (request.put != nullptr) {
    request.put->pending.fetch_add(1, std::memory_order_relaxed);
    const bool reuse_allowed = (request.put->options & PTL_MD_VOLATILE) != 0 &&
                               request.length <= largest_volatile_bytes && !operation.direct;
    if (reuse_allowed) {
      const uint32_t index = physical.volatile_copies().allocate();
      if (index != Arena<VolatileCopy>::no_index) {
        operation.copied = request.put->region.read(
            request.put_offset, physical.volatile_copies().at(index).bytes, request.length);
        operation.copy_index = index;
        if (!operation.copied) physical.volatile_copies().release(index);
      }
    }
  }
  operation.kind = QueuedSend::Kind::request;
  operation.stage.store(Operation::Stage::queued, std::memory_order_relaxed);
  publish_operation(peer, operation);
  enqueue_send(physical, peer, operation);
}

void help_sending(PhysicalInterface& physical, const Peer& peer) noexcept {
  physical.kick();
  for (unsigned i = 0;
       i < help_rounds && peer.queue_length.load(std::memory_order_relaxed) > long_queue; ++i) {
    sched_yield();
    physical.kick();
  }
}

}  // namespace

int start_request(NetworkInterface& interface, const Request& request) noexcept {
  PhysicalInterface& physical = interface.physical();
  ProcessId target{request.target.phys.nid, request.target.phys.pid};
  if (interface.logical() && !interface.map.find(request.target.rank, &target))
    return PTL_ARG_INVALID;

  MessageHeader header;
  fill_header(interface, request, header);
  MemoryDescriptor& descriptor = request.put != nullptr ? *request.put : *request.get;
  if (request.ack != PTL_NO_ACK_REQ && !descriptor_listens(descriptor))
    header.modes &= 0xf;  // nobody would hear it (spec 3.15.2)

  Peer* peer = descriptor.recent_peer.load(std::memory_order_acquire);
  if (peer == nullptr || !(peer->id == target) || peer->failed.load(std::memory_order_acquire))
      [[unlikely]] {
    peer = physical.peer_for(target);
    if (peer == nullptr) {
      report_local_failure(interface, header, request.put, request.put_offset, request.get,
                           request.get_offset, request.user_ptr, PTL_NI_UNDELIVERABLE);
      return PTL_OK;
    }
    descriptor.recent_peer.store(peer, std::memory_order_release);
  }

  const Capabilities& capabilities = peer->transport->capabilities();
  const bool direct = travels_directly(capabilities, request);
  if (direct || needs_remote_memory(capabilities, request)) header.flags |= flag_remote_memory;
  if (request.kind == MessageKind::put && !direct &&
      (request.put->options & PTL_MD_UNRELIABLE) != 0)
    header.flags |= flag_unreliable;
  const bool wants_answer = request.get != nullptr || (header.modes >> 4 & 3) != PTL_NO_ACK_REQ;
  // Once the message is out, the acknowledgment may come to another thread, which may release a descriptor
  // that tells of nothing else.
  const bool reports_send = !direct && request.put != nullptr && request.put->reports_send();

  SendStatus status = SendStatus::queue_full;
  {
    std::lock_guard guard(peer->send_lock);
    Operation* operation = nullptr;
    if (peer->failed.load(std::memory_order_relaxed)) [[unlikely]] {
      status = SendStatus::peer_failed;
    } else {
      if (wants_answer || direct) {
        operation = physical.allocate_operation(*peer);
        if (operation == nullptr) return PTL_NO_SPACE;
        operation->direct = direct;
        header.cookie = physical.cookie_of(*operation);
        record_operation(interface, request, header, *operation);
      }
      if (peer->queue_head == nullptr) [[likely]] {
        // The answer may arrive before this thread goes on: what it needs is set first.
        if (operation != nullptr) {
          operation->send_due = direct;
          if (direct) request.put->pending.fetch_add(1, std::memory_order_relaxed);
          operation->stage.store(Operation::Stage::sending, std::memory_order_relaxed);
          publish_operation(*peer, *operation);
        }
        status = send_payload(*peer, header, request, operation);
        if (status == SendStatus::sent) [[likely]] {
          peer->sent.count(request.kind, request.put != nullptr ? request.length : 0);
          if (operation != nullptr) {
            peer->operations_started.store(
                peer->operations_started.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
            operation->stage.store(Operation::Stage::sent, std::memory_order_release);
          }
        } else if (direct) {
          request.put->pending.fetch_sub(1, std::memory_order_relaxed);
        }
      }
      if (status == SendStatus::queue_full || status == SendStatus::connecting) {
        if (operation == nullptr) {
          operation = physical.allocate_operation(*peer);
          if (operation == nullptr) return PTL_NO_SPACE;
          operation->direct = direct;
          record_operation(interface, request, header, *operation);
        }
        operation->send_due = request.put != nullptr;
        queue_operation(physical, *peer, request, *operation);
      } else if (status != SendStatus::sent && operation != nullptr) {
        if (request.get != nullptr) request.get->pending.fetch_sub(1, std::memory_order_relaxed);
        physical.discard_operation(*operation);
      }
    }
  }

  switch (status) {
    case SendStatus::sent:
      if (reports_send)
        report_send(interface, *request.put, {header, request.put_offset, request.user_ptr},
                    PTL_NI_OK);
      if (peer->in_process) physical.kick_in_process();
      break;
    case SendStatus::queue_full:
    case SendStatus::connecting:
      help_sending(physical, *peer);
      break;
    case SendStatus::inaccessible:
    case SendStatus::peer_failed:
      report_local_failure(interface, header, request.put, request.put_offset, request.get,
                           request.get_offset, request.user_ptr,
                           status == SendStatus::inaccessible ? PTL_NI_SEGV : PTL_NI_UNDELIVERABLE);
      break;
  }
  return PTL_OK;
}

SendStatus send_operation(PhysicalInterface& interface, Peer& peer, Operation& operation) noexcept {
  Request request;
  request.kind = operation.header.kind;
  request.put = operation.put.descriptor;
  request.get = operation.get.descriptor;
  request.put_offset = operation.put_offset;
  request.get_offset = operation.get_offset;
  request.length = operation.header.length();
  request.operation = static_cast<ptl_op_t>(operation.header.operation);
  request.datatype = static_cast<ptl_datatype_t>(operation.header.modes & 0xf);
  if (operation.header.kind == MessageKind::swap && is_single_item(request.operation))
    request.operand = operation.operand;
  const std::byte* copy =
      operation.copied ? interface.volatile_copies().at(operation.copy_index).bytes : nullptr;
  const bool answered = operation.answer_due || operation.direct;
  // As in start_request(): the answer may overtake us.
  if (!operation.direct) operation.send_due = false;
  const SendStatus status = send_payload(peer, operation.header, request, &operation, copy);
  if (status == SendStatus::sent) {
    peer.sent.count(request.kind, request.put != nullptr ? request.length : 0);
    operation.stage.store(Operation::Stage::sent, std::memory_order_release);
    if (answered)
      peer.operations_started.store(peer.operations_started.load(std::memory_order_relaxed) + 1,
                                    std::memory_order_relaxed);
  } else {
    operation.send_due = request.put != nullptr;
  }
  return status;
}

void report_queued_send(PhysicalInterface& interface, Operation& operation) noexcept {
  if (operation.copied) {
    interface.volatile_copies().release(operation.copy_index);
    operation.copied = false;
  }
  MemoryDescriptor* put = operation.put.descriptor;
  if (operation.fault != PTL_NI_OK) {
    fail_unsent_operation(interface, operation, operation.fault);
    return;
  }
  // A direct operation reports when the target has taken its data.
  if (operation.direct || put == nullptr) return;
  const bool ends_here = !operation.answer_due;
  // Whoever sees the event may release the descriptor at once.
  put->pending.fetch_sub(1, std::memory_order_release);
  report_send(*operation.interface, *put,
              {operation.header, operation.put_offset, operation.user_ptr}, PTL_NI_OK);
  if (ends_here) interface.discard_operation(operation);
}

void fail_unsent_operation(PhysicalInterface& interface, Operation& operation,
                           ptl_ni_fail_t fail) noexcept {
  MemoryDescriptor* put = operation.put.descriptor;
  MemoryDescriptor* get = operation.get.descriptor;
  if (put != nullptr) put->pending.fetch_sub(1, std::memory_order_release);
  if (get != nullptr) get->pending.fetch_sub(1, std::memory_order_release);
  report_local_failure(*operation.interface, operation.header, put, operation.put_offset, get,
                       operation.get_offset, operation.user_ptr, fail);
  if (operation.copied) interface.volatile_copies().release(operation.copy_index);
  operation.copied = false;
  interface.discard_operation(operation);
}

}  // namespace lintel
