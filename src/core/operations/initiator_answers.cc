// Acknowledgements and replies as they arrive at the initiator (spec 4.2.2): they bypass matching
// and name their operation by its cookie. Message path.
#include "core/operations/initiator_answers.h"

#include <algorithm>
#include <cstring>

#include "core/objects/network_interface.h"
#include "util/lock.h"

namespace lintel {

namespace {

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
  void add(const Count& count) noexcept {
    if (count.counter == nullptr) return;
    if (sum_.counter != count.counter) flush();
    sum_ = {count.counter, sum_.amount + count.amount};
  }

 private:
  void flush() noexcept {
    if (sum_.amount != 0) sum_.apply();
    sum_ = {};
  }
  Count sum_{};
};

// What an acknowledgement or a reply says.
AnswerResult result_of(const MessageHeader& header, uint64_t mlength, ptl_ni_fail_t fail) noexcept {
  return {mlength, header.remote_offset,
          (header.flags & flag_overflow_list) != 0 ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST, fail};
}

}  // namespace

[[gnu::always_inline]] inline Operation* InitiatorAnswers::operation_of(
    const Peer& peer, uint32_t cookie) const noexcept {
  Operation* const operation = operations_.find(cookie);
  return operation != nullptr && operation->peer.load(std::memory_order_relaxed) == &peer
             ? operation
             : nullptr;
}

// The same for an operation whose first message may be on its way out. nullptr: refused.
[[gnu::noinline]] Operation* InitiatorAnswers::operation_once_sent(Peer& peer,
                                                                   uint32_t cookie) noexcept {
  {
    // The sender holds the send lock until it knows whether the message was sent.
    const LockGuard guard(peer.send_lock);
    Operation* const operation = operation_of(peer, cookie);
    if (operation != nullptr &&
        operation->stage.load(std::memory_order_acquire) == Operation::Stage::sent)
      return operation;
  }
  refused_.messages.increment();
  return nullptr;
}

// The operation that an answer names, if this peer may answer it: its first message was sent.
[[gnu::always_inline]] inline Operation* InitiatorAnswers::answered_operation(
    Peer& peer, uint32_t cookie) noexcept {
  Operation* const operation = operation_of(peer, cookie);
  return operation != nullptr &&
                 operation->stage.load(std::memory_order_acquire) == Operation::Stage::sent
             ? operation
             : operation_once_sent(peer, cookie);
}

// The operation that an acknowledgement names. Those that receive data end with a reply, and while
// the data of a long put are being sent the target has not answered it.
[[gnu::always_inline]] inline Operation* InitiatorAnswers::acknowledged_operation(
    Peer& peer, uint32_t cookie) noexcept {
  Operation* const operation = answered_operation(peer, cookie);
  if (operation != nullptr && (operation->get.descriptor != nullptr || operation->streaming))
      [[unlikely]] {
    refused_.messages.increment();
    return nullptr;
  }
  return operation;
}

// A counted put has ended; what success adds. `mlength`: bytes that the target took.
[[gnu::always_inline]] inline Count InitiatorAnswers::end_counted_put(Peer& peer, uint32_t cookie,
                                                                      uint64_t mlength) noexcept {
  const CountedPuts::Put put = peer.counted_puts.take(cookie);
  if (put.descriptor == nullptr) [[unlikely]] {
    refused_.messages.increment();
    return {};
  }
  peer.count_as_ended();
  return put.count(mlength);
}

// The memory of a get is used no more.
void InitiatorAnswers::end_getting(Operation& operation, const AnswerResult& result) noexcept {
  MemoryDescriptor& get = *operation.get.descriptor;
  get.pending.fetch_sub(1, std::memory_order_release);
  report_reply(get, operation, result);
  operations_.end(operation);
}

void InitiatorAnswers::take_ack(Peer& peer, const MessageHeader& header) noexcept {
  if (header.hdr_data != 0) [[unlikely]]
    refused_.note_answer(peer.id, header);
  if ((header.cookie & counted_put_cookie) != 0)
    return end_counted_put(peer, header.cookie, header.length()).apply(header.fail());
  Operation* operation = acknowledged_operation(peer, header.cookie);
  if (operation == nullptr) return;
  withdraw_memory(*operation, true);
  const ptl_ni_fail_t fail = header.fail();
  const bool own_memory_failed = (header.modes & answer_source_fault) != 0;
  MemoryDescriptor* put = operation->put.resolve();
  if (put == nullptr && !operation->answer_due) {
    operations_.end(*operation);
    return;
  }
  const bool told_by_send =
      own_memory_failed && operation->send_due && put != nullptr && put->reports_send();
  end_sending(*operation, own_memory_failed ? fail : PTL_NI_OK);
  if (operation->answer_due && put != nullptr) {
    if (!told_by_send)
      report_ack(*put, *operation,
                 result_of(header, std::min(header.length(), operation->header.length()), fail));
  } else if (put == nullptr) {
    operation->interface->status.dropped.increment();  // spec 4.2.2
  }
  operations_.end(*operation);
}

// Ends the operation that an acknowledgement of success names; returns what is to be counted.
[[gnu::always_inline]] inline Count InitiatorAnswers::end_acknowledged(Peer& peer,
                                                                       uint32_t cookie) noexcept {
  Operation* const operation = acknowledged_operation(peer, cookie);
  if (operation == nullptr) return {};
  withdraw_memory(*operation, true);
  Count count{};
  if (MemoryDescriptor* const put = operation->put.resolve(); put == nullptr) {
    operation->interface->status.dropped.increment();
  } else {
    end_sending(*operation, PTL_NI_OK);
    // Otherwise a direct put without acknowledgement: only its sending was to be ended.
    if (operation->answer_due) {
      const MessageHeader& header = operation->header;
      if (ack_event_wanted(*put, header.requested_ack(), PTL_NI_OK))
        report_whole_ack(*put, *operation);
      else
        count = count_of(*put, PTL_MD_EVENT_CT_ACK, header, header.length());
    }
  }
  operations_.end(*operation);
  return count;
}

void InitiatorAnswers::take_acks(Peer& peer, const std::byte* cookies, uint32_t count) noexcept {
  uint32_t cookie;
  std::memcpy(&cookie, cookies, sizeof cookie);
  if (count == 1 && (cookie & counted_put_cookie) != 0) [[likely]]
    end_counted_put(peer, cookie).apply();
  else
    take_any_acks(peer, cookies, count);
}

void InitiatorAnswers::take_any_acks(Peer& peer, const std::byte* cookies,
                                     uint32_t count) noexcept {
  AckCounts counts;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t cookie;
    std::memcpy(&cookie, cookies + i * sizeof cookie, sizeof cookie);
    counts.add((cookie & counted_put_cookie) != 0 ? end_counted_put(peer, cookie)
                                                  : end_acknowledged(peer, cookie));
  }
  operations_.return_ended(peer);
}

void InitiatorAnswers::take_reply(Peer& peer, const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Operation* operation = answered_operation(peer, header.cookie);
  if (operation == nullptr) return;
  MemoryDescriptor* get = operation->get.descriptor;
  const uint64_t mlength = header.length();
  const bool carries_data = (header.flags & flag_remote_memory) == 0;
  if (get == nullptr || mlength > operation->header.length() ||
      (carries_data && mlength != message.payload_length)) {
    refused_.messages.increment();
    return;
  }
  withdraw_memory(*operation, true);
  ptl_ni_fail_t fail = header.fail();
  if (fail != PTL_NI_OK && header.hdr_data != 0) [[unlikely]]
    refused_.note_answer(peer.id, header);
  if (carries_data && fail == PTL_NI_OK &&
      !get->region.write(operation->get_offset, message.payload, mlength))
    fail = PTL_NI_SEGV;
  if (operation->fault != PTL_NI_OK && fail == PTL_NI_OK) fail = operation->fault;
  end_getting(*operation, result_of(header, mlength, fail));
}

void InitiatorAnswers::take_reply_data(Peer& peer, const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Operation* operation = answered_operation(peer, header.cookie);
  if (operation == nullptr) return;
  MemoryDescriptor* get = operation->get.descriptor;
  const uint64_t length = operation->header.length();
  if (get == nullptr || header.remote_offset > length ||
      message.payload_length > length - header.remote_offset) {
    refused_.messages.increment();
    return;
  }
  if (operation->fault != PTL_NI_OK) return;  // the operation fails: nothing more is touched
  if (!get->region.write(operation->get_offset + header.remote_offset, message.payload,
                         message.payload_length))
    operation->fault = PTL_NI_SEGV;
}

void InitiatorAnswers::take_data_request(Peer& peer, const MessageHeader& header) noexcept {
  Operation* operation = answered_operation(peer, header.cookie);
  if (operation == nullptr) return;
  const uint64_t length = operation->header.length();
  if (!operation->direct || !operation->send_due || operation->streaming ||
      header.remote_offset > length || header.length() > length - header.remote_offset) {
    refused_.messages.increment();
    return;
  }
  operation->streaming = true;
  operation->stream_position = header.remote_offset;
  operation->stream_end = header.remote_offset + header.length();
  operation->stream_cookie = static_cast<uint32_t>(header.match_bits);
  const LockGuard guard(peer.send_lock);
  if (peer.queue_head == nullptr && send_data(peer, *operation)) {
    peer.note_in_process_send();
    return;
  }
  operation->kind = QueuedSend::Kind::request_data;
  queues_.enqueue(peer, *operation);
}

bool InitiatorAnswers::send_data(Peer& peer, Operation& operation) noexcept {
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

void InitiatorAnswers::fail(Operation& operation) noexcept {
  withdraw_memory(operation, false);
  MemoryDescriptor* const put = operation.put.resolve();
  if (operation.send_due) {
    // Reported once, unless only acknowledgements are reported (spec 3.13.3).
    if (put->reports_send() && operation.get.descriptor == nullptr) operation.answer_due = false;
    end_sending(operation, PTL_NI_UNDELIVERABLE);
  }
  const AnswerResult result{0, operation.header.remote_offset, PTL_PRIORITY_LIST,
                            PTL_NI_UNDELIVERABLE};
  if (operation.get.descriptor != nullptr) return end_getting(operation, result);
  if (operation.answer_due && put != nullptr) report_ack(*put, operation, result);
  operations_.end(operation);
}

void InitiatorAnswers::fail_all_of(Peer& peer) noexcept {
  operations_.for_each([&](Operation& operation) {
    polling.assert_held();
    if (operation.peer.load(std::memory_order_relaxed) == &peer) fail(operation);
  });
  peer.counted_puts.end_if([&](const CountedPuts::Put& put) {
    polling.assert_held();
    peer.count_as_ended();
    put.count(0).apply(PTL_NI_UNDELIVERABLE);
    return true;
  });
  operations_.return_ended(peer);
}

}  // namespace lintel
