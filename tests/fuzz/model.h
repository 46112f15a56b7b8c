// A portal table entry according to the specification: calls and arriving messages change it one
// after the other (spec 2.9). Each operation leads from a state to those states that agree with its
// observed results. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "fuzz/evidence.h"
#include "fuzz/list_rules.h"
#include "fuzz/message_rules.h"
#include "fuzz/state.h"

namespace lintel::fuzz {

class Model {
 public:
  Model(const PortalHistory& history, const Evidence& evidence);

  [[nodiscard]] State first() const;
  // The possible states after `element`. If there are none, `why` says what disagrees.
  [[nodiscard]] std::vector<State> after(const State& state, const Element& element,
                                         std::string& why) const;
  // The difference between the state and the observations at the end; empty: none.
  [[nodiscard]] std::string disagreement(const State& state) const;
  // Whether every other order of operations would end in the same way.
  [[nodiscard]] bool is_decisive() const noexcept { return decisive_; }

 private:
  const PortalHistory& history_;
  const Evidence& evidence_;
  const Program& program_;
  const Portal& portal_;
  MessageRules messages_;
  ListRules lists_;
  bool decisive_;
};

}  // namespace lintel::fuzz
