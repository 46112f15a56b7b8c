// Acknowledgements and replies as they arrive at the initiator (spec 4.2.2): they bypass matching
// and name their operation by its cookie. Message path.
#include "core/operations/initiator_answers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/objects/network_interface.h"
#include "util/assert.h"
#include "util/lock.h"

namespace lintel {

namespace {

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

// Returns the result that an acknowledgement or a reply reports.
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

// An awaited put has ended: posts its event, returns what is to be counted. `result_of(record)` is
// its result.
template <typename ResultOf>
[[gnu::always_inline]] inline Count InitiatorAnswers::end_awaited_put(
    Peer& peer, uint32_t cookie, const ResultOf& result_of) noexcept {
  AwaitedPuts::Record* const put = peer.awaited_puts.find(cookie);
  if (put == nullptr) [[unlikely]] {
    refused_.messages.increment();
    return {};
  }
  Count count{};
  if (MemoryDescriptor* const descriptor = put->resolve(); descriptor != nullptr) [[likely]]
    count = post_ack(*descriptor, put->user_ptr(), put->requested(), result_of(*put));
  else
    put->descriptor().dropped->increment();  // spec 4.2.2
  AwaitedPuts::end(*put);
  peer.count_as_ended();
  return count;
}

Count InitiatorAnswers::end_awaited_put(Peer& peer, uint32_t cookie) noexcept {
  return end_awaited_put(peer, cookie, [](const AwaitedPuts::Record& put) {
    return whole_result(put.length(), put.remote_offset());
  });
}

// The target has read what it keeps from the memory of a direct put.
void InitiatorAnswers::end_sending(Operation& operation, ptl_ni_fail_t fail) noexcept {
  if (!operation.send_due) return;
  operation.send_due = false;
  if (operation.staged != nullptr) end_staging(operation);
  MemoryDescriptor* put = operation.put.descriptor;
  if (fail == PTL_NI_SEGV) [[unlikely]]
    put->region.explain_fault(operation.put_offset, operation.header.length());
  // The thread that sees the event may release the descriptor at once.
  put->pending.fetch_sub(1, std::memory_order_release);
  report_send(*put, operation.user_ptr, whole_result(operation), fail);
}

// The memory of a get is used no more.
void InitiatorAnswers::end_getting(Operation& operation, const AnswerResult& result) noexcept {
  MemoryDescriptor& get = *operation.get.descriptor;
  if (result.fail == PTL_NI_SEGV) [[unlikely]]
    get.region.explain_fault(operation.get_offset, operation.header.length());
  get.pending.fetch_sub(1, std::memory_order_release);
  report_reply(get, operation, result);
  operations_.end(operation);
}

void InitiatorAnswers::take_ack(Peer& peer, const MessageHeader& header) noexcept {
  if (header.hdr_data != 0) [[unlikely]]
    refused_.note_answer(peer.id, header);
  if ((header.cookie & awaited_put_cookie) != 0)
    return end_awaited_put(peer, header.cookie,
                           [&](const AwaitedPuts::Record& put) {
                             return result_of(header, std::min(header.length(), put.length()),
                                              header.fail());
                           })
        .apply(header.fail());
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
    if (operation->answer_due)
      count = post_ack(*put, operation->user_ptr, operation->header.requested_ack(),
                       whole_result(*operation));
  }
  operations_.end(*operation);
  return count;
}

// Straight code for a put that is only counted, which saves no registers.
void InitiatorAnswers::take_single_ack(Peer& peer, uint32_t cookie) noexcept {
  AwaitedPuts::Record* const put =
      (cookie & awaited_put_cookie) == 0 ? nullptr : peer.awaited_puts.find(cookie);
  const MemoryDescriptor* const descriptor = put == nullptr ? nullptr : put->resolve();
  if (descriptor == nullptr || descriptor->event_queue != nullptr) return end_single(peer, cookie);
  const Count to_count =
      count_of(*descriptor, PTL_MD_EVENT_CT_ACK, put->requested(), put->length());
  AwaitedPuts::end(*put);
  peer.count_as_ended();
  to_count.apply();
}

[[gnu::noinline]] void InitiatorAnswers::end_single(Peer& peer, uint32_t cookie) noexcept {
  if ((cookie & awaited_put_cookie) != 0) [[likely]]
    end_awaited_put(peer, cookie).apply();
  else
    take_acks(peer, reinterpret_cast<const std::byte*>(&cookie), 1);
}

void InitiatorAnswers::take_acks(Peer& peer, const std::byte* cookies, uint32_t count) noexcept {
  AckCounts counts;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t cookie;
    std::memcpy(&cookie, cookies + i * sizeof cookie, sizeof cookie);
    counts.add((cookie & awaited_put_cookie) != 0 ? end_awaited_put(peer, cookie)
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
  const AnswerResult result = result_of(header, mlength, fail);
  if (operation->staged != nullptr) return end_staged_get(*operation, result);
  end_getting(*operation, result);
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
  if ((operation->header.modes & get_in_windows) != 0)
    return take_staged_data(peer, *operation, message);
  if (!get->region.write(operation->get_offset + header.remote_offset, message.payload,
                         message.payload_length))
    operation->fault = PTL_NI_SEGV;
}

void InitiatorAnswers::take_data_request(Peer& peer, const MessageHeader& header) noexcept {
  Operation* operation = answered_operation(peer, header.cookie);
  if (operation == nullptr) return;
  const uint64_t length = operation->header.length();
  const bool goes_on = header.remote_offset == operation->stream_end &&
                       header.match_bits == operation->stream_cookie;
  if (!operation->direct || !operation->send_due || (operation->streaming && !goes_on) ||
      header.remote_offset > length || header.length() > length - header.remote_offset) {
    refused_.messages.increment();
    return;
  }
  if (operation->fault != PTL_NI_OK) return;  // the target has been told
  if (!operation->streaming) {
    if (operation->staged != nullptr && header.remote_offset != operation->stream_position)
      end_staging(*operation);
    operation->streaming = true;
    operation->stream_position = header.remote_offset;
    operation->stream_cookie = static_cast<uint32_t>(header.match_bits);
  }
  operation->stream_end = header.remote_offset + header.length();
  if (operation->staged == nullptr &&
      !operation->put.descriptor->region.is_host(
          operation->put_offset + operation->stream_position,
          operation->stream_end - operation->stream_position) &&
      !begin_staging(*operation, operation->stream_position, length))
    operation->fault = PTL_NI_UNDELIVERABLE;
  continue_sending(peer, *operation);
}

// Sends what is there, or has it sent from the queue.
void InitiatorAnswers::continue_sending(Peer& peer, Operation& operation) noexcept {
  if (!operation.streaming || operation.data_queued) return;
  if (StagedStream* const staged = operation.staged; staged != nullptr) {
    staged->load(operation.stream_end);
    staging_.watch(*staged);
    if (staged->fail() == PTL_NI_OK && staged->ready().length == 0) return;
  }
  const LockGuard guard(peer.send_lock);
  if (peer.queue.head == nullptr && send_data(peer, operation)) {
    peer.note_in_process_send();
    return;
  }
  operation.kind = QueuedSend::Kind::request_data;
  operation.data_queued = true;
  queues_.enqueue(peer, operation);
}

// The next data message: its header but for what all have in common, and its payload. False: the
// payload is not there yet.
bool InitiatorAnswers::next_part(Operation& operation, uint64_t most, MessageHeader& header,
                                 Piece* pieces, unsigned& count) noexcept {
  const uint64_t left = operation.stream_end - operation.stream_position;
  uint64_t covered = 0;
  if (StagedStream* const staged = operation.staged; staged != nullptr) {
    if (staged->fail() != PTL_NI_OK) operation.fault = staged->fail();
    const Piece there = staged->ready();
    if (operation.fault == PTL_NI_OK && there.length == 0 && left != 0) return false;
    covered = std::min(there.length, most);
    pieces[0] = {there.base, covered};
    count = covered != 0 ? 1 : 0;
    header.modes = covered == there.length ? data_is_staged | data_pauses : data_is_staged;
  } else {
    count = operation.put.descriptor->region.pieces(
        operation.stream_position + operation.put_offset, std::min(left, most), pieces,
        transfer_remote_pieces, &covered);
  }
  header.remote_offset = operation.stream_position;
  header.set_length(covered);
  header.flags = covered == left ? flag_last : 0;
  return true;
}

bool InitiatorAnswers::send_data(Peer& peer, Operation& operation) noexcept {
  const uint64_t chunk = peer.route.link->max_data_bytes.load(std::memory_order_relaxed);
  MessageHeader header{};
  header.kind = MessageKind::data;
  header.cookie = operation.stream_cookie;
  while (operation.streaming) {
    Piece pieces[transfer_remote_pieces];
    unsigned count = 0;
    if (!next_part(operation, chunk, header, pieces, count)) break;  // left until it is there
    SendStatus status = operation.fault == PTL_NI_OK
                            ? peer.route.transport->send(*peer.route.link, header, pieces, count)
                            : SendStatus::inaccessible;
    if (status == SendStatus::inaccessible) {
      operation.fault = PTL_NI_SEGV;
      header.operation = PTL_NI_SEGV;
      header.flags = flag_last;
      header.set_length(0);
      status = peer.route.transport->send(*peer.route.link, header, nullptr, 0);
    }
    if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
    if (status == SendStatus::sent) peer.sent.count(MessageKind::data, header.length());
    operation.stream_position += header.length();
    if ((header.flags & flag_last) != 0 || status != SendStatus::sent) operation.streaming = false;
    if (operation.staged == nullptr) continue;
    operation.staged->taken(header.length());
    if (operation.streaming) operation.staged->load(operation.stream_end);
    staging_.watch(*operation.staged);
  }
  operation.data_queued = false;
  return true;
}

// ---- memory of devices

bool InitiatorAnswers::begin_staging(Operation& operation, uint64_t begin, uint64_t end) noexcept {
  const bool gets = operation.get.descriptor != nullptr;
  operation.staged = staging_.begin(
      {.direction =
           gets ? StagedStream::Direction::to_device : StagedStream::Direction::from_device,
       .region = gets ? &operation.get.descriptor->region : &operation.put.descriptor->region,
       .region_offset = gets ? operation.get_offset : operation.put_offset,
       .begin = begin,
       .end = end,
       .client = this,
       .owner = &operation});
  if (operation.staged == nullptr) return false;
  Peer& peer = *operation.peer.load(std::memory_order_relaxed);
  staging_.ways().note(peer, DeviceWay::staged, end - begin, why_staged(peer));
  return true;
}

void InitiatorAnswers::end_staging(Operation& operation) noexcept {
  staging_.end(*std::exchange(operation.staged, nullptr));
}

// The target says how long the reply to a get is, and how it is asked for.
void InitiatorAnswers::take_offer(Peer& peer, Operation& operation,
                                  const MessageHeader& header) noexcept {
  if (operation.staged != nullptr || header.hdr_data == 0 ||
      header.hdr_data > operation.header.length())
    return refused_.messages.increment();
  operation.stream_position = 0;
  operation.stream_end = header.hdr_data;
  operation.stream_cookie = static_cast<uint32_t>(header.match_bits);
  if (!begin_staging(operation, 0, header.hdr_data)) operation.fault = PTL_NI_UNDELIVERABLE;
  request_data(peer, operation);
}

// Asks for as much as there is room for. The data of a get that has failed are asked for all the
// same, and dropped, so that the target comes to its end.
void InitiatorAnswers::request_data(Peer& peer, Operation& operation) noexcept {
  uint64_t end = operation.stream_end;
  if (operation.staged != nullptr && operation.staged->fail() != PTL_NI_OK)
    operation.fault = operation.staged->fail();
  if (operation.fault == PTL_NI_OK) {
    end = operation.staged->open_blocks();
    staging_.watch(*operation.staged);
  }
  if (end == operation.stream_position) return;
  MessageHeader request{};
  request.kind = MessageKind::data_request;
  request.modes = data_for_reply;
  request.cookie = operation.stream_cookie;
  request.remote_offset = operation.stream_position;
  request.set_length(end - operation.stream_position);
  operation.stream_position = end;
  answers_.send(peer, request, nullptr, 0);
}

void InitiatorAnswers::take_staged_data(Peer& peer, Operation& operation,
                                        const InboundMessage& message) noexcept {
  if (message.payload_length == 0) return take_offer(peer, operation, message.header);
  if (operation.staged == nullptr ||
      (!operation.staged->is_cancelled() &&
       !operation.staged->put(message.header.remote_offset, message.payload,
                              message.payload_length)))
    return refused_.messages.increment();
  staging_.watch(*operation.staged);
  request_data(peer, operation);
}

// The reply, or the end of the peer, has come. The operation ends with its last copy.
void InitiatorAnswers::end_staged_get(Operation& operation, const AnswerResult& result) noexcept {
  operation.reply.length = result.mlength;
  operation.reply.offset = result.remote_offset;
  operation.reply.list = result.list;
  operation.fault = result.fail;
  operation.ending = true;
  // No answer counts any more.
  operation.stage.store(Operation::Stage::queued, std::memory_order_relaxed);
  end_with_copies(operation);
}

void InitiatorAnswers::end_with_copies(Operation& operation) noexcept {
  StagedStream& staged = *operation.staged;
  if (operation.fault == PTL_NI_OK) operation.fault = staged.fail();
  if (operation.fault != PTL_NI_OK) staged.cancel();
  if (staged.is_copying()) return;
  if (operation.fault == PTL_NI_OK && !staged.is_complete())
    operation.fault = PTL_NI_UNDELIVERABLE;  // the target has not sent what it said
  end_staging(operation);
  operation.ending = false;
  end_getting(operation, {operation.reply.length, operation.reply.offset, operation.reply.list,
                          operation.fault});
}

void InitiatorAnswers::on_staged(StagedStream& stream) noexcept {
  auto& operation = static_cast<Operation&>(stream.owner());
  LINTEL_ASSERT(operation.staged == &stream);
  Peer& peer = *operation.peer.load(std::memory_order_relaxed);
  if (operation.ending)
    end_with_copies(operation);
  else if (stream.is_cancelled())
    return;  // the interface goes
  else if (stream.is_to_device())
    request_data(peer, operation);
  else
    continue_sending(peer, operation);
  operations_.return_ended(peer);
}

void InitiatorAnswers::stop_copies(const NetworkInterface& interface) noexcept {
  operations_.for_each([&](const Operation& operation) {
    if (operation.interface == &interface && operation.staged != nullptr)
      operation.staged->cancel();
  });
}

bool InitiatorAnswers::copies_under_way(const NetworkInterface& interface) noexcept {
  bool under_way = false;
  operations_.for_each([&](const Operation& operation) {
    under_way |= operation.interface == &interface && operation.staged != nullptr &&
                 operation.staged->is_writing();
  });
  return under_way;
}

void InitiatorAnswers::drop_all_of(const NetworkInterface& interface) noexcept {
  operations_.for_each([&](Operation& operation) {
    polling.assert_held();
    if (operation.interface != &interface) return;
    if (operation.staged != nullptr) end_staging(operation);
    operation.data_queued = false;
    operation.ending = false;
    operations_.end(operation);
  });
}

// ----

void InitiatorAnswers::fail(Operation& operation) noexcept {
  if (operation.ending) return;  // answered, or failed, but for copies
  withdraw_memory(operation, false);
  operation.data_queued = false;
  MemoryDescriptor* const put = operation.put.resolve();
  if (operation.send_due) {
    // Reported once, unless only acknowledgements are reported (spec 3.13.3).
    if (put->reports_send() && operation.get.descriptor == nullptr) operation.answer_due = false;
    end_sending(operation, PTL_NI_UNDELIVERABLE);
  }
  const AnswerResult result{0, operation.header.remote_offset, PTL_PRIORITY_LIST,
                            PTL_NI_UNDELIVERABLE};
  if (operation.staged != nullptr) return end_staged_get(operation, result);
  if (operation.get.descriptor != nullptr) return end_getting(operation, result);
  if (operation.answer_due && put != nullptr) report_ack(*put, operation, result);
  operations_.end(operation);
}

void InitiatorAnswers::fail_all_of(Peer& peer) noexcept {
  operations_.for_each([&](Operation& operation) {
    polling.assert_held();
    if (operation.peer.load(std::memory_order_relaxed) == &peer) fail(operation);
  });
  peer.awaited_puts.end_if([&](const AwaitedPuts::Record& put) {
    polling.assert_held();
    peer.count_as_ended();
    if (MemoryDescriptor* const descriptor = put.resolve(); descriptor != nullptr)
      post_ack(*descriptor, put.user_ptr(), put.requested(),
               {0, put.remote_offset(), PTL_PRIORITY_LIST, PTL_NI_UNDELIVERABLE})
          .apply(PTL_NI_UNDELIVERABLE);
    return true;
  });
  operations_.return_ended(peer);
}

}  // namespace lintel
