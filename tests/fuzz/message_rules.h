// The effects of an arriving message on a portal (spec 2.5, 2.8, 3.15). They are compared with the
// events at its initiator and its target. Set-up path.
#pragma once

#include <string>

#include "fuzz/memory_evidence.h"
#include "fuzz/state.h"

namespace lintel::fuzz {

class MessageRules {
 public:
  MessageRules(const PortalHistory& history, const Evidence& evidence)
      : history_(history),
        evidence_(evidence),
        memory_(history, evidence),
        program_(*history.program),
        portal_(program_.portal(history.endpoint, history.portal)) {}

  // Returns true and changes `state` to the one after the message. Returns false if an observation
  // disagrees; `why` says which.
  bool arrive(State& state, const Message& message, std::string& why) const;
  // The same for a message whose events find no room in the queue (spec 2.8).
  bool arrive_without_room(State& state, const Message& message, std::string& why) const;
  // Whether the message may have been lost.
  [[nodiscard]] bool may_be_lost(const Message& message) const {
    return evidence_.arrival_of(message.id) == nullptr && !memory_.shows(message);
  }

 private:
  struct Outcome {
    ptl_ni_fail_t fail = PTL_NI_OK;
    uint64_t mlength = 0;
    uint64_t offset = 0;
    const Entry* entry = nullptr;
  };

  [[nodiscard]] const Entry* find(const State& state, const Message& message) const;
  void apply(State& state, const Message& message, const Outcome& outcome,
             std::byte* fetched) const;
  [[nodiscard]] bool agrees_with_initiator(State& state, const Message& message,
                                           const Outcome& outcome, std::string& why) const;
  [[nodiscard]] bool agrees_with_target(const Message& message, const Outcome& outcome,
                                        std::string& why) const;

  const PortalHistory& history_;
  const Evidence& evidence_;
  const MemoryEvidence memory_;
  const Program& program_;
  const Portal& portal_;
};

}  // namespace lintel::fuzz
