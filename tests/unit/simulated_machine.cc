#include "unit/simulated_machine.h"

namespace lintel::test {

// The first waiting thread gets the processor.
void SimulatedMachine::choose(Processor& processor) {
  if (processor.running != nullptr || processor.waiting.empty()) return;
  SimulatedThread& thread = *processor.waiting.front();
  processor.waiting.pop_front();
  processor.running = &thread;
  processor.running_since_ns = now_ns_;
  thread.compute_ns_ = thread.compute_ns_.value_or(0) + times_.switch_ns;
}

// The running thread's action has ended; determines its next action.
void SimulatedMachine::begin(Processor& processor) {
  SimulatedThread& thread = *processor.running;
  if (processor.yields) {
    processor.yields = false;
    if (!processor.waiting.empty()) {
      thread.compute_ns_ = 0;
      processor.waiting.push_back(&thread);
      processor.running = nullptr;
      choose(processor);
      return;
    }
  }
  using Kind = SimulatedThread::Action::Kind;
  const SimulatedThread::Action action = thread.next(*this);
  switch (action.kind) {
    case Kind::compute:
      thread.compute_ns_ = action.ns;
      break;
    case Kind::yield:
      thread.compute_ns_ = times_.yield_ns;
      processor.yields = true;
      break;
    case Kind::sleep:
      thread.compute_ns_ = 0;
      thread.asleep_ = true;
      thread.wakes_at_ns_ = action.ns == UINT64_MAX ? UINT64_MAX : now_ns_ + action.ns;
      processor.running = nullptr;
      choose(processor);
      break;
  }
}

// A woken thread stays on its processor: the kernel does not recognise halted virtual processors as
// idle.
void SimulatedMachine::enqueue_woken(SimulatedThread& thread) {
  Processor& processor = processors_[thread.processor_];
  processor.waiting.push_front(&thread);
  if (processor.running != nullptr &&
      processor.running->ran_ns_ >= thread.ran_ns_ + times_.preemption_ns) {
    processor.waiting.push_back(processor.running);
    processor.running = nullptr;
  }
}

void SimulatedMachine::wake_sleepers() {
  for (SimulatedThread* thread : threads_)
    if (thread->asleep_ && thread->wakes_at_ns_ <= now_ns_) {
      thread->asleep_ = false;
      enqueue_woken(*thread);
    }
}

void SimulatedMachine::interrupt(Processor& processor) {
  uint64_t lost_ns = 0;
  if (times_.tick_every_ns != 0 && now_ns_ >= processor.next_tick_ns) {
    processor.next_tick_ns = now_ns_ + times_.tick_every_ns;
    lost_ns = times_.tick_ns;
  }
  if (processor.running != nullptr) *processor.running->compute_ns_ += lost_ns;
}

void SimulatedMachine::step(uint64_t end_ns) {
  wake_sleepers();
  uint64_t until_ns = end_ns;
  for (SimulatedThread* thread : threads_)
    if (thread->asleep_) until_ns = std::min(until_ns, thread->wakes_at_ns_);
  for (Processor& processor : processors_) {
    interrupt(processor);
    choose(processor);
    if (times_.tick_every_ns != 0) until_ns = std::min(until_ns, processor.next_tick_ns);
    if (processor.running == nullptr) continue;
    until_ns = std::min(until_ns, now_ns_ + *processor.running->compute_ns_);
    if (!processor.waiting.empty())
      until_ns =
          std::min(until_ns, std::max(processor.running_since_ns + times_.slice_ns, now_ns_ + 1));
  }
  const uint64_t passed_ns = until_ns - now_ns_;
  now_ns_ = until_ns;
  for (Processor& processor : processors_)
    if (processor.running != nullptr) {
      *processor.running->compute_ns_ -= passed_ns;
      processor.running->ran_ns_ += passed_ns;
    }
  for (Processor& processor : processors_) {
    if (processor.running == nullptr) continue;
    if (*processor.running->compute_ns_ == 0) {
      begin(processor);
    } else if (!processor.waiting.empty() &&
               now_ns_ - processor.running_since_ns >= times_.slice_ns) {
      processor.waiting.push_back(processor.running);
      processor.running = nullptr;
    }
  }
}

}  // namespace lintel::test
