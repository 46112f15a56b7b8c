#include "core/operations/refused_requests.h"

#include <cinttypes>
#include <iterator>

#include "util/assert.h"
#include "util/clock.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

constexpr RefusalText texts[] = {
    {"no interface", "the process has no such interface open (spec 3.6.2, 4.2.2)"},
    {"malformed", "the message is malformed (spec 4.2)"},
    {"no portal table entry", "the portal table entry is not allocated (spec 3.7.1)"},
    {"disabled", "the portal table entry is disabled (spec 2.8, 3.7.3)"},
    {"no match", "no entry of the priority or overflow list accepts it (spec 2.5, 3.12)"},
    {"no unexpected header",
     "max_unexpected_headers of this peer, or all, are in use (spec 2.8, 3.6.1)"},
    {"no event slot", "the event queue of the portal table entry is full (spec 2.8)"},
    {"no transfer", "too many long messages are under way (spec 2.8)"},
    {"user", "the entry that matched is for another uid (spec 3.11.1, 3.12.1)"},
    {"operation",
     "the entry that matched lacks PTL_ME_OP_PUT or PTL_ME_OP_GET (spec 3.11.1, 3.12.1)"},
};
static_assert(std::size(texts) == PTL_LINTEL_DROP_REASONS);

}  // namespace

const RefusalText& refusal_text(Refusal reason) noexcept {
  LINTEL_ASSERT(reason < PTL_LINTEL_DROP_REASONS);
  return texts[reason];
}

uint64_t refusal_word(Refusal reason, MessageKind kind) noexcept {
  return static_cast<uint64_t>(reason) << 8 | static_cast<uint8_t>(kind);
}

void RefusedRequests::note(Refusal reason, ProcessId initiator,
                           const MessageHeader& request) noexcept {
  LINTEL_ASSERT(reason < PTL_LINTEL_DROP_REASONS);
  counts_[reason].increment();
  if (!log_enabled(LogLevel::debug) || !is_due(reason, initiator, true)) return;
  log_message(LogLevel::debug,
              "dropped a %s of %" PRIu64 " bytes from %s: %s: pt_index %u, match bits 0x%" PRIx64
              ", offset %" PRIu64,
              kind_name(request.kind), request.length(),
              ProcessText(initiator.nid, initiator.pid).c_str(), refusal_text(reason).text,
              request.pt_index, request.match_bits, request.remote_offset);
}

void RefusedRequests::note_answer(ProcessId target, const MessageHeader& answer) noexcept {
  const uint64_t reason = answer.hdr_data >> 8;
  if (reason >= PTL_LINTEL_DROP_REASONS || !log_enabled(LogLevel::debug) ||
      !is_due(static_cast<unsigned>(reason), target, false))
    return;
  log_message(LogLevel::debug,
              "%s dropped a %s of this process: %s: pt_index %u, match bits 0x%" PRIx64,
              ProcessText(target.nid, target.pid).c_str(),
              kind_name(static_cast<MessageKind>(answer.hdr_data & 0xff)), texts[reason].text,
              answer.pt_index, answer.match_bits);
}

bool RefusedRequests::is_due(unsigned reason, ProcessId peer, bool at_target) noexcept {
  constexpr uint64_t spread = 0x9e3779b97f4a7c15;  // an odd number with bits all over
  const uint64_t process = uint64_t{peer.nid} << 32 | peer.pid;
  const uint64_t key = process * spread + (uint64_t{reason} << 1 | (at_target ? 1 : 0)) + 1;
  return said_.is_due(key != 0 ? key : 1, now_ns());
}

}  // namespace lintel
