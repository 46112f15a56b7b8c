// What the counters can still reach while an order of operations is being looked for. An order
// after which a counter would miss its value is given up early. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "fuzz/history.h"
#include "fuzz/state.h"

namespace lintel::fuzz {

class CountBounds {
 public:
  explicit CountBounds(const PortalHistory& history);

  // A counter that cannot become what it is; empty: none. `positions`: of the next operation in
  // each sequence.
  [[nodiscard]] std::string impossible(const State& state,
                                       const std::vector<std::size_t>& positions) const;

 private:
  // Of the portal first, then of descriptors.
  using Counts = std::vector<Count>;

  // The most that one operation adds.
  [[nodiscard]] Counts most_of(const Element& element) const;
  void add_message(Counts& most, const Message& message) const;
  void add_list_call(Counts& most, const Element& element) const;

  const PortalHistory& history_;
  const Program& program_;
  std::vector<uint32_t> descriptors_;         // with a counter, whose messages go to this portal
  std::vector<const Message*> messages_;      // to this portal
  std::vector<const Entry*> entries_;         // of this portal
  std::vector<std::vector<Counts>> to_come_;  // by sequence, from a position on
};

}  // namespace lintel::fuzz
