// Searches for an order of the operations that explains the observations of a portal. The order
// keeps the calls of each thread in order, and places no operation before another one that had
// ended before it began. Set-up path.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "fuzz/count_bounds.h"
#include "fuzz/model.h"

namespace lintel::fuzz {

enum class Verdict { explained, contradicted, undecided };

class Linearization {
 public:
  Linearization(const PortalHistory& history, const Evidence& evidence, const Model& model);

  [[nodiscard]] Verdict find();
  // The last state, after `explained`.
  [[nodiscard]] const State& state() const noexcept { return last_; }
  // After `contradicted`: the longest attempt, and why it could not continue.
  [[nodiscard]] const std::string& explanation() const noexcept { return explanation_; }

 private:
  // Which operation is tried first if several may be next. Operations with events are sorted by the
  // position of these in the log. An operation without events follows its predecessor in the
  // sequence, or comes just before its successor, or at a random place between them.
  enum class Preference { early, late, between, by_time };
  struct Effort {
    Preference preference;
    uint64_t attempts;
    uint64_t complete;  // orders whose end disagrees; a difference in memory alone costs more
  };
  static const Effort efforts[];

  void prefer(Preference preference);
  [[nodiscard]] std::vector<uint64_t> keys_of(const std::vector<Element>& sequence,
                                              Preference preference);
  bool go_on(const State& state);
  [[nodiscard]] bool ends_well(const State& state);
  struct DeadEnd {
    const Element* element;  // nullptr: all operations have been placed
    std::string why;
  };
  void note(const std::vector<DeadEnd>& reasons);

  const PortalHistory& history_;
  const Evidence& evidence_;
  const Model& model_;
  const CountBounds counts_;
  std::vector<std::vector<uint64_t>> earliest_end_;  // by sequence, from a position on
  std::vector<std::vector<uint64_t>> keys_;          // lower ones are tried first
  std::vector<std::size_t> positions_;
  std::vector<const Element*> order_;
  std::unordered_set<uint64_t> seen_;
  std::minstd_rand random_{1};
  State last_;
  std::size_t longest_ = 0;
  std::string explanation_;
  std::set<std::string> at_the_end_;  // differences found after all operations had been placed
  Effort left_{};
  bool gave_up_ = false;
  bool contradicted_ = false;
};

}  // namespace lintel::fuzz
