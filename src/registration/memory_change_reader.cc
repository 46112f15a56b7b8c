// The threads that react to changes of memory. Connection path.
#include "registration/memory_change_reader.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "util/futex.h"

namespace lintel {

void MemoryChangeReader::read() noexcept {
  MemoryEvent events[16];
  unsigned count;
  do {
    bool retired = false;
    count = table_.take_events(watch_, events, retired);
    // Nothing was registered yet at the place to which memory has moved.
    for (const MemoryEvent* event = events; event != events + count; ++event)
      if (event->kind == MemoryEvent::Kind::moved)
        deregistration_.stop_watching({event->target, event->target + (event->end - event->begin)});
    if (retired) wake_retirer();
  } while (count == std::size(events));
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
    sched_yield();  // to the thread that changes something, or to the reader
  }
  return false;
}

bool MemoryChangeReader::start(std::string& reason) {
  stop_reader_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_retirer_.store(false, std::memory_order_relaxed);
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
  while (reader_.running() && write(stop_reader_.get(), &one, sizeof one) < 0 && errno == EINTR)
    continue;
  reader_.join();
}

void MemoryChangeReader::run_reader() noexcept {
  pollfd waits[2] = {{watch_.descriptor(), POLLIN, 0}, {stop_reader_.get(), POLLIN, 0}};
  for (;;) {
    poll(waits, 2, -1);
    if (waits[1].revents != 0) return;
    if (waits[0].revents != 0) read();
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
