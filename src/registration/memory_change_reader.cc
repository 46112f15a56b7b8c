// The threads that react to changes of memory. Connection path.
#include "registration/memory_change_reader.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <iterator>

#include "util/futex.h"
#include "util/new_descriptor.h"

namespace lintel {

// Other threads may change memory as fast as this reads. The rest is read the next time.
void MemoryChangeReader::read() noexcept {
  constexpr unsigned most_rounds = 64;
  MemoryEvent events[16];
  for (unsigned round = 0; round < most_rounds; ++round) {
    bool retired = false;
    const unsigned count = table_.take_events(watch_, events, retired);
    // No region was registered yet at the place to which memory has moved.
    for (const MemoryEvent* event = events; event != events + count; ++event)
      if (event->kind == MemoryEvent::Kind::moved)
        deregistration_.stop_watching({event->target, event->target + (event->end - event->begin)});
    if (retired) wake_retirer();
    if (count < std::size(events)) return;
  }
}

void MemoryChangeReader::wake_retirer() noexcept {
  retirements_.fetch_add(1, std::memory_order_release);
  futex_wake(retirements_);
}

// Events may come faster than they are read. Then the caller registers memory for one operation,
// which is right whatever happens elsewhere.
bool MemoryChangeReader::wait_for_changes() noexcept {
  constexpr unsigned most_looks = 1000;
  for (unsigned look = 0; look < most_looks; ++look) {
    read();
    if (!watch_.changing()) return true;
    sched_yield();  // lets the thread that changes memory, or the reader, run
  }
  return false;
}

bool MemoryChangeReader::start(std::string& reason) {
  stop_reader_ = make_event();
  stop_retirer_.store(false, std::memory_order_relaxed);
  stop_reading_.store(false, std::memory_order_relaxed);
  if (stop_reader_.is_open() &&
      reader_.start<&MemoryChangeReader::run_reader>(*this, "ptl-unmapped", reason) &&
      retirer_.start<&MemoryChangeReader::run_retirer>(*this, "ptl-deregister", reason))
    return true;
  if (!stop_reader_.is_open()) reason = "eventfd: no descriptor";
  stop();
  return false;
}

// The reader last: while the other thread ends, it may free memory.
void MemoryChangeReader::stop() noexcept {
  stop_retirer_.store(true, std::memory_order_release);
  wake_retirer();
  retirer_.join();
  const uint64_t one = 1;
  stop_reading_.store(true, std::memory_order_release);
  if (reader_.running()) static_cast<void>(!write(stop_reader_.get(), &one, sizeof one));
  reader_.join();
}

void MemoryChangeReader::run_reader() noexcept {
  constexpr useconds_t pause_us = 1000;
  pollfd waits[2] = {{watch_.descriptor(), POLLIN, 0}, {stop_reader_.get(), POLLIN, 0}};
  while (!stop_reading_.load(std::memory_order_acquire)) {
    // poll() fails if RLIMIT_NOFILE is less than two.
    if (poll(waits, 2, -1) < 0) usleep(pause_us);
    read();
  }
}

void MemoryChangeReader::run_retirer() noexcept {
  for (;;) {
    const uint32_t seen = retirements_.load(std::memory_order_acquire);
    deregistration_.deregister_retired();
    if (stop_retirer_.load(std::memory_order_acquire)) return;
    futex_wait(retirements_, seen, futex_no_timeout);
  }
}

}  // namespace lintel
