// PollToken: exclusive use against one that polls, hand-off to the progress thread, rounds.
#include "core/progress/poll_token.h"

#include "core/progress/poll_flag.h"
#include "program.h"

namespace lintel::model {
namespace {

// What the token protects is plain memory.
struct Excluded {
  PollToken token;
  WaitGate gate;
  int protected_memory = 0;
  void poll() {
    for (unsigned i = 0; i < 2; ++i) {
      if (token.exclusively_wanted() || !token.try_acquire()) continue;
      ++protected_memory;
      token.release();
    }
  }
  // As Waiter::step_aside().
  void step_aside() {
    while (token.exclusively_wanted()) {
    }
    if (!token.try_acquire()) return;
    ++protected_memory;
    token.release();
  }
  void set_up() {
    const PollToken::Exclusive hold(token, gate);
    ++protected_memory;
  }
  void done() { require(protected_memory >= 1, "the set-up was done"); }
};

// A thread sleeps with the token, as Waiter::sleep_as_poller() does.
struct Sleeping {
  PollToken token;
  Doorbell bell;
  WaitGate gate;
  bool done = false;  // what the token protects
  Sleeping() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    gate.set_doorbell(&bell);
  }
  void sleep() {
    for (;;) {
      if (!token.try_acquire()) continue;
      const bool over = done;
      if (!over) {
        const uint32_t announced = bell.announce_sleep();
        if (!token.exclusively_wanted()) bell.sleep(announced, futex_no_timeout);
      }
      token.release();
      if (over) return;
      while (token.exclusively_wanted()) {
      }
    }
  }
  void set_up() {
    const PollToken::Exclusive hold(token, gate);
    done = true;
  }
};

// A thread sleeps as the poller, leaves, and hands off to the progress thread, which waits for that
// as ProgressThread::watch_application() does.
struct HandOff {
  PollToken token;
  int left = 0;
  bool found_asleep = false;
  void sleep_as_poller() {
    token.set_asleep(true);
    token.set_asleep(false);
    left = 1;
    token.hand_off();
  }
  void watch() {
    const uint32_t seen = token.handoffs();
    if (!token.asleep()) return;
    token.await_handoff(seen, futex_no_timeout);
    if (token.handoffs() != seen) require(left == 1, "what precedes the hand-off is there");
  }
};

// A round posts an event and goes on to read what the event refers to. The thread that sees the
// event waits for the end of the round and then reuses that memory.
struct Rounds {
  PollToken token;
  std::atomic<uint32_t> event{0};
  int referred_to = 1;
  void poll() {
    if (!token.try_acquire()) return;
    token.begin_round();
    event.store(1, std::memory_order_release);
    require(referred_to == 1, "the memory is still there");
    token.end_round();
    token.begin_round();
    token.end_round();
    token.release();
  }
  void reuse() {
    while (event.load(std::memory_order_acquire) == 0) {
    }
    token.finish_round();
    referred_to = 2;
  }
};

// A thread makes its work visible, then sets the flag. The holder of the token finds the work.
struct Flag {
  PollFlag flag;
  int work = 0;
  void set() {
    work = 1;
    flag.set();
  }
  void take() {
    while (!flag.take()) {
    }
    require(work == 1, "the work is visible");
  }
  void look() {
    while (!flag.is_set()) {
    }
    require(work == 1, "the work is visible");
  }
};

}  // namespace

Protocol poll_token() {
  return {
      "PollToken, PollFlag",
      {"core/progress/poll_token", "core/progress/poll_flag"},
      {share<Excluded>("exclusive use", {&Excluded::set_up, &Excluded::poll}, &Excluded::done),
       share<Excluded>("two pollers, exclusive use",
                       {&Excluded::set_up, &Excluded::step_aside, &Excluded::step_aside},
                       &Excluded::done),
       share<Sleeping>("exclusive use, the poller sleeps", {&Sleeping::sleep, &Sleeping::set_up}),
       share<HandOff>("hand-off", {&HandOff::watch, &HandOff::sleep_as_poller}),
       share<Rounds>("end of a round", {&Rounds::reuse, &Rounds::poll}),
       share<Flag>("flag, taken", {&Flag::take, &Flag::set}),
       share<Flag>("flag, looked at", {&Flag::look, &Flag::set})}};
}

}  // namespace lintel::model
