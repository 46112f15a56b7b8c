// What the application unmaps, moves and discards, and the threads that see to it. The reader
// allocates and frees nothing, ever: see watched_cache.h.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "registration/watched_cache.h"
#include "util/futex.h"
#include "util/log.h"

namespace lintel {

namespace {

// Events may come faster than they are read. Then memory is registered for one operation: that is
// right whatever happens elsewhere.
constexpr unsigned most_looks = 1000;

}  // namespace

void WatchedCache::read_events() noexcept {
  constexpr unsigned most = 16;
  MemoryEvent events[most];
  unsigned count;
  do {
    bool retired;
    {
      const std::lock_guard guard(lock_);
      count = watch_.read(events);
      for (unsigned i = 0; i < count; ++i) handle_locked(events[i]);
      retired = !retired_.empty();
    }
    // At its new place nobody has asked for it yet.
    for (const MemoryEvent* event = events; event != events + count; ++event)
      if (event->kind == MemoryEvent::Kind::moved)
        stop_watching({event->target, event->target + (event->end - event->begin)});
    if (retired) {
      retirements_.fetch_add(1, std::memory_order_release);
      futex_wake(retirements_);
    }
  } while (count == most);
}

void WatchedCache::handle_locked(const MemoryEvent& event) noexcept {
  const auto invalidate = [&](Region& region) {
    retire_locked(region);
    ++counters_.invalidations;
    if (event.kind == MemoryEvent::Kind::unmapped) {
      region.gone_begin = std::max(region.begin(), event.begin);
      region.gone_end = std::min(region.end(), event.end);
    }
  };
  for (AttachedMemory* memory = attached_; memory != nullptr; memory = memory->next_) {
    memory->for_writing_.take_overlapping(event.begin, event.end, invalidate);
    memory->for_reading_.take_overlapping(event.begin, event.end, invalidate);
  }
  for (Region* region = entering_.head(); region != nullptr; region = RegionChain::next(*region))
    region->outdated = region->outdated || region->overlaps(event.begin, event.end);
}

// False: they do not end.
bool WatchedCache::wait_for_changes() noexcept {
  for (unsigned look = 0; look < most_looks; ++look) {
    read_events();
    if (!watch_.changing()) return true;
    sched_yield();  // to the thread that changes something, or to the reader
  }
  return false;
}

bool WatchedCache::start_threads() noexcept {
  stop_reader_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_reader_ < 0) return false;
  stop_retirer_.store(false, std::memory_order_relaxed);
  // Signals are the application's.
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&retirer_, nullptr, &WatchedCache::run_retirer, this);
  if (error == 0) {
    error = pthread_create(&reader_, nullptr, &WatchedCache::run_reader, this);
    if (error != 0) {
      stop_retirer_.store(true, std::memory_order_release);
      retirements_.fetch_add(1, std::memory_order_release);
      futex_wake(retirements_);
      pthread_join(retirer_, nullptr);
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    close(stop_reader_);
    stop_reader_ = -1;
    log_message(LogLevel::warn, "cannot start the threads of the registration cache: %s",
                strerror(error));
    return false;
  }
  pthread_setname_np(reader_, "ptl-unmapped");
  pthread_setname_np(retirer_, "ptl-deregister");
  return true;
}

void WatchedCache::stop_threads() noexcept {
  stop_retirer_.store(true, std::memory_order_release);
  retirements_.fetch_add(1, std::memory_order_release);
  futex_wake(retirements_);
  pthread_join(retirer_, nullptr);
  // The reader last: while the other ends, it may free memory.
  const uint64_t one = 1;
  while (write(stop_reader_, &one, sizeof one) < 0 && errno == EINTR) continue;
  pthread_join(reader_, nullptr);
  close(stop_reader_);
  stop_reader_ = -1;
}

void* WatchedCache::run_reader(void* self) noexcept {
  auto& cache = *static_cast<WatchedCache*>(self);
  pollfd waits[2] = {{cache.watch_.descriptor(), POLLIN, 0}, {cache.stop_reader_, POLLIN, 0}};
  for (;;) {
    poll(waits, 2, -1);
    if (waits[1].revents != 0) return nullptr;
    if (waits[0].revents != 0) cache.read_events();
  }
}

void* WatchedCache::run_retirer(void* self) noexcept {
  auto& cache = *static_cast<WatchedCache*>(self);
  for (;;) {
    const uint32_t seen = cache.retirements_.load(std::memory_order_acquire);
    cache.deregister_retired();
    if (cache.stop_retirer_.load(std::memory_order_acquire)) return nullptr;
    futex_wait(cache.retirements_, seen, futex_no_timeout);
  }
}

}  // namespace lintel
