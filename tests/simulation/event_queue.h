// The events of a simulation, sorted by time. Events at the same time happen in the order in which
// they were added.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace lintel::simulation {

enum class EventKind : uint8_t { frame_arrives, process_runs, scene_changes };

struct Event {
  uint64_t at_ns;
  uint64_t order;
  EventKind kind;
  uint32_t index;  // of the process or the frame
  uint64_t turn;   // of a process: the event is ignored if the process has another turn by then

  friend bool operator>(const Event& a, const Event& b) noexcept {
    return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
  }
};

class EventQueue {
 public:
  void add(uint64_t at_ns, EventKind kind, uint32_t index = 0, uint64_t turn = 0) {
    events_.push({at_ns, ++added_, kind, index, turn});
  }
  [[nodiscard]] bool empty() const noexcept { return events_.empty(); }
  [[nodiscard]] const Event& next() const noexcept { return events_.top(); }
  Event take() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t added_ = 0;
};

}  // namespace lintel::simulation
