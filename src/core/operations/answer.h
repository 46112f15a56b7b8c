// Answers of the target: acknowledgements, replies, refusals (spec 3.13.3, 3.15.1, 4.2). Message
// path.
#pragma once

#include "core/operations/target_request.h"
#include "transport/polling.h"

namespace lintel {

// Outcome of an operation at the target, as reported to the initiator.
struct Outcome {
  ptl_ni_fail_t fail = PTL_NI_OK;
  uint64_t mlength = 0;
  uint64_t offset = 0;  // offset used in the entry, bytes
  ptl_list_t list = PTL_PRIORITY_LIST;
  bool source_fault = false;  // the initiator's own memory was not accessible
};

// Whether the initiator expects an acknowledgement or a reply.
[[nodiscard]] bool expects_answer(const MessageHeader& request) noexcept;

// Acknowledges a put or atomic, or ends a get, fetch or swap without data.
void answer(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
            const Outcome& outcome) noexcept LINTEL_REQUIRES(polling);
// The same for a refused request; counts it and logs it at both ends.
void answer_refused(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
                    Refusal reason, ptl_ni_fail_t fail) noexcept LINTEL_REQUIRES(polling);
// Answers a get, fetch or swap with its data.
void reply(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
           const Outcome& outcome, const std::byte* data) noexcept LINTEL_REQUIRES(polling);
[[nodiscard]] MessageHeader answer_header(const MessageHeader& request, MessageKind kind,
                                          const Outcome& outcome) noexcept;

}  // namespace lintel
