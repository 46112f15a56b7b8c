// The triggered operations that wait for the counter of a thread, which no other thread changes:
// which operations are triggered when, and the values of the counter (spec 3.16). Set-up path.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fuzz/program.h"

namespace lintel::fuzz {

class TriggerPlan {
 public:
  struct Operation {
    Fired::What what;
    uint32_t id;  // message or entry
    uint64_t threshold;
    uint64_t amount;  // counts and sets
  };

  [[nodiscard]] uint64_t count() const noexcept { return count_; }

  // Each returns the operations that are triggered, in order.
  [[nodiscard]] std::vector<Fired> post(const Operation& operation);
  [[nodiscard]] std::vector<Fired> add(uint64_t amount) { return move(count_ + amount); }
  [[nodiscard]] std::vector<Fired> set(uint64_t value) { return move(value); }

  // Cancels an append that has not been triggered. Returns false if it has been, or there is none.
  bool cancel_append(uint32_t entry);

 private:
  [[nodiscard]] std::vector<Fired> move(uint64_t value);
  // Sets the counter. Operations that it reaches become ready, in order of threshold and then of
  // posting.
  void reach(uint64_t value);

  uint64_t count_ = 0;
  std::vector<Operation> waiting_;
  std::deque<Operation> ready_;
};

}  // namespace lintel::fuzz
