// The depth-first search for an order. States that were reached before are not searched again.
// Set-up path.
#include "fuzz/linearization.h"

#include <algorithm>
#include <utility>

#include "fuzz/checks.h"
#include "fuzz/names.h"

namespace lintel::fuzz {

// After a bad first choice any number of attempts may fail, so other choices are tried soon.
const Linearization::Effort Linearization::efforts[] = {
    {Preference::early, 20'000, 100},      {Preference::late, 20'000, 100},
    {Preference::by_time, 20'000, 100},    {Preference::between, 20'000, 100},
    {Preference::between, 20'000, 100},    {Preference::between, 20'000, 100},
    {Preference::between, 20'000, 100},    {Preference::between, 20'000, 100},
    {Preference::between, 20'000, 100},    {Preference::between, 20'000, 100},
    {Preference::between, 20'000, 100},    {Preference::between, 20'000, 100},
    {Preference::late, 200'000, 1'000},    {Preference::early, 200'000, 1'000},
    {Preference::between, 200'000, 1'000},
};

Linearization::Linearization(const PortalHistory& history, const Evidence& evidence,
                             const Model& model)
    : history_(history), evidence_(evidence), model_(model), counts_(history) {
  for (const auto& sequence : history.sequences) {
    std::vector<uint64_t> ends(sequence.size() + 1, never);
    for (std::size_t i = sequence.size(); i-- > 0;)
      ends[i] = std::min(ends[i + 1], sequence[i].end_ns);
    earliest_end_.push_back(std::move(ends));
  }
}

Verdict Linearization::find() {
  for (const Effort& effort : efforts) {
    prefer(effort.preference);
    left_ = effort;
    gave_up_ = false;
    seen_.clear();
    order_.clear();
    positions_.assign(history_.sequences.size(), 0);
    if (go_on(model_.first())) return Verdict::explained;
    if (contradicted_ || !gave_up_) {
      for (const std::string& difference : at_the_end_)
        explanation_ += "\n  at the end of an order: " + difference;
      return Verdict::contradicted;
    }
  }
  return Verdict::undecided;
}

void Linearization::prefer(Preference preference) {
  keys_.clear();
  for (const auto& sequence : history_.sequences) keys_.push_back(keys_of(sequence, preference));
}

std::vector<uint64_t> Linearization::keys_of(const std::vector<Element>& sequence,
                                             Preference preference) {
  std::vector<uint64_t> keys(sequence.size());
  if (preference == Preference::by_time) {
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = sequence[i].end_ns;
    return keys;
  }
  std::vector<uint64_t> latest(sequence.size() + 1, history_.log->size());
  for (std::size_t i = keys.size(); i-- > 0;) {
    keys[i] = evidence_.position_of(sequence[i]);
    latest[i] = keys[i] == Evidence::unknown ? latest[i + 1] : keys[i];
  }
  uint64_t earliest = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == Evidence::unknown) {
      // Long messages may report out of order.
      const uint64_t last = std::max(earliest, latest[i]);
      keys[i] = preference == Preference::early  ? earliest
                : preference == Preference::late ? last
                                                 : earliest + random_() % (last - earliest + 1);
    }
    earliest = keys[i];
  }
  return keys;
}

bool Linearization::ends_well(const State& state) {
  std::vector<std::string> differences;
  if (std::string difference = model_.disagreement(state); !difference.empty())
    differences.push_back(std::move(difference));
  uint64_t cost = 1;
  if (differences.empty()) {
    check_memory(history_, state, differences);
    cost = 25;
  }
  if (differences.empty()) {
    last_ = state;
    return true;
  }
  at_the_end_.insert(differences.begin(), differences.end());
  note({{nullptr, differences.front()}});
  // Every other order would end in the same way.
  if (model_.is_decisive()) gave_up_ = contradicted_ = true;
  if (left_.complete < cost) gave_up_ = true;
  left_.complete -= cost;
  return false;
}

bool Linearization::go_on(const State& state) {
  if (left_.attempts-- == 0) {
    gave_up_ = true;
    return false;
  }
  // If all orders end in the same way, the difference at the end is the better explanation.
  if (!model_.is_decisive()) {
    if (const std::string impossible = counts_.impossible(state, positions_); !impossible.empty()) {
      note({{nullptr, impossible}});
      return false;
    }
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
  if (heads.empty()) return ends_well(state);
  if (!seen_.insert(hash).second) return false;
  const auto head = [&](std::size_t sequence) -> const Element& {
    return history_.sequences[sequence][positions_[sequence]];
  };
  const auto rank = [&](std::size_t sequence) {
    return std::pair(keys_[sequence][positions_[sequence]], head(sequence).end_ns);
  };
  std::sort(heads.begin(), heads.end(),
            [&](std::size_t left, std::size_t right) { return rank(left) < rank(right); });
  std::vector<DeadEnd> reasons;
  for (const std::size_t sequence : heads) {
    const Element& element = head(sequence);
    if (element.begin_ns > earliest_end) continue;
    std::string why;
    const std::vector<State> next = model_.after(state, element, why);
    if (next.empty()) reasons.push_back({&element, std::move(why)});
    for (const State& after : next) {
      ++positions_[sequence];
      order_.push_back(&element);
      if (go_on(after)) return true;
      order_.pop_back();
      --positions_[sequence];
      if (gave_up_) return false;
    }
  }
  if (reasons.size() == heads.size() || order_.size() > longest_) note(reasons);
  return false;
}

void Linearization::note(const std::vector<DeadEnd>& reasons) {
  if (order_.size() < longest_ || reasons.empty()) return;
  if (order_.size() == longest_ && !explanation_.empty()) return;
  longest_ = order_.size();
  explanation_ = "after " + std::to_string(longest_) + " operations that agree:";
  for (const Element* element : order_)
    explanation_ += "\n    " + describe(history_, evidence_, *element);
  explanation_ += "\n  none of these can follow:";
  for (const DeadEnd& reason : reasons)
    explanation_ +=
        "\n    " +
        (reason.element == nullptr ? "" : describe(history_, evidence_, *reason.element) + ": ") +
        reason.why;
}

}  // namespace lintel::fuzz
