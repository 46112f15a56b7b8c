// Requests that their target dropped or refused (spec 2.5, 3.13.3, 4.2.2): counted by reason, and
// logged at both ends with PTL_LOG_LEVEL=debug. Fault path.
#pragma once

#include <cstdint>

#include "portals4_lintel.h"
#include "transport/message.h"
#include "util/counter.h"
#include "util/log.h"

namespace lintel {

using Refusal = ptl_lintel_drop_t;

struct RefusalText {
  const char* name;  // name in statistics
  const char* text;  // text with the section
};
[[nodiscard]] const RefusalText& refusal_text(Refusal reason) noexcept;

// Returns the hdr_data of the answer to a refused request, for the log of the initiator; not 0.
[[nodiscard]] uint64_t refusal_word(Refusal reason, MessageKind kind) noexcept;

class RefusedRequests {
 public:
  // Called at the target.
  void note(Refusal reason, ProcessId initiator, const MessageHeader& request) noexcept;
  // Called at the initiator. `answer` is an answer whose hdr_data is a refusal_word(). It is not
  // trusted.
  void note_answer(ProcessId target, const MessageHeader& answer) noexcept;

  // Any thread.
  [[nodiscard]] uint64_t count(Refusal reason) const noexcept { return counts_[reason].get(); }

  // Messages of all kinds that were not believed, or found no memory.
  SharedCounter messages;

 private:
  // Whether to log a line about a peer and a reason now. A line about one peer, reason or end does
  // not suppress lines about others.
  [[nodiscard]] bool is_due(unsigned reason, ProcessId peer, bool at_target) noexcept;

  SharedCounter counts_[PTL_LINTEL_DROP_REASONS];
  SaidRecently said_;
};

}  // namespace lintel
