// Whether the observations of a portal in a phase can be explained. Set-up path.
#pragma once

#include "fuzz/evidence.h"
#include "fuzz/list_calls.h"
#include "fuzz/phase.h"

namespace lintel::fuzz {

class PortalCheck {
 public:
  PortalCheck(const Phase& phase, const ListCalls& lists, int portal);

  // Adds contradictions to the problems of the phase.
  void run();

 private:
  // Adds the calls of each thread of this endpoint, and the messages of each thread of all
  // endpoints, in their order. Triggered ones are separate.
  void add_calls(const ListCalls& lists);
  void add_messages(const Evidence& evidence);
  [[nodiscard]] Element element_of(const Message& message, const Evidence& evidence) const;

  const Phase& phase_;
  int portal_;
  PortalHistory history_;
};

}  // namespace lintel::fuzz
