// Whether what was seen of a portal in a phase can be explained. Set-up path.
#pragma once

#include "fuzz/evidence.h"
#include "fuzz/list_calls.h"
#include "fuzz/phase.h"

namespace lintel::fuzz {

class PortalCheck {
 public:
  PortalCheck(const Phase& phase, const ListCalls& lists, int portal);

  // Tells the problems of the phase what cannot be.
  void run();

 private:
  // Calls of each thread here, and messages of each thread anywhere, triggered ones apart, in their
  // order.
  void add_calls(const ListCalls& lists);
  void add_messages(const Evidence& evidence);
  [[nodiscard]] Element element_of(const Message& message, const Evidence& evidence) const;

  const Phase& phase_;
  int portal_;
  PortalHistory history_;
};

}  // namespace lintel::fuzz
