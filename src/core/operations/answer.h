// Answers of the target: acknowledgements, replies, refusals (spec 3.13.3, 3.15.1, 4.2). Message
// path.
#pragma once

#include "core/operations/target_request.h"
#include "transport/polling.h"

namespace lintel {

// How the operation ended at the target, as far as the initiator is told.
struct Outcome {
  ptl_ni_fail_t fail = PTL_NI_OK;
  uint64_t mlength = 0;
  uint64_t offset = 0;  // used in the entry
  ptl_list_t list = PTL_PRIORITY_LIST;
  bool source_fault = false;  // the initiator's own memory was not accessible
};

// Whether the initiator waits to hear of the operation.
[[nodiscard]] bool expects_answer(const MessageHeader& request) noexcept;

// Acknowledges a put or atomic, or ends a get, fetch or swap without data.
void answer(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
            const Outcome& outcome) noexcept LINTEL_REQUIRES(polling);
// The same for a request that goes no further; counts it and tells the log of both ends.
void answer_refused(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
                    Refusal reason, ptl_ni_fail_t fail) noexcept LINTEL_REQUIRES(polling);
// Answers a get, fetch or swap with its data.
void reply(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
           const Outcome& outcome, const std::byte* data) noexcept LINTEL_REQUIRES(polling);
[[nodiscard]] MessageHeader answer_header(const MessageHeader& request, MessageKind kind,
                                          const Outcome& outcome) noexcept;

}  // namespace lintel
