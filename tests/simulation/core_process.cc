#include "simulation/core_process.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/resolve.h"
#include "core/library/library.h"
#include "core/matching/keyed_hash.h"
#include "portals4_lintel.h"
#include "simulation/repeatable_random.h"
#include "simulation/virtual_time.h"
#include "util/random.h"

namespace lintel::simulation {

namespace {

constexpr ptl_pt_index_t portal_of_puts = 0;
constexpr ptl_pt_index_t portal_of_gets = 1;
constexpr ptl_pt_index_t portal_of_counter = 2;
constexpr size_t most_expected = 8;
constexpr size_t overflow_entries = 3;
constexpr uint64_t overflow_bytes = 16 << 20;
constexpr uint64_t slots = 32;                           // gets and fetches in progress
constexpr unsigned most_outstanding = 48;                // operations to each peer
constexpr unsigned number_bits = 32;                     // in hdr_data, below the stream
constexpr unsigned counter_bits = 32;                    // below the number of the start
constexpr uint64_t connect_pause_ns = 10 * millisecond;  // after a failure
constexpr unsigned most_looks = 1000;
constexpr uint64_t never = UINT64_MAX;

// The result of the next call of open_transports() below, which is a function without state.
std::unique_ptr<ReliableTransport> next_transport;
uint32_t next_process = 0;

OpenedTransports open_transports(uint32_t, uint32_t) {
  OpenedTransports opened;
  opened.transports.push_back(std::move(next_transport));
  opened.id = id_of(next_process);
  opened.status = OpenStatus::opened;
  return opened;
}

// PtlCTGet would poll now and then. It decides that by a counter of its thread, which would differ
// from run to run.
ptl_ct_event_t value_of(ptl_handle_ct_t counter) noexcept {
  return api::resolve_counter(counter).counter->get();
}

void* name(uint64_t number) noexcept { return reinterpret_cast<void*>(number); }
uint64_t number_of(const void* name) noexcept { return reinterpret_cast<uint64_t>(name); }

}  // namespace

void CoreProcess::set_up() {
  static const bool once = [] {
    setenv("PTL_PROGRESS", "caller", 1);
    setenv("PTL_LOG_LEVEL", "error", 1);
    // These parts of the waiting policy measure how long yields take.
    setenv("PTL_WAIT_WITHOUT", "crowding,long_turns,rests,placement", 1);
    reseed_random(0);
    if (initialize_library() != PTL_OK) throw std::runtime_error("PtlInit failed");
    static_cast<void>(keyed_hash_seed());
    return true;
  }();
  static_cast<void>(once);
}

CoreProcess::CoreProcess(Network& network, Record& record, uint32_t number,
                         const ProcessShape& shape)
    : SimulatedProcess(network, record, number, shape),
      dice_(random_u64()),
      holds_(dice_.happens(0.5)) {
  CoreProcess::start();
}

CoreProcess::~CoreProcess() {
  if (is_running()) CoreProcess::end(false);
}

void CoreProcess::require(int code, const char* what) {
  if (code != PTL_OK)
    record_.add_problem("process " + std::to_string(number_) + ": " + what + " returns " +
                        std::to_string(code));
}

void CoreProcess::start() {
  next_transport = open_transport();
  next_process = number_;
  if (open_interface(number_, slot_matching, id_of(number_).pid, nullptr, open_transports,
                     &interface_) != PTL_OK)
    throw std::runtime_error("no interface");
  ++starts_;
  armed_ = false;
  make_objects();
}

void CoreProcess::make_objects() {
  require(PtlEQAlloc(handle(), 1 << 13, &events_), "PtlEQAlloc");
  auto* source = const_cast<std::byte*>(all_payloads());
  if (on_device()) {
    payloads_ = Memory(all_payload_bytes, true);
    std::memcpy(payloads_.view(), source, all_payload_bytes);
    source = payloads_.start();
  }
  into_ = Memory(slots * longest_payload, on_device());
  ptl_md_t md{source, all_payload_bytes, 0, events_, PTL_CT_NONE};
  require(PtlMDBind(handle(), &md, &source_), "PtlMDBind");
  md.start = into_.start();
  md.length = slots * longest_payload;
  require(PtlMDBind(handle(), &md, &sink_), "PtlMDBind");
  for (uint64_t slot = 0; slot < slots; ++slot) free_slots_.push_back(slot);
  for (const ptl_pt_index_t wanted : {portal_of_puts, portal_of_gets, portal_of_counter}) {
    ptl_pt_index_t index;
    const unsigned options = holds_ && wanted == portal_of_puts ? PTL_LINTEL_PT_HOLD : 0;
    require(PtlPTAlloc(handle(), options, events_, wanted, &index), "PtlPTAlloc");
  }
  if (!holds_)
    for (size_t i = 0; i < overflow_entries; ++i) append_overflow();
  append_expected();
  exposed_ = append(portal_of_gets, PTL_PRIORITY_LIST, source, all_payload_bytes,
                    PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, 0, 0);
  const uint64_t first = uint64_t{starts_} << counter_bits;
  counter_ = Memory(sizeof first, on_device());
  std::memcpy(counter_.view(), &first, sizeof first);
  counted_ = append(portal_of_counter, PTL_PRIORITY_LIST, counter_.start(), sizeof first,
                    PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, 0, 0);
}

CoreProcess::Entry CoreProcess::append(ptl_pt_index_t portal, ptl_list_t list, void* memory,
                                       uint64_t length, unsigned options, uint64_t min_free,
                                       uint64_t number) {
  Entry entry;
  ptl_me_t me{};
  if (memory == nullptr) {
    entry.memory = Memory(length, on_device());
    memory = entry.memory.start();
  }
  me.start = memory;
  me.length = length;
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = options | PTL_ME_EVENT_LINK_DISABLE;
  me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  me.min_free = min_free;
  require(PtlMEAppend(handle(), portal, &me, list, name(number), &entry.handle), "PtlMEAppend");
  return entry;
}

// The number may be lower than that of the messages to come, so some messages find no entry.
void CoreProcess::append_expected() {
  for (uint64_t more = dice_.between(1, most_expected); expected_.size() < more;) {
    const uint64_t number = ++entries_appended_;
    // Inserted before the call, since the event may be posted before it returns.
    Entry& entry = expected_[number];
    entry = append(portal_of_puts, PTL_PRIORITY_LIST, nullptr, longest_payload,
                   PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, 0, number);
  }
}

void CoreProcess::append_overflow() {
  const uint64_t number = ++entries_appended_;
  overflow_[number] = append(
      portal_of_puts, PTL_OVERFLOW_LIST, nullptr, holds_ ? 2 * longest_payload : overflow_bytes,
      PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE, longest_payload, number);
}

void CoreProcess::end(bool politely) {
  close_transport(politely);
  {
    const ClosingTime closing;
    require(close_interface(handle()), "PtlNIFini");
  }
  interface_ = nullptr;
  for (const auto& [number, peer] : peers_)
    if (peer.stream != 0) record_.stream(peer.stream).failed = true;
  record_.note_end(number_);
  peers_.clear();
  operations_.clear();
  free_slots_.clear();
  expected_.clear();
  overflow_.clear();
}

void CoreProcess::add(uint32_t to, const OutgoingMessage& message) {
  OutgoingMessage chosen = message;
  // Otherwise the simulation would spend nearly all its time on these.
  if (message.kind == MessageKind::data && dice_.happens(0.9))
    chosen.bytes = static_cast<uint32_t>(dice_.below(2 * ReliableTransport::max_eager_bytes));
  peers_[to].waiting.push_back(chosen);
}

void CoreProcess::give_up(uint32_t peer) { peers_[peer].waiting.clear(); }

uint64_t CoreProcess::run() {
  Poller& poller = physical().poller();
  const auto with_token = [&](auto&& action) {
    if (!poller.token().try_acquire()) throw std::logic_error("the poll token is taken");
    action();
    poller.token().release();
  };
  if (armed_) {
    // Like a thread that has slept.
    poller.check_peers_if_due(now_ns());
    poller.wake();
  }
  armed_ = false;
  unsigned work = 0;
  with_token([&] { work = poller.poll_once(); });
  bool busy = take_events() || work != 0;
  busy |= send_waiting();
  append_expected();
  if (holds_ && overflow_.size() < overflow_entries && dice_.happens(0.05)) append_overflow();
  busy |= take_events();
  note_frame_memory();
  const uint64_t soon_ns = virtual_now_ns + shape_.poll_ns;
  if (busy || link_->has_frames()) return soon_ns;
  uint64_t next_ns = never;
  // No thread rings the doorbell, so the sleep need not be announced.
  with_token([&] {
    if (!poller.prepare_sleep()) {
      next_ns = soon_ns;
      return;
    }
    if (const int64_t limit_ns = poller.sleep_limit_ns(); limit_ns >= 0)
      next_ns = std::max(virtual_now_ns + static_cast<uint64_t>(limit_ns), soon_ns);
  });
  armed_ = true;
  for (const auto& [number, peer] : peers_)
    if (!peer.waiting.empty() && peer.outstanding == 0)
      next_ns = std::min(next_ns, std::max(peer.retry_ns, soon_ns));
  return next_ns;
}

bool CoreProcess::send_waiting() {
  bool sent = false;
  for (auto& [to, peer] : peers_) {
    for (unsigned i = 0; i < shape_.messages_per_poll && !peer.waiting.empty(); ++i) {
      if (virtual_now_ns < peer.retry_ns || peer.outstanding >= most_outstanding ||
          free_slots_.empty())
        break;
      const OutgoingMessage message = peer.waiting.front();
      peer.waiting.pop_front();
      start_operation(to, peer, message);
      sent = true;
      // A failure must be processed before the next operation begins.
      static_cast<void>(take_events());
    }
  }
  return sent;
}

uint64_t CoreProcess::begin(Kind kind, uint32_t to, uint32_t bytes) {
  const uint64_t number = ++operations_begun_;
  operations_[number] = {.kind = kind, .to = to, .bytes = bytes};
  ++peers_[to].outstanding;
  return number;
}

void CoreProcess::start_operation(uint32_t to, Peer& peer, const OutgoingMessage& message) {
  ptl_process_t target;
  target.phys = {id_of(to).nid, id_of(to).pid};
  const uint64_t choice = dice_.below(8);
  if (choice >= 2) return put(to, peer, message.bytes);
  const bool gets = choice == 0;
  const uint64_t number = begin(gets ? Kind::get : Kind::fetch, to, gets ? message.bytes : 8);
  Operation& operation = operations_[number];
  const uint64_t slot = free_slots_.back();
  free_slots_.pop_back();
  operation.awaits_reply = true;
  const uint64_t named = number << 8 | slot;
  if (gets) {
    operation.from = dice_.below(all_payload_bytes - longest_payload);
    require(PtlGet(sink_, slot * longest_payload, operation.bytes, target, portal_of_gets, 0,
                   operation.from, name(named)),
            "PtlGet");
  } else {
    static const uint64_t one = 1;
    std::memcpy(into_.view() + slot * longest_payload + 8, &one, sizeof one);
    operation.awaits_send = true;
    require(PtlFetchAtomic(sink_, slot * longest_payload, sink_, slot * longest_payload + 8, 8,
                           target, portal_of_counter, 0, 0, name(named), 0, PTL_SUM, PTL_UINT64_T),
            "PtlFetchAtomic");
  }
}

void CoreProcess::put(uint32_t to, Peer& peer, uint32_t bytes) {
  ptl_process_t target;
  target.phys = {id_of(to).nid, id_of(to).pid};
  if (peer.stream == 0) peer.stream = record_.begin_stream(number_, to);
  const uint64_t message = record_.stream(peer.stream).sent++;
  const auto offset = static_cast<ptl_size_t>(payload_of(peer.stream, message) - all_payloads());
  const ptl_hdr_data_t header = peer.stream << number_bits | message;
  if (dice_.happens(0.5)) {
    const uint64_t number = begin(Kind::put, to, bytes);
    operations_[number].awaits_send = operations_[number].awaits_ack = true;
    require(PtlPut(source_, offset, bytes, PTL_ACK_REQ, target, portal_of_puts, 0, 0,
                   name(number << 8), header),
            "PtlPut");
    return;
  }
  if (peer.counter == PTL_CT_NONE) {
    require(PtlCTAlloc(handle(), &peer.counter), "PtlCTAlloc");
    auto* const source =
        payloads_.start() != nullptr ? payloads_.start() : const_cast<std::byte*>(all_payloads());
    ptl_md_t md{source, all_payload_bytes, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, peer.counter};
    require(PtlMDBind(handle(), &md, &peer.counting), "PtlMDBind");
  }
  ++peer.counted;
  ++peer.outstanding;
  const ptl_ack_req_t ack = dice_.happens(0.5) ? PTL_CT_ACK_REQ : PTL_OC_ACK_REQ;
  if (dice_.happens(0.8)) {
    require(
        PtlPut(peer.counting, offset, bytes, ack, target, portal_of_puts, 0, 0, nullptr, header),
        "PtlPut");
    return;
  }
  // The counter of this peer has reached the threshold, so the put starts at once.
  const ptl_ct_event_t count = value_of(peer.counter);
  require(PtlTriggeredPut(peer.counting, offset, bytes, ack, target, portal_of_puts, 0, 0, nullptr,
                          header, peer.counter, count.success),
          "PtlTriggeredPut");
}

bool CoreProcess::take_events() {
  ptl_event_t event;
  unsigned looks = 0;
  for (;; ++looks) {
    const int code = PtlEQGet(events_, &event);
    if (code == PTL_EQ_EMPTY || looks == most_looks) break;
    require(code, "PtlEQGet");
    if (code != PTL_OK) break;
    take(event);
  }
  for (auto& [to, peer] : peers_)
    if (peer.counter != PTL_CT_NONE) take_counts(to, peer);
  return looks != 0;
}

void CoreProcess::take(const ptl_event_t& event) {
  switch (event.type) {
    case PTL_EVENT_SEND:
    case PTL_EVENT_ACK:
    case PTL_EVENT_REPLY:
      return take_own(event);
    case PTL_EVENT_PUT:
    case PTL_EVENT_PUT_OVERFLOW:
      return take_message(event);
    case PTL_EVENT_AUTO_UNLINK:
      if (!holds_) append_overflow();
      return;
    case PTL_EVENT_AUTO_FREE:
      overflow_.erase(number_of(event.user_ptr));
      return;
    default:
      record_.add_problem("event " + std::to_string(event.type) + " is not expected");
  }
}

void CoreProcess::take_own(const ptl_event_t& event) {
  const uint64_t number = number_of(event.user_ptr) >> 8;
  const uint64_t slot = number_of(event.user_ptr) & 0xff;
  const std::string text = "operation " + std::to_string(number) + " of process " +
                           std::to_string(number_) + ", event " + std::to_string(event.type);
  const auto found = operations_.find(number);
  if (found == operations_.end()) return record_.add_problem(text + ": it has ended");
  Operation& operation = found->second;
  bool& awaited = event.type == PTL_EVENT_SEND  ? operation.awaits_send
                  : event.type == PTL_EVENT_ACK ? operation.awaits_ack
                                                : operation.awaits_reply;
  if (!std::exchange(awaited, false)) return record_.add_problem(text + " is not due");
  const bool failed = event.ni_fail_type != PTL_NI_OK;
  // A process that closes its interface drops messages that still arrive, and answers so.
  const bool may_drop = record_.had_severe_incident(operation.to);
  const bool by_device = event.ni_fail_type == PTL_NI_SEGV && SimulatedDevice::has_failed();
  if (failed && event.ni_fail_type != PTL_NI_UNDELIVERABLE && !by_device &&
      !(may_drop && event.ni_fail_type == PTL_NI_DROPPED))
    record_.add_problem(text + " has failure " + std::to_string(event.ni_fail_type));
  // No other event follows (spec 3.13.3).
  if (failed && event.type == PTL_EVENT_SEND) operation.awaits_ack = false;
  if (by_device)
    lose_message(peers_[operation.to]);
  else if (failed)
    fail(operation.to);
  else if (event.type != PTL_EVENT_SEND)
    check_result(event, operation, slot, text);
  if (!operation.has_ended()) return;
  if (operation.kind != Kind::put) free_slots_.push_back(slot);
  --peers_[operation.to].outstanding;
  operations_.erase(found);
}

void CoreProcess::check_result(const ptl_event_t& event, const Operation& operation, uint64_t slot,
                               const std::string& text) {
  const std::byte* const result = into_.view() + slot * longest_payload;
  if (event.mlength != operation.bytes) {
    record_.add_problem(text + " says " + std::to_string(event.mlength) + " bytes in place of " +
                        std::to_string(operation.bytes));
  } else if (operation.kind == Kind::get) {
    if (std::memcmp(result, all_payloads() + operation.from, operation.bytes) != 0)
      record_.add_problem(text + ": other bytes came");
  } else if (operation.kind == Kind::fetch) {
    Peer& peer = peers_[operation.to];
    uint64_t value;
    std::memcpy(&value, result, sizeof value);
    // A peer answers these in order, so each value is higher than the one before.
    if (value < peer.last_fetched || value >> counter_bits == 0)
      record_.add_problem(text + ": fetched " + std::to_string(value) + " after " +
                          std::to_string(peer.last_fetched));
    peer.last_fetched = value + 1;
    if (!record_.note_fetch(operation.to, value))
      record_.add_problem(text + ": two operations fetched " + std::to_string(value));
  }
}

void CoreProcess::take_message(const ptl_event_t& event) {
  const uint64_t entry = number_of(event.user_ptr);
  const uint64_t stream = event.hdr_data >> number_bits;
  const uint64_t message = event.hdr_data & ((uint64_t{1} << number_bits) - 1);
  const auto found = expected_.find(entry);
  const uint32_t from = process_of({event.initiator.phys.nid, event.initiator.phys.pid});
  const std::string text = "message " + std::to_string(message) + " of stream " +
                           std::to_string(stream) + ", entry " + std::to_string(entry);
  if (found == expected_.end()) return record_.add_problem(text + ": it was not expected");
  if (event.ni_fail_type != PTL_NI_OK) {
    // The sender has failed before all data arrived.
    const bool by_device = event.ni_fail_type == PTL_NI_SEGV && SimulatedDevice::has_failed();
    if (by_device && record_.is_stream(stream)) record_.stream(stream).failed = true;
    if (!by_device && !record_.had_severe_incident(from) && !record_.had_severe_incident(number_))
      record_.add_problem(text + " has failed");
    expected_.erase(found);
    return;
  }
  MessageHeader header{};
  // The events of later messages may come before that of a long one. The order of matching is
  // checked below.
  header.kind = MessageKind::data;
  header.match_bits = message;
  header.hdr_data = stream;
  header.remote_offset = static_cast<uint32_t>(event.rlength);
  record_.note_delivery(number_, header, SimulatedDevice::view_of(event.start),
                        static_cast<uint32_t>(event.mlength));
  Peer& peer = peers_[from];
  if (stream < peer.stream_from)
    record_.add_problem(text + " arrives after one of stream " + std::to_string(peer.stream_from));
  if (stream != peer.stream_from) peer.entries.clear();
  peer.stream_from = stream;
  const auto here = peer.entries.emplace(message, entry).first;
  const auto after = std::next(here);
  if ((here != peer.entries.begin() && std::prev(here)->second > entry) ||
      (after != peer.entries.end() && after->second < entry))
    record_.add_problem(text + " matched in another order than it was sent in");
  expected_.erase(found);
}

void CoreProcess::take_counts(uint32_t to, Peer& peer) {
  const ptl_ct_event_t count = value_of(peer.counter);
  if (count.success < peer.seen.success || count.failure < peer.seen.failure ||
      count.success + count.failure > peer.counted)
    record_.add_problem("process " + std::to_string(number_) + " counts " +
                        std::to_string(count.success) + " and " + std::to_string(count.failure) +
                        " of " + std::to_string(peer.counted));
  const bool failed = count.failure != peer.seen.failure;
  peer.outstanding -=
      static_cast<unsigned>(count.success + count.failure - peer.seen.success - peer.seen.failure);
  peer.seen = count;
  if (!failed) return;
  // A count does not say why.
  if (SimulatedDevice::has_failed())
    lose_message(peer);
  else
    fail(to);
}

void CoreProcess::lose_message(Peer& peer) {
  if (peer.stream != 0) record_.stream(peer.stream).failed = true;
}

void CoreProcess::fail(uint32_t to) {
  record_.note_failure(number_, to);
  Peer& peer = peers_[to];
  if (peer.stream != 0) record_.stream(peer.stream).failed = true;
  peer.stream = 0;
  peer.retry_ns = virtual_now_ns + connect_pause_ns;
}

bool CoreProcess::is_done() {
  return transport_->all_delivered() &&
         std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
           return entry.second.waiting.empty() && entry.second.outstanding == 0;
         });
}

std::string CoreProcess::describe_rest() {
  std::string text;
  for (const auto& [to, peer] : peers_)
    if (!peer.waiting.empty() || peer.outstanding != 0)
      text += "; to process " + std::to_string(to) + ": " + std::to_string(peer.waiting.size()) +
              " wait, " + std::to_string(peer.outstanding) + " have begun, of " +
              std::to_string(peer.counted) + " counts " + std::to_string(peer.seen.success) +
              " and " + std::to_string(peer.seen.failure) + " came";
  for (const auto& [number, operation] : operations_)
    text += "; operation " + std::to_string(number) + " of kind " +
            std::to_string(static_cast<int>(operation.kind));
  return text;
}

void CoreProcess::check_rest() {
  const std::string text = "process " + std::to_string(number_) + " keeps ";
  physical().initiator().operations().for_each(
      [&](lintel::Operation&) { record_.add_problem(text + "an operation"); });
  physical().target().transfers().table().for_each(
      [&](Transfer&) { record_.add_problem(text + "a transfer"); });
  if (interface_->held_queues != 0 && !record_.had_severe_incident(number_) &&
      std::ranges::none_of(
          peers_, [&](const auto& entry) { return record_.had_severe_incident(entry.first); }))
    record_.add_problem(text + "messages that are held");
  require(PtlMDRelease(source_), "PtlMDRelease");
  require(PtlMDRelease(sink_), "PtlMDRelease");
  for (auto& [to, peer] : peers_) {
    if (peer.counter == PTL_CT_NONE) continue;
    require(PtlMDRelease(peer.counting), "PtlMDRelease");
    require(PtlCTFree(peer.counter), "PtlCTFree");
  }
  for (const auto& [number, entry] : expected_) require(PtlMEUnlink(entry.handle), "PtlMEUnlink");
  require(PtlMEUnlink(exposed_.handle), "PtlMEUnlink");
  require(PtlMEUnlink(counted_.handle), "PtlMEUnlink");
  for (const auto& [number, entry] : overflow_) {
    // A full entry has been unlinked automatically.
    const int code = PtlMEUnlink(entry.handle);
    if (code != PTL_IN_USE && code != PTL_ARG_INVALID) require(code, "PtlMEUnlink");
  }
  for (const ptl_pt_index_t portal : {portal_of_puts, portal_of_gets, portal_of_counter})
    require(PtlPTFree(handle(), portal), "PtlPTFree");
  require(PtlEQFree(events_), "PtlEQFree");
}

}  // namespace lintel::simulation
