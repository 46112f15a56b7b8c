// Whether some order of the operations explains what was seen of a portal. The order keeps each
// thread's calls in order, and puts no operation before one that had ended before it began. Set-up
// path.
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
  // After `explained`: the last state.
  [[nodiscard]] const State& state() const noexcept { return last_; }
  // After `contradicted`: how far the longest attempt came and why it went no further.
  [[nodiscard]] const std::string& explanation() const noexcept { return explanation_; }

 private:
  // Which operation is tried first where several may be next. Operations with events go by the
  // place of these in the log. Those without one follow the one before them in their sequence, or
  // wait for the one after them, or go somewhere between the two.
  enum class Preference { early, late, between, by_time };
  struct Effort {
    Preference preference;
    uint64_t attempts;
    uint64_t complete;  // orders whose end disagrees; one that differs in memory alone costs more
  };
  static const Effort efforts[];

  void prefer(Preference preference);
  [[nodiscard]] std::vector<uint64_t> keys_of(const std::vector<Element>& sequence,
                                              Preference preference);
  bool go_on(const State& state);
  [[nodiscard]] bool ends_well(const State& state);
  struct DeadEnd {
    const Element* element;  // nullptr: all operations have had their turn
    std::string why;
  };
  void note(const std::vector<DeadEnd>& reasons);

  const PortalHistory& history_;
  const Evidence& evidence_;
  const Model& model_;
  const CountBounds counts_;
  std::vector<std::vector<uint64_t>> earliest_end_;  // of what a sequence has from a position on
  std::vector<std::vector<uint64_t>> keys_;          // lower ones are tried first
  std::vector<std::size_t> positions_;
  std::vector<const Element*> order_;
  std::unordered_set<uint64_t> seen_;
  std::minstd_rand random_{1};
  State last_;
  std::size_t longest_ = 0;
  std::string explanation_;
  std::set<std::string> at_the_end_;  // what disagrees when all operations have had their turn
  Effort left_{};
  bool gave_up_ = false;
  bool contradicted_ = false;
};

}  // namespace lintel::fuzz
