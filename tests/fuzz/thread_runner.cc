// Set-up path.
#include "fuzz/thread_runner.h"

#include <sched.h>

#include "fuzz/clock.h"

namespace lintel::fuzz {

ThreadRunner::ThreadRunner(const Phase& phase, int thread, EventTaker& events,
                           MessageCalls& messages, ListCalls& lists)
    : phase_(phase),
      thread_(thread),
      events_(events),
      messages_(messages),
      lists_(lists),
      probes_(phase.objects.read(phase.objects.probe(thread)).success) {}

void ThreadRunner::run() {
  const std::vector<Step>& steps = phase_.program.steps(phase_.endpoint, thread_);
  auto& at =
      phase_.shared
          .at_step[static_cast<std::size_t>(phase_.endpoint)][static_cast<std::size_t>(thread_)];
  for (uint32_t i = 0; i < steps.size(); ++i) {
    at.store(i, std::memory_order_relaxed);
    const uint64_t begin_ns = now_ns();
    for (const Fired& fired : steps[i].fires)
      if (fired.what == Fired::What::message) phase_.shared.messages[fired.id].call_ns = begin_ns;
    take(steps[i]);
    for (const Fired& fired : steps[i].fires) lists_.note_fired(thread_, fired, begin_ns);
  }
  at.store(static_cast<uint32_t>(steps.size()), std::memory_order_relaxed);
}

void ThreadRunner::take(const Step& step) {
  const Program& program = phase_.program;
  switch (step.action) {
    case Action::send:
      return messages_.send(program.messages[step.index]);
    case Action::append:
      return lists_.append(program.entries[step.index]);
    case Action::search:
      return lists_.search(program.entries[step.index]);
    case Action::unlink:
      return lists_.unlink(thread_, program.entries[step.index]);
    case Action::cancel:
      return lists_.cancel(program.entries[step.index]);
    case Action::unlink_later:
      return lists_.unlink_later(thread_, program.entries[step.index], step.amount);
    case Action::disable:
      return lists_.disable(thread_, static_cast<int>(step.index));
    case Action::enable:
      return lists_.enable(thread_, static_cast<int>(step.index));
    case Action::drain:
      events_.take_of_thread(thread_, step.amount);
      for (int i = 0; i < portals; ++i) events_.take_of_portal(i, step.amount);
      return;
    case Action::poll:
      return phase_.objects.poll();
    case Action::reuse:
      return reuse_counter(step);
    case Action::begin_bundle:
      return phase_.problems.expect_ok(PtlStartBundle(phase_.objects.handle()), "PtlStartBundle");
    case Action::end_bundle:
      return phase_.problems.expect_ok(PtlEndBundle(phase_.objects.handle()), "PtlEndBundle");
    case Action::sync:
      return phase_.problems.expect_ok(PtlAtomicSync(), "PtlAtomicSync");
    default:
      return count(step);
  }
}

// Steps that change the counter of the thread; no other thread changes it.
void ThreadRunner::count(const Step& step) {
  const ptl_handle_ct_t counter = phase_.objects.trigger_count(thread_);
  const ptl_ct_event_t value{step.amount, 0};
  switch (step.action) {
    case Action::count:
      return phase_.problems.expect_ok(PtlCTInc(counter, value), "PtlCTInc");
    case Action::set:
      return phase_.problems.expect_ok(PtlCTSet(counter, value), "PtlCTSet");
    case Action::count_later:
      return phase_.problems.expect_ok(PtlTriggeredCTInc(counter, value, counter, step.index),
                                       "PtlTriggeredCTInc");
    default:
      return phase_.problems.expect_ok(PtlTriggeredCTSet(counter, value, counter, step.index),
                                       "PtlTriggeredCTSet");
  }
}

// Resets a counter that others have changed. Operations posted afterwards wait for later counts,
// even if other threads still read the former value (spec 3.14.8, 3.16).
void ThreadRunner::reuse_counter(const Step& step) {
  InterfaceObjects& mine = phase_.objects;
  const CountingDescriptor& reused = mine.reused(thread_);
  const ptl_handle_ct_t count = reused.count;
  const ptl_handle_ct_t probe = mine.probe(thread_);
  ptl_ct_event_t value{};
  const auto put_and_wait = [&](ptl_handle_ct_t counter, ptl_size_t test) {
    phase_.problems.expect_ok(
        PtlPut(reused.handle, 0, 0, PTL_CT_ACK_REQ, mine.process(static_cast<int>(step.index)),
               fence_portal, 0, 0, nullptr, 0),
        "PtlPut");
    phase_.problems.expect_ok(PtlCTWait(counter, test, &value), "PtlCTWait");
  };
  put_and_wait(count, 1);
  phase_.problems.expect_ok(PtlCTSet(count, {0, 0}), "PtlCTSet");
  phase_.problems.expect_ok(PtlTriggeredCTInc(probe, {1, 0}, count, 1), "PtlTriggeredCTInc");
  if (step.amount != 0) {
    put_and_wait(probe, ++probes_);
    phase_.problems.expect_ok(PtlCTSet(count, {0, 0}), "PtlCTSet");
  } else {
    sched_yield();
    phase_.problems.expect_ok(PtlCTCancelTriggered(count), "PtlCTCancelTriggered");
  }
  if (mine.read(probe).success != probes_)
    phase_.problems.add("a triggered operation fired although its counter was below its threshold");
}

}  // namespace lintel::fuzz
