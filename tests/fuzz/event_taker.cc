// Set-up path.
#include "fuzz/event_taker.h"

#include <cstring>

#include "fuzz/clock.h"
#include "fuzz/history.h"
#include "fuzz/kinds.h"
#include "support/text.h"

namespace lintel::fuzz {

bool EventTaker::take(Queue& queue, bool polls, Taken& taken) const {
  unsigned which = 0;
  const int code = polls ? PtlEQPoll(&queue.handle, 1, 0, &taken.event, &which)
                         : PtlEQGet(queue.handle, &taken.event);
  if (code == PTL_EQ_EMPTY) return false;
  phase_.problems.expect_ok(code, polls ? "PtlEQPoll" : "PtlEQGet");
  taken.taken_ns = now_ns();
  return true;
}

void EventTaker::take_of_thread(int thread, std::size_t most) {
  Queue& queue = phase_.objects.thread_queue(thread);
  const std::lock_guard guard(queue.mutex);
  Taken taken{};
  for (std::size_t i = 0; i < most && take(queue, i % 2 != 0, taken); ++i) {
    queue.log.push_back(taken);
    note_initiator_event(taken);
  }
}

std::size_t EventTaker::take_of_portal(int portal, std::size_t most) {
  Queue& queue = phase_.objects.portal_queue(portal);
  const std::lock_guard guard(queue.mutex);
  Taken taken{};
  for (std::size_t i = 0; i < most && take(queue, i % 2 != 0, taken); ++i) {
    if (taken.event.pt_index >= first_filler) continue;
    queue.log.push_back(taken);
    note_target_event(portal, taken);
  }
  return queue.log.size();
}

void EventTaker::note_initiator_event(const Taken& taken) {
  const ptl_event_t& event = taken.event;
  const uint64_t number = user_number(event);
  if (number == 0 || number > phase_.program.messages.size() ||
      phase_.program.messages[number - 1].endpoint != phase_.endpoint) {
    phase_.problems.add("event of no message: " + test::describe(event));
    return;
  }
  const Message& m = phase_.program.messages[number - 1];
  const Layout& layout = phase_.program.descriptors[m.descriptor].memory;
  MessageSeen& seen = phase_.shared.messages[m.id];
  if (event.type == PTL_EVENT_SEND) {
    ++seen.sends;
    seen.send = event;
    if (event.ni_fail_type != PTL_NI_OK || event.mlength != m.length)
      phase_.problems.add("PTL_EVENT_SEND: " + test::describe(event));
  } else if (event.type == (replies(m.kind) ? PTL_EVENT_REPLY : PTL_EVENT_ACK)) {
    ++seen.ends;
    seen.end = event;
    seen.ended_ns = taken.taken_ns;
    if (replies(m.kind) && event.ni_fail_type == PTL_NI_OK && event.mlength <= m.length)
      seen.result_hash = hash_of(layout, m.result, event.mlength,
                                 [&](uint64_t at) { return phase_.memory.sends[at]; });
  } else {
    phase_.problems.add("event of another kind: " + test::describe(event));
    return;
  }
  // The buffer may be used again (spec 3.13.2).
  if (m.kind != Kind::get)
    layout.for_each(m.source, m.length, [&](uint64_t start, uint64_t bytes, uint64_t) {
      std::memset(phase_.memory.sends.data() + start, static_cast<int>(overwritten), bytes);
    });
}

// The data of a put are in memory when its event is posted (spec 2.5, 3.13.1). This is checked
// where no other message may change them.
void EventTaker::note_target_event(int portal, const Taken& taken) {
  const ptl_event_t& event = taken.event;
  if ((event.type != PTL_EVENT_PUT && event.type != PTL_EVENT_PUT_OVERFLOW) || event.mlength == 0 ||
      event.hdr_data == 0 || event.hdr_data > phase_.program.messages.size())
    return;
  const auto id = static_cast<uint32_t>(event.hdr_data - 1);
  const auto at =
      static_cast<uint64_t>(static_cast<std::byte*>(event.start) - phase_.memory.entries.data());
  for (const Entry& e : phase_.program.entries) {
    if (e.endpoint != phase_.endpoint || e.portal != portal ||
        !e.has(PTL_ME_MANAGE_LOCAL | PTL_ME_USE_ONCE))
      continue;
    uint64_t offset = 0;
    for (const Layout::Piece& piece : e.memory.pieces) {
      if (at - piece.start < piece.length) {
        offset += at - piece.start;
        uint64_t wrong = 0;
        e.memory.for_each(
            offset, event.mlength, [&](uint64_t start, uint64_t bytes, uint64_t done) {
              for (uint64_t i = 0; i < bytes; ++i)
                wrong += phase_.memory.entries[start + i] != payload_at(id, done + i) ? 1 : 0;
            });
        if (wrong != 0)
          phase_.problems.add(std::to_string(wrong) + " bytes of message " + std::to_string(id) +
                              " are not in place when its event is: " + test::describe(event));
        return;
      }
      offset += piece.length;
    }
  }
}

}  // namespace lintel::fuzz
