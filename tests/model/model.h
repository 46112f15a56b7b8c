// What a model of a protocol consists of. See checker/explorer.h for how it is explored.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace lintel::model {

struct Scenario {
  std::string name;
  std::function<void()> set_up;                // before the threads
  std::vector<std::function<void()>> threads;  // at most four
  std::function<void()> finish;                // after them, unless a thread never ends
};

// Ends the exploration with an error if it does not hold.
void require(bool condition, const char* what);
// The outcome of the execution: all such texts of finish().
void outcome(const std::string& text);

// Zeroed memory of this execution.
[[nodiscard]] void* allocate(size_t bytes);
// Each thread has its own; zero at first.
struct ThreadLocal {
  void* start;
  size_t bytes;
};
void keep_per_thread(ThreadLocal variable);

// A scenario whose threads share a `State`. Each execution has its own.
template <typename State>
[[nodiscard]] Scenario share(std::string name, std::vector<void (State::*)()> threads,
                             void (State::*finish)() = nullptr) {
  const auto state = std::make_shared<State*>();
  Scenario scenario{std::move(name),
                    [state] { *state = new (allocate(sizeof(State))) State(); },
                    {},
                    [state, finish] {
                      if (finish != nullptr) ((*state)->*finish)();
                    }};
  for (auto thread : threads)
    scenario.threads.push_back([state, thread] { ((*state)->*thread)(); });
  return scenario;
}

}  // namespace lintel::model
