// ConnectionTimers: a timer that a thread sets fires, whatever the poller does meanwhile: it visits
// the connections, sleeps, or stops to poll the link.
#include "reliable/connection_timers.h"

#include "program.h"
#include "util/lock.h"

namespace lintel::model {
namespace {

struct Timers {
  static constexpr uint64_t now_ns = 10;
  Doorbell bell;
  PollerWakeup wakeup;
  ConnectionTimers timers{wakeup};
  Connection connections[2];

  Timers() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    wakeup.set_doorbell(bell);
  }
  void set(unsigned number, uint64_t at_ns) {
    Connection& connection = connections[number];
    const LockGuard guard(connection.lock);
    connection.due_ns = std::min(connection.due_ns, at_ns);
    timers.set(connection, at_ns);
  }
  void set_first() { set(0, 5); }
  void set_first_again() { set(0, 3); }
  void set_second() { set(1, 5); }
  // As PeerWatch::run_timers().
  void run() {
    timers.run([](Connection& connection) {
      const LockGuard guard(connection.lock);
      if (connection.due_ns > now_ns) return connection.due_ns;
      connection.has_fired = true;
      connection.due_ns = ConnectionTimers::never;
      ConnectionTimers::done(connection);
      return ConnectionTimers::never;
    });
  }
  void poll() {
    if (timers.is_due(now_ns)) run();
  }
  // None is lost: the next poll finds those that the last one has not found.
  void all_due() {
    for (const Connection& connection : connections)
      if (connection.due_ns != ConnectionTimers::never)
        require(timers.earliest_ns() <= connection.due_ns, "the poller knows of the timer");
  }
};

// The first connection has a timer that is due.
struct Running : Timers {
  Running() { set(0, 1); }
  void poll_twice() {
    poll();
    poll();
  }
};

struct Sleeping : Timers {
  // As a thread that sleeps without a limit where no timer is set.
  void sleep() {
    for (;;) {
      poll();
      if (connections[0].has_fired) return;
      const uint32_t announced = bell.announce_sleep();
      if (timers.earliest_ns() == ConnectionTimers::never) bell.sleep(announced, futex_no_timeout);
    }
  }
};

struct Quiet : Timers {
  // As QuietLink: without timers the link is not polled until the flag is set.
  void go_quiet() {
    wakeup.reset();
    if (!timers.has_new())
      while (!wakeup.is_set()) {
      }
    while (!timers.is_due(now_ns)) {
    }
    run();
    require(connections[0].has_fired, "the timer fires");
  }
};

}  // namespace

Protocol connection_timers() {
  return {"ConnectionTimers, PollerWakeup",
          {"reliable/connection_timers.h"},
          {share<Running>("set while others are visited",
                          {&Running::poll_twice, &Running::set_second}, &Running::all_due),
           share<Running>("set again while it is visited", {&Running::poll, &Running::set_first},
                          &Running::all_due),
           share<Running>("two set, the poller visits",
                          {&Running::poll, &Running::set_second, &Running::set_first},
                          &Running::all_due),
           share<Timers>("two set the same",
                         {&Timers::poll, &Timers::set_first, &Timers::set_first_again},
                         &Timers::all_due),
           share<Sleeping>("the poller sleeps", {&Sleeping::sleep, &Sleeping::set_first}),
           share<Quiet>("the link is quiet", {&Quiet::go_quiet, &Quiet::set_first})}};
}

}  // namespace lintel::model
