// Acknowledgements and replies as they arrive at the initiator (spec 4.2.2): they bypass matching
// and name their operation by its cookie. Message path.
#include "core/operations/initiator_answers.h"

#include <algorithm>
#include <cstring>

#include "core/objects/network_interface.h"
#include "core/operations/initiator_events.h"
#include "core/operations/initiator_payload.h"
#include "util/lock.h"

namespace lintel {

namespace {

[[gnu::always_inline]] inline Operation* operation_of_peer(PhysicalInterface& interface,
                                                           const Peer& peer,
                                                           uint32_t cookie) noexcept {
  Operation* operation = interface.operations().find(cookie);
  return operation != nullptr && operation->peer.load(std::memory_order_relaxed) == &peer
             ? operation
             : nullptr;
}

// The same for an operation whose first message may be on its way out. nullptr: refused.
[[gnu::noinline]] Operation* operation_once_sent(PhysicalInterface& interface, Peer& peer,
                                                 uint32_t cookie) noexcept {
  {
    // The sender holds the send lock until it knows whether the message was sent.
    const LockGuard guard(peer.send_lock);
    Operation* const operation = operation_of_peer(interface, peer, cookie);
    if (operation != nullptr &&
        operation->stage.load(std::memory_order_acquire) == Operation::Stage::sent)
      return operation;
  }
  interface.messages_refused.increment();
  return nullptr;
}

// The operation that an answer names, if this peer may answer it: its first message was sent.
[[gnu::always_inline]] inline Operation* answered_operation(PhysicalInterface& interface,
                                                            Peer& peer, uint32_t cookie) noexcept {
  Operation* const operation = operation_of_peer(interface, peer, cookie);
  return operation != nullptr &&
                 operation->stage.load(std::memory_order_acquire) == Operation::Stage::sent
             ? operation
             : operation_once_sent(interface, peer, cookie);
}

// The operation that an acknowledgement names. Those that receive data end with a reply, and while
// the data of a long put are being sent the target has not answered it.
[[gnu::always_inline]] inline Operation* acknowledged_operation(PhysicalInterface& interface,
                                                                Peer& peer,
                                                                uint32_t cookie) noexcept {
  Operation* operation = answered_operation(interface, peer, cookie);
  if (operation != nullptr && (operation->get.descriptor != nullptr || operation->streaming))
      [[unlikely]] {
    interface.messages_refused.increment();
    return nullptr;
  }
  return operation;
}

// The target has read what it keeps from the memory of a direct put.
void end_sending(Operation& operation, ptl_ni_fail_t fail) noexcept {
  if (!operation.send_due) return;
  operation.send_due = false;
  MemoryDescriptor* put = operation.put.descriptor;
  // The thread that sees the event may release the descriptor at once.
  put->pending.fetch_sub(1, std::memory_order_release);
  report_send(*put, operation, fail);
}

// Counts the acknowledgements of one batch that go to the same counter together.
class AckCounts {
 public:
  ~AckCounts() { flush(); }
  void add(CountingEvent& counter, uint64_t n) noexcept {
    if (counter_ != &counter) flush();
    counter_ = &counter;
    sum_ += n;
  }
  void flush() noexcept {
    if (counter_ != nullptr && sum_ != 0) counter_->add_success(sum_);
    counter_ = nullptr;
    sum_ = 0;
  }

 private:
  CountingEvent* counter_ = nullptr;
  uint64_t sum_ = 0;
};

// Adds the counted put to the counter of its descriptor. nullptr: the descriptor was released, or
// counts no acknowledgements.
CountingEvent* counter_of(const CountedPuts::Put& put) noexcept {
  const MemoryDescriptor* descriptor = put.descriptor.get();
  return descriptor != nullptr && (descriptor->options & PTL_MD_EVENT_CT_ACK) != 0
             ? descriptor->counter
             : nullptr;
}

struct Count {
  CountingEvent* counter;  // nullptr: nothing is to be counted
  uint64_t amount;
};

// A counted put has ended with success. `mlength`: bytes that the target took.
Count end_counted_put(PhysicalInterface& interface, Peer& peer, uint32_t cookie,
                      uint64_t mlength = UINT64_MAX) noexcept LINTEL_REQUIRES(polling) {
  const CountedPuts::Put put = peer.counted_puts.take(cookie);
  if (put.descriptor.descriptor == nullptr) [[unlikely]] {
    interface.messages_refused.increment();
    return {};
  }
  peer.count_as_ended();
  return {counter_of(put), put.amount(mlength)};
}

}  // namespace

void fail_counted_puts(Peer& peer) noexcept {
  peer.counted_puts.end_if([&](const CountedPuts::Put& put) {
    polling.assert_held();
    peer.count_as_ended();
    if (CountingEvent* const counter = counter_of(put); counter != nullptr) counter->add_failure(1);
    return true;
  });
}

void handle_ack(PhysicalInterface& interface, Peer& peer, const MessageHeader& header) noexcept {
  if (header.hdr_data != 0) [[unlikely]]
    interface.refused_requests.note_answer(peer.id, header);
  if ((header.cookie & counted_put_cookie) != 0) {
    const Count count = end_counted_put(interface, peer, header.cookie, header.length());
    if (count.counter == nullptr) return;
    if (header.fail() != PTL_NI_OK)
      count.counter->add_failure(1);
    else
      count.counter->add_success(count.amount);
    return;
  }
  Operation* operation = acknowledged_operation(interface, peer, header.cookie);
  if (operation == nullptr) return;
  withdraw_memory(*operation, true);
  const auto fail = static_cast<ptl_ni_fail_t>(header.operation);
  const bool own_memory_failed = (header.modes & answer_source_fault) != 0;
  MemoryDescriptor* put = operation->put.get();
  if (put == nullptr && !operation->answer_due) {
    interface.operations().end(*operation);
    return;
  }
  const bool told_by_send =
      own_memory_failed && operation->send_due && put != nullptr && put->reports_send();
  end_sending(*operation, own_memory_failed ? fail : PTL_NI_OK);
  if (operation->answer_due && put != nullptr) {
    if (!told_by_send) {
      report_ack(
          *put, *operation,
          {std::min(header.length(), operation->header.length()), header.remote_offset,
           (header.flags & flag_overflow_list) != 0 ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST, fail});
    }
  } else if (put == nullptr) {
    operation->interface->status.dropped.increment();  // spec 4.2.2
  }
  interface.operations().end(*operation);
}

void handle_ack_batch(PhysicalInterface& interface, Peer& peer,
                      const InboundMessage& message) noexcept {
  const bool alone = message.payload_length == 0;
  if (alone && (message.header.cookie & counted_put_cookie) != 0) [[likely]] {
    const Count count = end_counted_put(interface, peer, message.header.cookie);
    if (count.counter != nullptr) count.counter->add_success(count.amount);
    return;
  }
  AckCounts counts;
  const uint32_t count = alone ? 1 : message.payload_length / sizeof(uint32_t);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t cookie = message.header.cookie;
    if (!alone) std::memcpy(&cookie, message.payload + i * sizeof cookie, sizeof cookie);
    if ((cookie & counted_put_cookie) != 0) [[likely]] {
      const Count one = end_counted_put(interface, peer, cookie);
      if (one.counter != nullptr) counts.add(*one.counter, one.amount);
      continue;
    }
    Operation* operation = acknowledged_operation(interface, peer, cookie);
    if (operation == nullptr) continue;
    withdraw_memory(*operation, true);
    MemoryDescriptor* put = operation->put.get();
    if (put == nullptr) {
      operation->interface->status.dropped.increment();
    } else {
      end_sending(*operation, PTL_NI_OK);
      const unsigned options = put->options;
      const ptl_ack_req_t requested = operation->header.requested_ack();
      if (!operation->answer_due) {
        // A direct put without acknowledgement: only its sending was to be ended.
      } else if (!ack_event_wanted(*put, requested, PTL_NI_OK)) {
        if (put->counter != nullptr && (options & PTL_MD_EVENT_CT_ACK) != 0) {
          const bool bytes = (options & PTL_MD_EVENT_CT_BYTES) != 0 && requested != PTL_OC_ACK_REQ;
          counts.add(*put->counter, bytes ? operation->header.length() : 1);
        }
      } else {
        report_whole_ack(*put, *operation);
      }
    }
    interface.operations().end(*operation);
  }
}

void handle_reply(PhysicalInterface& interface, Peer& peer,
                  const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Operation* operation = answered_operation(interface, peer, header.cookie);
  if (operation == nullptr) return;
  MemoryDescriptor* get = operation->get.descriptor;
  const uint64_t mlength = header.length();
  const bool carries_data = (header.flags & flag_remote_memory) == 0;
  if (get == nullptr || mlength > operation->header.length() ||
      (carries_data && mlength != message.payload_length)) {
    interface.messages_refused.increment();
    return;
  }
  withdraw_memory(*operation, true);
  auto fail = static_cast<ptl_ni_fail_t>(header.operation);
  if (fail != PTL_NI_OK && header.hdr_data != 0) [[unlikely]]
    interface.refused_requests.note_answer(peer.id, header);
  if (carries_data && fail == PTL_NI_OK &&
      !get->region.write(operation->get_offset, message.payload, mlength))
    fail = PTL_NI_SEGV;
  if (operation->fault != PTL_NI_OK && fail == PTL_NI_OK) fail = operation->fault;
  get->pending.fetch_sub(1, std::memory_order_release);
  report_reply(
      *get, *operation,
      {mlength, header.remote_offset,
       (header.flags & flag_overflow_list) != 0 ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST, fail});
  interface.operations().end(*operation);
}

// A part of the answer to a get whose memory the target cannot reach.
void handle_reply_data(PhysicalInterface& interface, Peer& peer,
                       const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Operation* operation = answered_operation(interface, peer, header.cookie);
  if (operation == nullptr) return;
  MemoryDescriptor* get = operation->get.descriptor;
  const uint64_t length = operation->header.length();
  if (get == nullptr || header.remote_offset > length ||
      message.payload_length > length - header.remote_offset) {
    interface.messages_refused.increment();
    return;
  }
  if (operation->fault != PTL_NI_OK) return;  // the operation fails: nothing more is touched
  if (!get->region.write(operation->get_offset + header.remote_offset, message.payload,
                         message.payload_length))
    operation->fault = PTL_NI_SEGV;
}

// The target of a long put asks for its data.
void handle_data_request(PhysicalInterface& interface, Peer& peer,
                         const MessageHeader& header) noexcept {
  Operation* operation = answered_operation(interface, peer, header.cookie);
  if (operation == nullptr) return;
  const uint64_t length = operation->header.length();
  if (!operation->direct || !operation->send_due || operation->streaming ||
      header.remote_offset > length || header.length() > length - header.remote_offset) {
    interface.messages_refused.increment();
    return;
  }
  operation->streaming = true;
  operation->stream_position = header.remote_offset;
  operation->stream_end = header.remote_offset + header.length();
  operation->stream_cookie = static_cast<uint32_t>(header.match_bits);
  const LockGuard guard(peer.send_lock);
  if (peer.queue_head == nullptr && send_request_data(peer, *operation)) {
    peer.note_in_process_send();
    return;
  }
  operation->kind = QueuedSend::Kind::request_data;
  interface.queues().enqueue(peer, *operation);
}

bool send_request_data(Peer& peer, Operation& operation) noexcept {
  const uint64_t chunk = peer.link->max_data_bytes.load(std::memory_order_relaxed);
  const MemoryRegion& region = operation.put.descriptor->region;
  MessageHeader header{};
  header.kind = MessageKind::data;
  header.cookie = operation.stream_cookie;
  while (operation.streaming) {
    const uint64_t left = operation.stream_end - operation.stream_position;
    Piece pieces[transfer_remote_pieces];
    uint64_t covered = 0;
    const unsigned count =
        region.pieces(operation.stream_position + operation.put_offset, std::min(left, chunk),
                      pieces, transfer_remote_pieces, &covered);
    header.remote_offset = operation.stream_position;
    header.set_length(covered);
    header.flags = covered == left ? flag_last : 0;
    SendStatus status = peer.transport->send(*peer.link, header, pieces, count);
    if (status == SendStatus::inaccessible) {
      header.operation = PTL_NI_SEGV;
      header.flags = flag_last;
      header.set_length(0);
      status = peer.transport->send(*peer.link, header, nullptr, 0);
    }
    if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
    if (status == SendStatus::sent) peer.sent.count(MessageKind::data, header.length());
    operation.stream_position += covered;
    if ((header.flags & flag_last) != 0 || status != SendStatus::sent) operation.streaming = false;
  }
  return true;
}

void fail_operation(PhysicalInterface& interface, Operation& operation) noexcept {
  withdraw_memory(operation, false);
  MemoryDescriptor* put = operation.put.get();
  if (operation.send_due) {
    // Reported once, unless only acknowledgements are reported (spec 3.13.3).
    if (put->reports_send() && operation.get.descriptor == nullptr) operation.answer_due = false;
    end_sending(operation, PTL_NI_UNDELIVERABLE);
  }
  const AnswerResult result{0, operation.header.remote_offset, PTL_PRIORITY_LIST,
                            PTL_NI_UNDELIVERABLE};
  if (MemoryDescriptor* get = operation.get.descriptor; get != nullptr) {
    get->pending.fetch_sub(1, std::memory_order_release);
    report_reply(*get, operation, result);
  } else if (operation.answer_due && put != nullptr) {
    report_ack(*put, operation, result);
  }
  interface.operations().end(operation);
}

}  // namespace lintel
