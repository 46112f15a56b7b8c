// The heuristics of waiting by name. All are in use, except in tests and measurements that switch
// some off (PTL_WAIT_WITHOUT). docs/architecture.md says what each does and costs. Set-up path,
// except for uses().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lintel {

enum class WaitHeuristic : uint8_t {
  crowding,
  long_turns,
  few_polls,
  late_arrivals,
  spared_polls,
  shared_rounds,
  rests,
  tick_backoff,
  count,  // number of heuristics
};

inline constexpr std::array<std::string_view, static_cast<size_t>(WaitHeuristic::count)>
    wait_heuristic_names{"crowding",     "long_turns",    "few_polls", "late_arrivals",
                         "spared_polls", "shared_rounds", "rests",     "tick_backoff"};

class WaitHeuristics {
 public:
  [[nodiscard]] constexpr bool uses(WaitHeuristic heuristic) const noexcept {
    return (off_ >> static_cast<unsigned>(heuristic) & 1) == 0;
  }
  [[nodiscard]] constexpr WaitHeuristics without(WaitHeuristic heuristic) const noexcept {
    WaitHeuristics fewer = *this;
    fewer.off_ |= 1u << static_cast<unsigned>(heuristic);
    return fewer;
  }
  // Returns nullopt if there is no heuristic of that name.
  [[nodiscard]] constexpr std::optional<WaitHeuristics> without(
      std::string_view name) const noexcept {
    for (size_t i = 0; i < wait_heuristic_names.size(); ++i)
      if (wait_heuristic_names[i] == name) return without(static_cast<WaitHeuristic>(i));
    return std::nullopt;
  }

 private:
  uint32_t off_ = 0;
};

// Returns the heuristics without those that PTL_WAIT_WITHOUT lists; warns of unknown names.
[[nodiscard]] WaitHeuristics configured_wait_heuristics();

}  // namespace lintel
