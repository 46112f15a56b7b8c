// A portal table entry as the specification describes it: calls and arriving messages change it one
// after the other (spec 2.9). Each operation takes a state to those states that agree with what was
// seen of it. Set-up path.
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
  // The states after `element`; none: `why` says what disagrees.
  [[nodiscard]] std::vector<State> after(const State& state, const Element& element,
                                         std::string& why) const;
  // What must hold at the end; the difference, or nothing.
  [[nodiscard]] std::string disagreement(const State& state) const;
  // Another order of operations would end alike.
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
