// Starting an operation (spec 3.15): choose how its data travel, send it or queue it, report
// PTL_EVENT_SEND. Message path.
#include "core/operations/initiator.h"

#include <sched.h>

#include <algorithm>
#include <atomic>

#include "core/objects/limits.h"
#include "core/operations/initiator_payload.h"
#include "core/progress/long_call.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"

namespace lintel {

void warn_of_unheard_acknowledgement() noexcept {
  static std::atomic<bool> said{false};
  log_once(said, LogLevel::warn,
           "an acknowledgment is requested with a memory descriptor that has neither event queue "
           "nor counting event (spec 3.15.2): nothing will report it, nor that the message was "
           "dropped");
}

namespace {

// Length of a peer's send queue from which on the caller helps to send before it returns.
constexpr uint32_t long_queue = 1024;
constexpr unsigned help_rounds = 64;
// Maximum time that a call waits for a free operation while none ends.
constexpr uint64_t longest_stall_ns = 2'000'000'000;

// How the data of a request travel.
enum class Protocol : uint8_t {
  eager,           // beside the header; those of a get or fetch beside that of the reply
  unreliable_put,  // the same, where a lost message may stay lost
  direct_put,      // the target reads the initiator's memory, or asks for data messages
  direct_get,      // the target writes into the initiator's memory, or sends data messages
};

// Whether the memory of a put or a get is that of the host.
bool has_host_memory(const Request& request) noexcept {
  const uint64_t length = request.header.length();
  return request.put.descriptor != nullptr
             ? request.put.descriptor->region.is_host(request.put_offset, length)
             : request.get.descriptor->region.is_host(request.get_offset, length);
}

// Says why memory of the request was not accessible.
[[gnu::cold]] void explain_fault(const Request& request) noexcept {
  const uint64_t length = request.header.length();
  if (request.put.descriptor != nullptr)
    request.put.descriptor->region.explain_fault(request.put_offset, length);
  if (request.get.descriptor != nullptr)
    request.get.descriptor->region.explain_fault(request.get_offset, length);
}

Protocol protocol_of(const Capabilities& capabilities, const Request& request) noexcept {
  const MessageKind kind = request.header.kind;
  if (kind != MessageKind::put && kind != MessageKind::get) return Protocol::eager;
  const uint64_t length = request.header.length();
  const bool fits = length <= capabilities.max_eager_bytes;
  // The other side had better copy what is long itself. It cannot reach memory of a device.
  const bool goes_directly =
      !fits || (capabilities.remote_access && length > capabilities.remote_threshold_bytes &&
                has_host_memory(request));
  if (kind == MessageKind::get) return goes_directly ? Protocol::direct_get : Protocol::eager;
  const unsigned options = request.put.descriptor->options;
  // A volatile buffer must be read before the call returns (spec 3.10.1).
  const bool read_by_call =
      fits && (options & PTL_MD_VOLATILE) != 0 && length <= largest_volatile_bytes;
  if (goes_directly && !read_by_call) return Protocol::direct_put;
  return (options & PTL_MD_UNRELIABLE) != 0 ? Protocol::unreliable_put : Protocol::eager;
}

void record_operation(NetworkInterface& interface, const Request& request, bool direct,
                      Operation& operation) noexcept {
  static_cast<Request&>(operation) = request;
  operation.interface = &interface;
  operation.direct = direct;
  operation.send_due = request.put.descriptor != nullptr;
  operation.answer_due = request.has_answer();
  operation.copied = false;
  operation.streaming = false;
  operation.fault = PTL_NI_OK;
  if (request.get.descriptor != nullptr)
    request.get.descriptor->pending.fetch_add(1, std::memory_order_relaxed);
}

// From now on answers find the operation. The thread that handles an answer sees the recorded
// values, even if only the exchange with the other process orders the two threads.
void publish_operation(Peer& peer, Operation& operation) noexcept {
  operation.peer.store(&peer, std::memory_order_release);
}

// Grows whenever operations end or leave a send queue.
uint64_t progress_of(std::span<const Peer> peers) noexcept {
  uint64_t sum = 0;
  for (const Peer& peer : peers)
    sum += uint64_t{peer.operations.ended.load(std::memory_order_relaxed)} +
           peer.queue_counts.removed.load(std::memory_order_relaxed);
  return sum;
}

// When this thread last waited for a free operation and got none. Until an operation ends, its next
// calls do not wait at all.
struct VainWait {
  const Initiator* at = nullptr;
  uint64_t progress = 0;
};
__attribute__((tls_model("initial-exec"))) thread_local constinit VainWait last_vain_wait;

}  // namespace

// Puts the operation behind what is queued already.
void Initiator::queue(Peer& peer, Operation& operation) noexcept {
  if (MemoryDescriptor* put = operation.put.descriptor; put != nullptr) {
    put->pending.fetch_add(1, std::memory_order_relaxed);
    const uint64_t length = operation.header.length();
    const bool reuse_allowed = (put->options & PTL_MD_VOLATILE) != 0 &&
                               length <= largest_volatile_bytes && !operation.direct;
    // Memory that is not there is found when it is to be sent.
    if (reuse_allowed) operations_.copy_payload(operation);
  }
  operation.kind = QueuedSend::Kind::request;
  operation.stage.store(Operation::Stage::queued, std::memory_order_relaxed);
  publish_operation(peer, operation);
  queues_.enqueue(peer, operation);
}

// After rounds in which nothing was sent, the next help waits until something was: the peer may be
// stopped, and beside busy processes each yield may take a time slice.
void Initiator::help_sending(Peer& peer) noexcept {
  poller_.kick();
  const uint32_t before = peer.queue_counts.removed.load(std::memory_order_relaxed);
  if (peer.queue_counts.helped_without_effect_at.load(std::memory_order_relaxed) == before) return;
  for (unsigned i = 0; peer.queue_counts.length.load(std::memory_order_relaxed) > long_queue; ++i) {
    if (i == help_rounds) {
      if (peer.queue_counts.removed.load(std::memory_order_relaxed) == before)
        peer.queue_counts.helped_without_effect_at.store(before, std::memory_order_relaxed);
      return;
    }
    sched_yield();
    poller_.kick();
  }
}

void Initiator::kick_in_process(const Peer& peer) noexcept {
  if (peer.route.in_process_sends == nullptr) return;
  peer.route.in_process_sends->set();
  poller_.kick();
}

// No record of an awaited put is free.
bool Initiator::expect_full_ack(NetworkInterface& interface, Peer& peer, Request& request,
                                Operation** operation) noexcept {
  OperationTable& operations = interface.initiator().operations_;
  *operation = operations.allocate(peer);
  if (*operation == nullptr) return false;
  request.header.cookie = operations.cookie_of(**operation);
  record_operation(interface, request, false, **operation);
  // The answer may arrive before this thread goes on: what it needs is set first.
  (*operation)->send_due = false;
  (*operation)->stage.store(Operation::Stage::sending, std::memory_order_relaxed);
  publish_operation(peer, **operation);
  return true;
}

// The acknowledgement is not awaited after all.
void Initiator::forget_ack(Peer& peer, const Request& request, Operation* operation) noexcept {
  if (operation != nullptr)
    operations_.discard(*operation);
  else if (request.header.asks_for_ack())
    if (!peer.awaited_puts.take_back(request.header.cookie)) peer.count_as_started();
}

// Sends a request in front of which nothing waits. `operation`: nullptr if nothing follows.
SendStatus Initiator::send_first(Peer& peer, const Request& request, bool direct,
                                 Operation* operation) noexcept {
  MemoryDescriptor* const put = request.put.descriptor;
  // The answer may arrive before this thread goes on: what it needs is set first.
  if (operation != nullptr) {
    operation->send_due = direct;
    if (direct) put->pending.fetch_add(1, std::memory_order_relaxed);
    operation->stage.store(Operation::Stage::sending, std::memory_order_relaxed);
    publish_operation(peer, *operation);
  }
  const SendStatus status = send_payload(scratch_, exports_, peer, request, operation);
  if (status != SendStatus::sent) [[unlikely]] {
    if (direct) put->pending.fetch_sub(1, std::memory_order_relaxed);
    return status;
  }
  peer.sent.count(request.header.kind, request.sent_bytes());
  if (operation != nullptr) {
    peer.count_as_started();
    operation->stage.store(Operation::Stage::sent, std::memory_order_release);
  }
  return status;
}

// Sends the request, or queues it if it has to wait. nullopt: no operation is free.
std::optional<SendStatus> Initiator::send_or_queue(NetworkInterface& interface, Peer& peer,
                                                   Request& request, bool direct) noexcept {
  if (peer.failed.load(std::memory_order_relaxed)) [[unlikely]]
    return SendStatus::peer_failed;
  Operation* operation = nullptr;
  if (request.has_answer() || direct) {
    operation = operations_.allocate(peer);
    if (operation == nullptr) return std::nullopt;
    request.header.cookie = operations_.cookie_of(*operation);
    record_operation(interface, request, direct, *operation);
  }
  SendStatus status = SendStatus::queue_full;
  if (peer.queue.head == nullptr && !has_to_wait(peer, request.header) &&
      !SendQueues::is_stopped(peer, request.header)) [[likely]]
    status = send_first(peer, request, direct, operation);
  if (status == SendStatus::queue_full || status == SendStatus::connecting) {
    if (operation == nullptr) {
      operation = operations_.allocate(peer);
      if (operation == nullptr) return std::nullopt;
      record_operation(interface, request, direct, *operation);
    }
    operation->send_due = request.put.descriptor != nullptr;
    queue(peer, *operation);
  } else if (status != SendStatus::sent && operation != nullptr) {
    if (MemoryDescriptor* const get = request.get.descriptor; get != nullptr)
      get->pending.fetch_sub(1, std::memory_order_relaxed);
    operations_.discard(*operation);
  }
  return status;
}

// All other requests: any kind, payload that does not travel with the header, queueing, failures.
// False: no operation is free, and nothing was done.
bool Initiator::start_if_possible(NetworkInterface& interface, Peer& peer,
                                  Request& request) noexcept {
  MemoryDescriptor* const put = request.put.descriptor;
  bool direct = false;  // the target fetches the payload or asks for it
  switch (protocol_of(peer.route.transport->capabilities(), request)) {
    case Protocol::eager:
      break;
    case Protocol::unreliable_put:
      request.header.flags |= flag_unreliable;
      break;
    case Protocol::direct_put:
      direct = true;
      [[fallthrough]];
    case Protocol::direct_get:
      request.header.flags |= flag_remote_memory;
      if (!direct && !has_host_memory(request)) request.header.modes |= get_in_windows;
      break;
  }
  // As in start_eager_put().
  const bool reports_send = !direct && put != nullptr && put->reports_send();
  std::optional<SendStatus> status;
  {
    const LockGuard guard(peer.send_lock);
    status = send_or_queue(interface, peer, request, direct);
  }
  if (!status) return false;
  switch (*status) {
    case SendStatus::sent:
      if (reports_send) report_send(*put, request.user_ptr, whole_result(request));
      kick_in_process(peer);
      break;
    case SendStatus::queue_full:
    case SendStatus::connecting:
      help_sending(peer);
      break;
    case SendStatus::inaccessible:
      explain_fault(request);
      [[fallthrough]];
    case SendStatus::peer_failed:
      report_local_failure(
          request, *status == SendStatus::inaccessible ? PTL_NI_SEGV : PTL_NI_UNDELIVERABLE);
      break;
  }
  return true;
}

// While operations end, one becomes free soon. But the only peer may be a process that is stopped,
// and the call does not block (spec 2.9). False: none has ended for longest_stall_ns, or PtlAbort
// was called.
bool Initiator::await_operation() noexcept {
  constexpr uint64_t look_interval_ns = 1'000'000;
  const auto one_is_free = [&] { return operations_.reclaim(peers_.all()); };
  uint64_t progress = progress_of(peers_.all());
  if (last_vain_wait.at == this && last_vain_wait.progress == progress) return one_is_free();
  uint64_t stalled_ns = 0;
  uint64_t before = now_ns();
  while (!wait_until(poller_, wait_policy_, one_is_free, before + look_interval_ns)) {
    if (portals_aborted.load(std::memory_order_acquire)) return false;
    const uint64_t now = now_ns();
    // If this process itself was stopped, or had no processor, its peers may have been, too.
    stalled_ns += std::min(now - before, 10 * look_interval_ns);
    before = now;
    if (const uint64_t latest = progress_of(peers_.all()); latest != progress) {
      progress = latest;
      stalled_ns = 0;
    } else if (stalled_ns >= longest_stall_ns) {
      last_vain_wait = {this, progress};
      log_message(LogLevel::warn,
                  "as many operations are outstanding as there may be, and none has ended for two "
                  "seconds: further ones end as PTL_NI_UNDELIVERABLE until one does");
      return false;
    }
  }
  return true;
}

void report_local_failure(const Request& request, ptl_ni_fail_t fail) noexcept {
  const MessageHeader& header = request.header;
  MemoryDescriptor* const get = request.get.descriptor;
  // The descriptor is in use until its own event, whatever the other descriptor reports.
  if (get != nullptr) get->pending.fetch_add(1, std::memory_order_relaxed);
  if (MemoryDescriptor* const put = request.put.descriptor; put != nullptr)
    report_unsent_put(*put, request, fail);
  if (get == nullptr) return;
  get->pending.fetch_sub(1, std::memory_order_release);
  report_reply(*get, request, {0, header.remote_offset, PTL_PRIORITY_LIST, fail});
}

int Initiator::start_in_general(NetworkInterface& interface, Peer& peer,
                                Request& request) noexcept {
  const LongCall call(interface_index_of(interface.handle()));
  // A triggered operation is started by a thread that may hold the poll token.
  if (peer.diverts.load(std::memory_order_relaxed) && !trigger_work.running &&
      SendQueues::has_too_many(peer, request.header)) [[unlikely]] {
    poller_.kick();
    return PTL_NO_SPACE;
  }
  while (!start_if_possible(interface, peer, request)) {
    if (trigger_work.running || !await_operation()) {
      report_local_failure(request, PTL_NI_UNDELIVERABLE);
      break;
    }
  }
  return PTL_OK;
}

int Initiator::start_to_another(NetworkInterface& interface, MemoryDescriptor& descriptor,
                                ProcessId target, Request& request) noexcept {
  const LongCall call(interface_index_of(interface.handle()));
  Peer* const peer = peers_.find_or_connect(target);
  if (peer == nullptr) {
    report_local_failure(request, PTL_NI_UNDELIVERABLE);
    return PTL_OK;
  }
  descriptor.recent_peer.store(peer, std::memory_order_release);
  return start_to(interface, *peer, request);
}

bool Initiator::send_queued(Peer& peer, Operation& operation) noexcept {
  const std::byte* copy = operations_.copy_of(operation);
  const bool answered = operation.answer_due || operation.direct;
  // As in send_first(): the answer may arrive before this thread goes on.
  if (!operation.direct) operation.send_due = false;
  const SendStatus status = send_payload(scratch_, exports_, peer, operation, &operation, copy);
  if (status == SendStatus::sent) {
    peer.sent.count(operation.header.kind, operation.sent_bytes());
    operation.stage.store(Operation::Stage::sent, std::memory_order_release);
    if (answered) peer.count_as_started();
    return true;
  }
  operation.send_due = operation.put.descriptor != nullptr;
  if (status == SendStatus::inaccessible) {
    operation.fault = PTL_NI_SEGV;
    explain_fault(operation);
  }
  if (status == SendStatus::peer_failed) operation.fault = PTL_NI_UNDELIVERABLE;
  return status != SendStatus::queue_full && status != SendStatus::connecting;
}

void Initiator::report_queued_send(Operation& operation) noexcept {
  if (operation.fault != PTL_NI_OK) return fail_unsent(operation, operation.fault);
  MemoryDescriptor* const put = operation.put.descriptor;
  // A direct operation reports when the target has taken its data.
  if (operation.direct || put == nullptr) return;
  const bool ends_here = !operation.answer_due;
  // The thread that sees the event may release the descriptor at once.
  put->pending.fetch_sub(1, std::memory_order_release);
  report_send(*put, operation.user_ptr, whole_result(operation));
  if (ends_here) operations_.discard(operation);
}

void Initiator::fail_unsent(Operation& operation, ptl_ni_fail_t fail) noexcept {
  for (MemoryDescriptor* const used : {operation.put.descriptor, operation.get.descriptor})
    if (used != nullptr) used->pending.fetch_sub(1, std::memory_order_release);
  report_local_failure(operation, fail);
  operations_.discard(operation);
}

void Initiator::drop_all_of(NetworkInterface& interface) noexcept {
  for (Peer& peer : peers_.all()) {
    {
      const LockGuard guard(peer.send_lock);
      queues_.drop_all_of(peer, interface);
    }
    peer.awaited_puts.disown_if(
        [&](const AwaitedPuts::Record& put) {
          return interface.descriptors().owns(&put.descriptor());
        },
        gone_);
  }
  answers_.drop_all_of(interface);
  for (Peer& peer : peers_.all()) operations_.return_ended(peer);
}

}  // namespace lintel
