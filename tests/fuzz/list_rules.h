// The effects of calls on the lists of a portal (spec 3.11, 3.12), and whether they agree with the
// results that the callers observed. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "fuzz/evidence.h"
#include "fuzz/state.h"

namespace lintel::fuzz {

class ListRules {
 public:
  ListRules(const PortalHistory& history, const Evidence& evidence)
      : history_(history),
        evidence_(evidence),
        program_(*history.program),
        portal_(program_.portal(history.endpoint, history.portal)) {}

  // Returns true and changes `state` to the one after the call. Returns false if an observation
  // disagrees; `why` says which.
  bool append(State& state, const Element& element, std::string& why) const;
  // Adds the possible states after the call to `next`. If there are none, `why` says what
  // disagrees.
  void unlink(const State& state, const Element& element, std::string& why,
              std::vector<State>& next) const;
  void search(const State& state, const Element& element, std::string& why,
              std::vector<State>& next) const;

 private:
  void claim(State& state, std::size_t position, const Entry& by) const;
  void drop_header(State& state, std::size_t position) const;

  const PortalHistory& history_;
  const Evidence& evidence_;
  const Program& program_;
  const Portal& portal_;
};

}  // namespace lintel::fuzz
