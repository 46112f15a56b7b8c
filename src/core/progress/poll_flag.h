// Reports to the holder of the poll token that there is work. Message path.
#pragma once

#include <atomic>

namespace lintel {

class PollFlag {
 public:
  // Any thread, when what is to be done can be seen by others.
  void set() noexcept { set_.store(true, std::memory_order_release); }
  [[nodiscard]] bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }
  // Token held, before looking for what is to be done: who sets the flag afterwards is not missed.
  [[nodiscard]] bool take() noexcept { return set_.exchange(false, std::memory_order_acquire); }

 private:
  std::atomic<bool> set_{false};
};

}  // namespace lintel
