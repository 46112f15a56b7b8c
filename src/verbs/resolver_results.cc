// Keeping answers for a while. Connection path.
#include "verbs/resolver_results.h"

#include <utility>

#include "util/clock.h"

namespace lintel {

namespace {

constexpr uint64_t result_lasts_ns = 1'000'000'000;
constexpr size_t most_results = 4096;  // that were not fetched

}  // namespace

ResolverResult ResolverResults::take(const ResolverQuestion& question, bool& asked) {
  const uint64_t now = now_ns();
  const auto is_old = [now](const ResolverResult& result) {
    return result.status != ResolveStatus::pending && now - result.settled_ns >= result_lasts_ns;
  };
  const std::lock_guard guard(mutex_);
  const auto [place, is_new] = results_.try_emplace(key_of(question));
  ResolverResult& result = place->second;
  asked = is_new || is_old(result);
  if (!asked && result.status == ResolveStatus::pending) return {};
  ResolverResult taken = std::exchange(result, {});
  if (!asked) {
    results_.erase(place);
    return taken;
  }
  questions_.push_back(question);
  if (results_.size() > most_results)
    std::erase_if(results_, [&](const auto& entry) { return is_old(entry.second); });
  return {};
}

bool ResolverResults::next_question(ResolverQuestion& question) noexcept {
  const std::lock_guard guard(mutex_);
  if (questions_.empty()) return false;
  question = questions_.back();
  questions_.pop_back();
  return true;
}

void ResolverResults::settle(const ResolverQuestion& question, ResolverResult&& result) noexcept {
  result.settled_ns = now_ns();
  const std::lock_guard guard(mutex_);
  const auto place = results_.find(key_of(question));
  if (place != results_.end()) place->second = std::move(result);
}

}  // namespace lintel
