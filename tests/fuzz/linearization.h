// Whether some order of the operations explains what was seen of a portal. The order keeps each
// thread's calls in order, and puts no operation before one that had ended before it began. Set-up
// path.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "fuzz/model.h"

namespace lintel::fuzz {

enum class Verdict { explained, contradicted, undecided };

class Linearization {
 public:
  Linearization(const PortalHistory& history, const Model& model);

  [[nodiscard]] Verdict find();
  // After `explained`: the last state and the order.
  [[nodiscard]] const State& state() const noexcept { return last_; }
  // After `contradicted`: how far the longest attempt came and why it went no further.
  [[nodiscard]] const std::string& explanation() const noexcept { return explanation_; }

 private:
  bool go_on(const State& state);
  void note_dead_end(const std::vector<std::string>& reasons);

  const PortalHistory& history_;
  const Model& model_;
  std::vector<std::vector<uint64_t>> earliest_end_;  // of what a sequence has from a position on
  std::vector<std::size_t> positions_;
  std::vector<const Element*> order_;
  std::unordered_set<uint64_t> seen_;
  State last_;
  std::size_t longest_ = 0;
  std::string explanation_;
  std::set<std::string> at_the_end_;  // what disagrees when all operations have had their turn
  uint64_t attempts_ = 0;
  uint64_t complete_ = 0;
  bool gave_up_ = false;
  bool contradicted_ = false;
};

}  // namespace lintel::fuzz
