// Requests that their target dropped or refused (spec 2.5, 3.13.3, 4.2.2): counted by reason, and
// told in the log at both ends with PTL_LOG_LEVEL=debug. Fault path.
#pragma once

#include <cstdint>

#include "portals4_lintel.h"
#include "transport/message.h"
#include "util/counter.h"
#include "util/log.h"

namespace lintel {

using Refusal = ptl_lintel_drop_t;

struct RefusalText {
  const char* name;  // in statistics
  const char* text;  // with the section
};
[[nodiscard]] const RefusalText& refusal_text(Refusal reason) noexcept;

// What the answer to a refused request says for the log of the initiator; not 0.
[[nodiscard]] uint64_t refusal_word(Refusal reason, MessageKind kind) noexcept;

class RefusedRequests {
 public:
  // At the target.
  void note(Refusal reason, ProcessId initiator, const MessageHeader& request) noexcept;
  // At the initiator: an answer whose hdr_data is a refusal_word(). It comes from outside.
  void note_answer(ProcessId target, const MessageHeader& answer) noexcept;

  // Any thread.
  [[nodiscard]] uint64_t count(Refusal reason) const noexcept { return counts_[reason].get(); }

  // Messages of all kinds that were not believed, or found no memory.
  SharedCounter messages;

 private:
  // For a line about a peer and a reason. Lines about one at either end do not keep others away.
  [[nodiscard]] bool is_due(unsigned reason, ProcessId peer, bool at_target) noexcept;

  SharedCounter counts_[PTL_LINTEL_DROP_REASONS];
  SaidRecently said_;
};

}  // namespace lintel
