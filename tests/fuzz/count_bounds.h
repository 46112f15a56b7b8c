// Bounds of the counters during the search for an order of operations. If a counter can no longer
// reach its observed value, the search leaves that order early. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "fuzz/history.h"
#include "fuzz/state.h"

namespace lintel::fuzz {

class CountBounds {
 public:
  explicit CountBounds(const PortalHistory& history);

  // Describes a counter that cannot reach its observed value; empty: there is none. `positions`: of
  // the next operation in each sequence.
  [[nodiscard]] std::string impossible(const State& state,
                                       const std::vector<std::size_t>& positions) const;

 private:
  // The counters of the portal, followed by those of descriptors.
  using Counts = std::vector<Count>;

  // The maximum that one operation adds.
  [[nodiscard]] Counts most_of(const Element& element) const;
  void add_message(Counts& most, const Message& message) const;
  void add_list_call(Counts& most, const Element& element) const;

  const PortalHistory& history_;
  const Program& program_;
  std::vector<uint32_t> descriptors_;     // those with a counter whose messages go to this portal
  std::vector<const Message*> messages_;  // to this portal
  std::vector<const Entry*> entries_;     // of this portal
  std::vector<std::vector<Counts>> to_come_;  // by sequence: sums from each position on
};

}  // namespace lintel::fuzz
