/* messages.cc: dispatch, progress, records with credits. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/messages.h"

#include <algorithm>

#include "am/handlers.h"
#include "am/token.h"
#include "client/client.h"
#include "endpoint/endpoint.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/thread.h"
#include "network/poll.h"
#include "segment/segment.h"
#include "trace/trace.h"

namespace lintel::gasnet {
namespace {

constexpr unsigned int kPollsBetweenProgress = 16;
constexpr unsigned int kSpareEvents = 16;
constexpr unsigned int kNearAtOnce = 16;
static_assert(sizeof(NearRings) <= kNearBytes);

Messages* g_messages = nullptr;

/** Blocks with room for a reply of the largest size for each credit. A block wastes less than a
 * slot at its end. Two more blocks: one is partly handled and one partly filled. */
unsigned int reply_blocks(const MessageSettings& settings) {
  const size_t used = settings.block_bytes - kSlotBytes;
  return static_cast<unsigned int>((settings.credits * kSlotBytes + used - 1) / used + 2);
}

uint64_t read_setting(const char* name, uint64_t standard, uint64_t least, uint64_t most,
                      uint64_t unit) {
  const int64_t value = gasnett_getenv_int_withdefault(name, static_cast<int64_t>(standard), unit);
  if (value < 0 || static_cast<uint64_t>(value) < least || static_cast<uint64_t>(value) > most)
    gasnett_fatalerror_nopos("%s=%lld: give %llu to %llu", name, static_cast<long long>(value),
                             static_cast<unsigned long long>(least),
                             static_cast<unsigned long long>(most));
  return static_cast<uint64_t>(value);
}

PutFields fields_of(const ptl_event_t& event) {
  return {event.match_bits, event.hdr_data, event.remote_offset, event.mlength};
}

/** Ends the program if the message cannot be one of this library. */
void check_arrival(gex_Rank_t source, const PutFields& fields) {
  if (source < job().size() && is_sound(fields)) return;
  gasnett_fatalerror_nopos(
      "rank %u has sent a message that cannot be read (header 0x%llx, %zu bytes)", source,
      static_cast<unsigned long long>(fields.match_bits), fields.payload_bytes);
}

void check_near(gex_Rank_t source, const PutFields& fields) {
  check_arrival(source, fields);
  if (fields.payload_bytes > sizeof NearSlot::payload || kind_of(fields) == MessageKind::kLongApart)
    gasnett_fatalerror_nopos("rank %u has sent %zu bytes through shared memory", source,
                             fields.payload_bytes);
}

/** Ends the program if the destination of a Long is outside of the segment. */
void check_place(gex_Rank_t source, const MessageHeader& header) {
  ptl_size_t offset = 0;
  if (header.data_bytes == 0 ||
      segment_table().offset_of(job().rank(), 0, header.address, header.data_bytes, &offset))
    return;
  gasnett_fatalerror_nopos(
      "rank %u has sent a Long of %zu bytes to %p, which is not in the segment", source,
      header.data_bytes, header.address);
}

/** Runs the handler of a message. @return whether it has replied. */
bool run_handler(gex_Rank_t source, const PutFields& fields, void* payload, bool is_request,
                 uint32_t* credits) {
  MessageHeader header;
  gex_AM_Arg_t arguments[GASNETI_AM_MAX_ARGS];
  char* data = decode(fields, static_cast<char*>(payload), &header, arguments);
  *credits = header.credits;
  if (header.kind == MessageKind::kCredits) return true;
  gasneti_token token;
  token.source = source;
  token.endpoint = the_client()->endpoint(0);
  token.entry = &handler_of(*token.endpoint, header.handler);
  token.is_request = is_request;
  token.is_long = is_long(header.kind);
  if (token.is_long) {
    check_place(source, header);
    if (header.kind == MessageKind::kLong && header.data_bytes != 0)
      std::memcpy(header.address, data, header.data_bytes);
    data = static_cast<char*>(header.address);
  }
  LINTEL_GASNET_TRACE('A', "%s from %u, handler %u, %zu bytes, %u arguments",
                      is_request ? "request" : "reply", token.source, header.handler,
                      header.data_bytes, header.arguments);
  ThreadState& thread = this_thread();
  (is_request ? thread.in_request : thread.in_reply) = true;
  if (header.kind == MessageKind::kShort)
    call_short(token.entry->gex_fnptr, &token, arguments, header.arguments);
  else
    call_with_data(token.entry->gex_fnptr, &token, data, header.data_bytes, arguments,
                   header.arguments);
  (is_request ? thread.in_request : thread.in_reply) = false;
  check_end_of_handler(header.handler);
  return token.has_replied;
}

}  // namespace

MessageSettings MessageSettings::read() {
  MessageSettings settings;
  settings.credits =
      static_cast<uint32_t>(read_setting("GASNET_AM_CREDITS", 128, 1, kLargestCredits, 0));
  settings.request_events =
      static_cast<uint32_t>(read_setting("GASNET_AM_REQUEST_EVENTS", 1024, 4, 1 << 20, 0));
  settings.request_blocks =
      static_cast<unsigned int>(read_setting("GASNET_AM_REQUEST_BLOCKS", 4, 1, 1 << 16, 0));
  settings.block_bytes =
      read_setting("GASNET_AM_BLOCK_SIZE", 256 << 10, 2 * kSlotBytes, uint64_t{1} << 30, 1);
  return settings;
}

Messages::Messages(const MessageSettings& settings)
    : outbox_(4 * settings.credits),
      requests_(PortalIndex::kRequest, 2 * settings.credits),
      replies_(PortalIndex::kReply, 2 * settings.credits),
      credits_(settings.credits),
      returns_(job().size(), std::clamp(settings.credits / 4, 1u, 64u)),
      request_inbox_(PortalIndex::kRequest, settings.request_events, settings.request_blocks,
                     settings.block_bytes, handle_request_event),
      reply_inbox_(PortalIndex::kReply, settings.credits + kSpareEvents, reply_blocks(settings),
                   settings.block_bytes, handle_reply_event),
      long_data_(settings.request_events),
      own_rings_(static_cast<NearRings*>(neighbourhood().near_memory(neighbourhood().index()))),
      near_first_(neighbourhood().ranks().front()),
      near_rings_(neighbourhood().ranks().back() - near_first_ + 1) {
  for (gex_Rank_t member = 0; member < neighbourhood().count(); ++member)
    near_rings_[neighbourhood().ranks()[member] - near_first_] =
        static_cast<NearRings*>(neighbourhood().near_memory(member));
}

void Messages::handle_request_event(const ptl_event_t& event) {
  g_messages->handle(event.initiator.rank, true, fields_of(event), event.start);
}

void Messages::handle_reply_event(const ptl_event_t& event) {
  g_messages->handle(event.initiator.rank, false, fields_of(event), event.start);
}

void Messages::handle(gex_Rank_t source, bool is_request, const PutFields& fields, void* payload) {
  check_arrival(source, fields);
  if (kind_of(fields) == MessageKind::kLongApart) {
    const uint64_t operation = operation_of(static_cast<const char*>(payload));
    if (!long_data_.is_complete(source, operation, is_request, fields, payload)) return;
  }
  if (is_request)
    handle_request(source, fields, payload);
  else
    handle_reply(source, fields, payload);
}

unsigned int Messages::poll_long_data() {
  return long_data_.poll([this](WaitingMessage& message) {
    if (message.is_request)
      handle_request(message.source, message.fields, message.payload);
    else
      handle_reply(message.source, message.fields, message.payload);
  });
}

void Messages::handle_request(gex_Rank_t source, const PutFields& fields, void* payload) {
  uint32_t credits = 0;
  const bool has_replied = run_handler(source, fields, payload, true, &credits);
  if (credits != 0) credits_.give_back(credits);
  if (!has_replied && returns_.add(source)) send_credits();
}

void Messages::handle_reply(gex_Rank_t source, const PutFields& fields, void* payload) {
  uint32_t credits = 0;
  run_handler(source, fields, payload, false, &credits);
  // After the handler: the data of the message occupy room until here.
  credits_.give_back(credits);
}

unsigned int Messages::poll_near() {
  unsigned int done = 0;
  const auto poll_ring = [&](auto& ring, bool is_request) {
    const auto handle_slot = [&](NearSlot& slot) {
      // The sender could change the slot at the same time, so its fields are read once.
      const gex_Rank_t source = slot.source;
      const PutFields fields = slot.fields;
      check_near(source, fields);
      if (is_request)
        handle_request(source, fields, slot.payload);
      else
        handle_reply(source, fields, slot.payload);
    };
    while (done < kNearAtOnce && ring.pop(handle_slot)) ++done;
  };
  poll_ring(own_rings_->replies, false);
  poll_ring(own_rings_->requests, true);
  return done;
}

bool Messages::post_near(SendRecord& record) {
  NearRings* const rings = near_rings_of(record.target);
  if (!rings) return false;
  if (record.data || record.fields.payload_bytes > sizeof NearSlot::payload) return false;
  const auto write = [&record](NearSlot& slot) {
    slot.fields = record.fields;
    slot.source = job().rank();
    std::memcpy(slot.payload, record.buffer, record.fields.payload_bytes);
  };
  return record.pool == &requests_ ? rings->requests.push(write) : rings->replies.push(write);
}

bool Messages::send_short_near(gex_Rank_t target, bool is_reply, gex_AM_Index_t handler,
                               unsigned int numargs, const gex_AM_Arg_t* arguments) {
  NearRings* const rings = near_rings_of(target);
  if (!rings || numargs > kArgumentsInFields) return false;
  if (!is_reply && !credits_.try_take()) return false;
  MessageHeader header;
  header.handler = handler;
  header.arguments = numargs;
  header.credits = is_reply ? 1 : 0;
  const auto write = [&](NearSlot& slot) {
    header.credits += returns_.take(target, kLargestCredits - header.credits);
    slot.fields = encode(header, arguments, slot.payload);
    slot.source = job().rank();
  };
  const bool is_sent = is_reply ? rings->replies.push(write) : rings->requests.push(write);
  if (!is_sent && !is_reply) credits_.give_back(1);
  return is_sent;
}

unsigned int Messages::poll() {
  const unsigned int polls = polls_.load(std::memory_order_relaxed) + 1;
  polls_.store(polls, std::memory_order_relaxed);
  unsigned int done = poll_near();
  if (done != 0 && polls % kPollsBetweenProgress != 0) return done;
  done += reply_inbox_.poll();
  done += request_inbox_.poll();
  const bool is_due = polls % kPollsBetweenProgress == 0;
  if (is_due || long_data_.is_awaited()) done += poll_long_data();
  if (done != 0 && !is_due) return done;
  done += outbox_.progress();
  while (!returns_.is_empty() && send_credits()) ++done;
  return done;
}

bool Messages::send_credits() {
  SendRecord* const record = replies_.take();
  if (!record) return false;
  gex_Rank_t rank = 0;
  while (returns_.next(&rank)) {
    MessageHeader header;
    header.kind = MessageKind::kCredits;
    header.credits = returns_.take(rank, kLargestCredits);
    if (header.credits == 0) continue;
    post(record, rank, header, nullptr);
    return true;
  }
  replies_.give_back(record);
  return false;
}

SendRecord* Messages::request_record(gex_Flags_t flags) {
  for (;;) {
    if (credits_.try_take()) {
      SendRecord* const record = requests_.take();
      if (record) return record;
      credits_.give_back(1);
    }
    if (flags & GEX_FLAG_IMMEDIATE) return nullptr;
    const unsigned int done = outbox_.progress();
    wait_hint(done + gasnet::poll());
  }
}

SendRecord* Messages::reply_record(gex_Flags_t flags) {
  for (;;) {
    SendRecord* const record = replies_.take();
    if (record || flags & GEX_FLAG_IMMEDIATE) return record;
    wait_hint(outbox_.progress());
  }
}

void Messages::cancel(SendRecord* record) {
  if (record->pool == &requests_) credits_.give_back(1);
  record->pool->give_back(record);
}

void Messages::post(SendRecord* record, gex_Rank_t target, MessageHeader header,
                    const gex_AM_Arg_t* arguments) {
  header.credits += returns_.take(target, kLargestCredits - header.credits);
  record->target = target;
  record->fields = encode(header, arguments, record->buffer);
  if (post_near(*record))
    record->pool->give_back(record);
  else
    outbox_.post(record);
}

bool Messages::is_quiet() {
  outbox_.progress();
  return requests_.are_all_free() && replies_.are_all_free();
}

void Messages::wait_for(const std::atomic<bool>& source_is_free) {
  while (!source_is_free.load(std::memory_order_acquire)) {
    const unsigned int done = outbox_.progress();
    if (!source_is_free.load(std::memory_order_acquire)) wait_hint(done + gasnet::poll());
  }
}

Messages& messages() { return *g_messages; }

void start_messages() {
  g_messages = new Messages(MessageSettings::read());
  add_poll_function([] { return g_messages->poll(); });
  add_quiet_function([] { return g_messages->is_quiet(); });
  if (neighbourhood().count() > 1) set_quick_look([] { return g_messages->has_near_message(); });
}

}  // namespace lintel::gasnet
