/* outbox.cc: puts, acknowledgements, refusals. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/outbox.h"

#include <portals4_lintel.h>

#include <algorithm>
#include <cstdlib>

namespace lintel::gasnet {
namespace {

constexpr int kEventsAtOnce = 32;
constexpr uint64_t kFirstDelayNs = 2'000;
constexpr unsigned int kLargestShift = 8; /* the largest delay is half a millisecond */

}  // namespace

Outbox::Outbox(uint32_t records) {
  // Each record has at most two puts under way.
  queue_ = network().new_queue(2 * records + 16);
  ptl_md_t md{};
  md.length = PTL_SIZE_MAX;
  md.options = PTL_MD_EVENT_SEND_DISABLE;
  md.eq_handle = queue_;
  md.ct_handle = PTL_CT_NONE;
  memory_ = network().bind(md);
  refused_.reserve(records);
}

void Outbox::post(SendRecord* record) {
  gasneti_assert(record->puts.load(std::memory_order_relaxed) == 0);
  const bool has_data = record->data != nullptr;
  record->message_attempts.refusals = 0;
  record->data_attempts.refusals = 0;
  record->puts.store(has_data ? 2 : 1, std::memory_order_relaxed);
  if (has_data) put_data(record);
  put_message(record);
}

void Outbox::put_data(SendRecord* record) {
  // Bit 0 marks the acknowledgement of the data; that of the message has bit 0 clear.
  void* const user_ptr = reinterpret_cast<char*>(record) + 1;
  check(PtlPut(memory_, reinterpret_cast<uintptr_t>(record->data), record->data_bytes, PTL_ACK_REQ,
               process_of(record->target), number_of(PortalIndex::kLongData), 0,
               record->data_offset, user_ptr, record->operation),
        "PtlPut");
}

void Outbox::put_message(SendRecord* record) {
  const PutFields& fields = record->fields;
  check(PtlPut(memory_, reinterpret_cast<uintptr_t>(record->buffer), fields.payload_bytes,
               PTL_ACK_REQ, process_of(record->target), number_of(record->pool->index()),
               fields.match_bits, fields.remote_offset, record, fields.hdr_data),
        "PtlPut");
}

void Outbox::put_again(const Refused& refused) {
  if (refused.is_data)
    put_data(refused.record);
  else
    put_message(refused.record);
}

unsigned int Outbox::progress() {
  unsigned int done = 0;
  ptl_event_t event;
  for (int i = 0; i < kEventsAtOnce; ++i) {
    const int code = PtlEQGet(queue_, &event);
    if (code == PTL_EQ_EMPTY) break;
    check(code, "PtlEQGet");
    const auto word = reinterpret_cast<uintptr_t>(event.user_ptr);
    const bool is_data = (word & 1) != 0;
    auto* const record = static_cast<char*>(event.user_ptr) - (is_data ? 1 : 0);
    acknowledged(reinterpret_cast<SendRecord*>(record), is_data, event.ni_fail_type);
    ++done;
  }
  if (waiting_.load(std::memory_order_relaxed) != 0) done += send_refused_again();
  return done;
}

void Outbox::acknowledged(SendRecord* record, bool is_data, ptl_ni_fail_t result) {
  gasneti_assert(record->puts.load(std::memory_order_relaxed) != 0);
  gasneti_assert(!is_data || record->data != nullptr);
  if (result == PTL_NI_PT_DISABLED) {
    refusals_.fetch_add(1, std::memory_order_relaxed);
    const Refused refused{record, is_data};
    Attempts& attempts = refused.attempts();
    const unsigned int shift = std::min(attempts.refusals++, kLargestShift);
    attempts.send_again_at = gasnett_ticks_now() + (kFirstDelayNs << shift);
    const LockGuard lock(mutex_);
    refused_.push_back(refused);
    waiting_.store(refused_.size(), std::memory_order_relaxed);
    return;
  }
  // The death watch ends the job when a process of it has died.
  if (result != PTL_NI_OK && result != PTL_NI_UNDELIVERABLE)
    gasnett_fatalerror_nopos(
        "rank %u refuses %s: %s", record->target,
        is_data ? "the data of a Long: they belong outside its segment" : "a message",
        PtlToStr(result, PTL_STR_FAIL_TYPE));
  if (is_data) data_have_arrived(record);
  if (record->puts.fetch_sub(1, std::memory_order_acq_rel) == 1) record->pool->give_back(record);
}

void Outbox::data_have_arrived(SendRecord* record) {
  record->data = nullptr;
  std::free(record->data_copy);
  record->data_copy = nullptr;
  if (record->source_is_free) record->source_is_free->store(true, std::memory_order_release);
  record->source_is_free = nullptr;
}

unsigned int Outbox::send_refused_again() {
  if (!mutex_.try_lock()) return 0;
  const LockGuard lock(mutex_, std::adopt_lock);
  gasneti_assert(waiting_.load(std::memory_order_relaxed) == refused_.size());
  const gasnett_tick_t now = gasnett_ticks_now();
  const auto due = std::partition(refused_.begin(), refused_.end(), [now](const Refused& refused) {
    return refused.attempts().send_again_at > now;
  });
  const auto done = static_cast<unsigned int>(refused_.end() - due);
  std::for_each(due, refused_.end(), [this](const Refused& refused) { put_again(refused); });
  refused_.erase(due, refused_.end());
  waiting_.store(refused_.size(), std::memory_order_relaxed);
  return done;
}

}  // namespace lintel::gasnet
