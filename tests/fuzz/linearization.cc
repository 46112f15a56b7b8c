// The search for an order, depth first; states that were reached before are not searched again.
// Set-up path.
#include "fuzz/linearization.h"

#include <algorithm>
#include <utility>

#include "fuzz/checks.h"

namespace lintel::fuzz {

namespace {

constexpr uint64_t most_attempts = 20'000;
constexpr uint64_t most_complete = 40;  // orders whose end disagrees

}  // namespace

Linearization::Linearization(const PortalHistory& history, const Model& model)
    : history_(history), model_(model), positions_(history.sequences.size()) {
  for (const auto& sequence : history.sequences) {
    std::vector<uint64_t> ends(sequence.size() + 1, never);
    for (std::size_t i = sequence.size(); i-- > 0;)
      ends[i] = std::min(ends[i + 1], sequence[i].end_ns);
    earliest_end_.push_back(std::move(ends));
  }
}

Verdict Linearization::find() {
  if (go_on(model_.first())) return Verdict::explained;
  if (at_the_end_.size() > 1) {
    explanation_ += "\n  at the ends of all orders:";
    for (const std::string& difference : at_the_end_) explanation_ += "\n    " + difference;
  }
  return gave_up_ && !contradicted_ ? Verdict::undecided : Verdict::contradicted;
}

bool Linearization::go_on(const State& state) {
  if (++attempts_ > most_attempts) {
    gave_up_ = true;
    return false;
  }
  uint64_t earliest_end = never;
  std::vector<std::size_t> heads;
  uint64_t hash = state.hash();
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    hash = mix(hash, positions_[i]);
    if (positions_[i] == history_.sequences[i].size()) continue;
    heads.push_back(i);
    earliest_end = std::min(earliest_end, earliest_end_[i][positions_[i]]);
  }
  if (heads.empty()) {
    std::vector<std::string> differences;
    if (std::string difference = model_.disagreement(state); !difference.empty())
      differences.push_back(std::move(difference));
    if (differences.empty()) check_memory(history_, state, differences);
    if (differences.empty()) {
      last_ = state;
      return true;
    }
    for (const std::string& difference : differences) at_the_end_.insert(difference);
    note_dead_end(differences);
    // Another order would end alike.
    if (model_.decisive()) gave_up_ = contradicted_ = true;
    if (++complete_ > most_complete) gave_up_ = true;
    return false;
  }
  if (!seen_.insert(hash).second) return false;
  const auto head = [&](std::size_t sequence) -> const Element& {
    return history_.sequences[sequence][positions_[sequence]];
  };
  std::sort(heads.begin(), heads.end(), [&](std::size_t left, std::size_t right) {
    return head(left).end_ns < head(right).end_ns;
  });
  std::vector<std::string> reasons;
  for (const std::size_t sequence : heads) {
    const Element& element = head(sequence);
    if (element.begin_ns > earliest_end) continue;
    std::string why;
    const std::vector<State> next = model_.after(state, element, why);
    if (next.empty()) reasons.push_back(model_.describe(element) + ": " + why);
    for (const State& after : next) {
      ++positions_[sequence];
      order_.push_back(&element);
      if (go_on(after)) return true;
      order_.pop_back();
      --positions_[sequence];
      if (gave_up_) return false;
    }
  }
  if (reasons.size() == heads.size() || order_.size() > longest_) note_dead_end(reasons);
  return false;
}

void Linearization::note_dead_end(const std::vector<std::string>& reasons) {
  if (order_.size() < longest_ || reasons.empty()) return;
  longest_ = order_.size();
  explanation_ = "after " + std::to_string(longest_) + " operations that agree (" +
                 std::to_string(attempts_) + " attempts, decisive " +
                 std::to_string(model_.decisive()) + "):";
  for (const Element* element : order_) explanation_ += "\n    " + model_.describe(*element);
  explanation_ += "\n  none of these can follow:";
  for (const std::string& reason : reasons) explanation_ += "\n    " + reason;
}

}  // namespace lintel::fuzz
