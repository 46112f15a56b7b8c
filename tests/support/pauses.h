// How long a process stood still, for tests that limit times.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace lintel::test {

// The longest time for which this process, or the machine, stood still.
class Pauses {
 public:
  Pauses() : watch_([this] { run(); }) {}
  ~Pauses() {
    ends_ = true;
    watch_.join();
  }
  [[nodiscard]] double longest_s() const { return longest_s_; }

 private:
  void run() {
    while (!ends_) {
      const auto before = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      longest_s_ = std::max(
          longest_s_.load(),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    }
  }

  std::atomic<bool> ends_{false};
  std::atomic<double> longest_s_{0};
  std::thread watch_;
};

}  // namespace lintel::test
