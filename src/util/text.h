// Makes sentences from strings and numbers. Set-up and fault paths.
#pragma once

#include <concepts>
#include <string>
#include <utility>

namespace lintel {

template <typename... Parts>
[[nodiscard]] std::string text_of(const Parts&... parts) {
  std::string text;
  const auto add = [&](const auto& part) {
    if constexpr (std::integral<std::decay_t<decltype(part)>>)
      text.append(std::to_string(part));
    else
      text.append(part);
  };
  (add(parts), ...);
  return text;
}

// Stores the sentence `why`, and returns `result`. For functions that report why they failed.
template <typename Result>
[[nodiscard]] Result explained(Result result, std::string& reason, std::string why) {
  reason = std::move(why);
  return result;
}

}  // namespace lintel
